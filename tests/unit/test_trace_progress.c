#include "decode/print/trace_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>
#include <pty.h>

static void who_waits_sees_it_now_and_then(void **state)
{
	struct trace_progress progress;

	trace_progress_init(&progress, 5000);
	progress.total = 400;
	assert_false(trace_progress_add(&progress, 100, 5999));
	assert_true(trace_progress_add(&progress, 100, 6000));
	assert_false(trace_progress_add(&progress, 100, 6199));
	assert_true(trace_progress_add(&progress, 100, 6200));
	assert_int_equal(progress.done, progress.total);
}

static void what_is_shown_is_cleared_once(void **state)
{
	struct trace_progress progress = { .total = 400, .done = 100 };
	const int before = dup(STDERR_FILENO);
	int user, program;
	char text[64] = "";
	size_t size = 0;
	ssize_t got;

	if (openpty(&user, &program, NULL, NULL, NULL))
		skip(); /* there are no terminals here */
	assert_true(before >= 0 && dup2(program, STDERR_FILENO) >= 0);
	trace_progress_clear(&progress);
	trace_progress_show(&progress);
	trace_progress_clear(&progress);
	trace_progress_clear(&progress);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	assert_int_equal(close(before), 0);
	assert_int_equal(close(program), 0);
	while ((got = read(user, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	assert_int_equal(close(user), 0);
	assert_string_equal(text, "\rptvm script:  25 % \033[K\r\033[K");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_sees_it_now_and_then),
		cmocka_unit_test(what_is_shown_is_cleared_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
