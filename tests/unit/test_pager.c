#include "decode/base/pager.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pty.h>

enum { GO_START = 9, GO_END = 10 }; /* a pipe that a pager may wait for */

/* In a child whose standard output is a terminal: print a line through the pager. */
static void print_line(const char *command)
{
	struct pager pager = { 0 };
	struct ptvm_error error = { 0 };

	(void)setenv("PTVM_PAGER", command, 1);
	if (pager_start(&pager, &error) < 0)
		_exit(1);
	(void)puts("line");
	pager_wait(&pager);
	(void)fflush(stdout);
	_exit(pager.pid != 0);
}

/* What reaches the terminal with this pager. */
static void assert_paged(const char *command, const char *expected)
{
	char text[256];
	size_t used = 0;
	ssize_t got;
	int terminal, status;
	pid_t child = forkpty(&terminal, NULL, NULL, NULL);

	assert_true(child >= 0);
	if (!child)
		print_line(command);
	while ((got = read(terminal, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = 0;
	(void)close(terminal);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_string_equal(text, expected);
}

static void a_terminal_is_written_through_the_pager(void **state)
{
	assert_paged("sed s/^/paged:/", "paged:line\r\n");
}

static void *interrupt(void *context)
{
	(void)raise(SIGINT);
	return NULL;
}

/* A child that lives as long as this one. */
static void start_another(void)
{
	if (fork())
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
}

/* In a child that has another one, too: print until that fails, tell why, and let the pager end. */
static void print_on(int report)
{
	struct pager pager = { 0 };
	struct ptvm_error error = { 0 };
	pthread_t thread;

	start_another();
	(void)setenv("PTVM_PAGER", "cat >/dev/null; read line <&9", 1);
	if (pager_start(&pager, &error) < 0 || pthread_create(&thread, NULL, interrupt, NULL))
		_exit(1);
	while (write(STDOUT_FILENO, "x", 1) == 1)
		;
	if (write(report, &errno, sizeof(errno)) > 0 && write(GO_END, "\n", 1) > 0)
		(void)pause();
	_exit(1);
}

static void an_interrupt_waits_for_the_pager(void **state)
{
	int reports[2], go[2], terminal, status, why = 0;
	pid_t child;

	assert_int_equal(pipe(reports) | pipe(go), 0);
	child = forkpty(&terminal, NULL, NULL, NULL);
	assert_true(child >= 0);
	if (!child) {
		(void)dup2(go[0], GO_START);
		(void)dup2(go[1], GO_END);
		print_on(reports[1]);
	}
	(void)close(reports[1]);
	assert_int_equal(read(reports[0], &why, sizeof(why)), sizeof(why));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(why, EPIPE);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	(void)close(terminal);
	(void)close(reports[0]);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void none_runs_where_it_is_empty_or_cat(void **state)
{
	assert_paged("", "line\r\n");
	assert_paged("cat", "line\r\n");
}

static void one_that_is_not_there_is_done_without(void **state)
{
	assert_paged("/nonexistent/pager 2>/dev/null", "line\r\n");
}

static void none_runs_where_output_is_no_terminal(void **state)
{
	struct pager pager = { 0 };
	struct ptvm_error error = { 0 };
	int terminal = dup(STDOUT_FILENO);
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
	assert_int_equal(pager_start(&pager, &error), 0);
	assert_true(dup2(terminal, STDOUT_FILENO) >= 0);
	(void)close(terminal);
	(void)fclose(file);
	assert_int_equal(pager.pid, 0);
	pager_wait(&pager);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_is_written_through_the_pager),
		cmocka_unit_test(an_interrupt_waits_for_the_pager),
		cmocka_unit_test(none_runs_where_it_is_empty_or_cat),
		cmocka_unit_test(one_that_is_not_there_is_done_without),
		cmocka_unit_test(none_runs_where_output_is_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
