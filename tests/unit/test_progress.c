#include "decode/base/progress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>
#include <pty.h>

/* Show and clear, with standard error going to `fd`. */
static void show_on(int fd)
{
	const int before = dup(STDERR_FILENO);

	assert_true(before >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	progress_show("%d of %s ", 1, "2");
	progress_show("done");
	progress_clear();
	(void)fputs("next", stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	assert_int_equal(close(before), 0);
	assert_int_equal(close(fd), 0);
}

/* What comes out at the other end; that of a terminal ends with an error. */
static void assert_shows(int from, const char *expected)
{
	char text[128];
	size_t size = 0;
	ssize_t got;

	while ((got = read(from, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	text[size] = '\0';
	assert_string_equal(text, expected);
	assert_int_equal(close(from), 0);
}

static void a_terminal_has_one_line_that_changes(void **state)
{
	int user, program;

	if (openpty(&user, &program, NULL, NULL, NULL))
		skip(); /* there are no terminals here */
	show_on(program);
	assert_shows(user, "\r1 of 2 \033[K\rdone\033[K\r\033[Knext");
}

static void nothing_else_has_any(void **state)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	show_on(fds[1]);
	assert_shows(fds[0], "next");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_has_one_line_that_changes),
		cmocka_unit_test(nothing_else_has_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
