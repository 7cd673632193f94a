#include "host/record/workload.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_WAITS = 20000 };

static struct workload workload;
static int status;

static int set_up(void **state)
{
	status = -1;
	return 0;
}

static int tear_down(void **state)
{
	workload_end(&workload);
	assert_int_equal(workload.pid, 0);
	return 0;
}

static void prepare(const char *shell)
{
	static char script[256], dash_c[] = "-c", sh[] = "sh";
	static char *argv[] = { sh, dash_c, script, NULL };

	(void)snprintf(script, sizeof(script), "%s", shell);
	assert_int_equal(workload_prepare(&workload, argv, NULL), 0);
}

static void wait_for_end(void)
{
	for (int waits = 0; !workload_has_ended(&workload, &status); waits++) {
		assert_true(waits < MAX_WAITS);
		(void)usleep(1000);
	}
}

static void it_waits_to_be_started(void **state)
{
	prepare("exit 3");
	assert_false(workload_has_ended(&workload, &status));
	assert_int_equal(workload_start(&workload, "sh", NULL), 0);
	wait_for_end();
	assert_int_equal(status, 3);
	assert_false(workload_has_ended(&workload, &status));
}

static void one_that_is_killed_ends_as_a_shell_says(void **state)
{
	prepare("kill -KILL $$");
	assert_int_equal(workload_start(&workload, "sh", NULL), 0);
	wait_for_end();
	assert_int_equal(status, 128 + SIGKILL);
}

static void a_command_that_is_not_there_is_told(void **state)
{
	char name[] = "no-such-command-anywhere", *argv[] = { name, NULL };
	struct ptvm_error error = { 0 };

	assert_int_equal(workload_prepare(&workload, argv, NULL), 0);
	assert_int_equal(workload_start(&workload, name, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "no-such-command-anywhere: No such file or directory");
	wait_for_end();
	assert_int_equal(status, 127);
}

static void so_is_one_that_is_no_program(void **state)
{
	char name[] = "/tmp", *argv[] = { name, NULL };
	struct ptvm_error error = { 0 };

	assert_int_equal(workload_prepare(&workload, argv, NULL), 0);
	assert_int_equal(workload_start(&workload, name, &error), -PTVM_NOT_FOUND);
	assert_string_equal(error.message, "/tmp: Permission denied");
}

static void one_that_was_killed_while_it_waited_has_ended(void **state)
{
	prepare("exit 0");
	assert_int_equal(kill(workload.pid, SIGKILL), 0);
	wait_for_end();
	assert_int_equal(status, 128 + SIGKILL);
}

static void it_ends_with_its_recorder(void **state)
{
	pid_t pid;

	prepare("exec sleep 1000");
	pid = workload.pid;
	assert_int_equal(workload_start(&workload, "sh", NULL), 0);
	workload_end(&workload);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void so_does_one_that_never_began(void **state)
{
	prepare("exec sleep 1000");
	workload_end(&workload);
	workload_end(&workload);
}

/* The recorder blocks signals, but its command must not inherit that. */
static void its_signals_are_not_blocked(void **state)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	prepare("kill -TERM $$; exit 1");
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(workload_start(&workload, "sh", NULL), 0);
	wait_for_end();
	assert_int_equal(status, 128 + SIGTERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_waits_to_be_started),
		TEST(one_that_is_killed_ends_as_a_shell_says),
		TEST(a_command_that_is_not_there_is_told),
		TEST(so_is_one_that_is_no_program),
		TEST(one_that_was_killed_while_it_waited_has_ended),
		TEST(it_ends_with_its_recorder),
		TEST(so_does_one_that_never_began),
		TEST(its_signals_are_not_blocked),
	};

	/* not the user's: what is not found might be in a directory that may not be searched */
	(void)setenv("PATH", "/usr/bin:/bin", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
