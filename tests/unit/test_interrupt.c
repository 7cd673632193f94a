#include "decode/base/interrupt.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Signals that a process sends to itself, in a child of its own where they may end it. */

enum { NOT_ENDED = 3 };

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

/* Run in a child; returns its status as wait() gives it. */
static int status_of(void (*run)(int number), int number)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
			(void)signal(ending[i], SIG_DFL);
		(void)signal(number, SIG_DFL); /* a shell's background jobs ignore some */
		run(number);
		_exit(NOT_ENDED);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void hold_and_release(int number)
{
	struct interrupt interrupt;

	interrupt_hold(&interrupt);
	if (interrupt_waits() || raise(number) || !interrupt_waits())
		_exit(1);
	interrupt_release(&interrupt);
}

static void a_signal_waits_and_ends_the_program_then(void **state)
{
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		int status = status_of(hold_and_release, ending[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), ending[i]);
	}
}

static void ignore_and_hold(int number)
{
	struct interrupt interrupt;

	(void)signal(number, SIG_IGN);
	interrupt_hold(&interrupt);
	if (raise(number) || interrupt_waits() || interrupt_take())
		_exit(1);
	interrupt_release(&interrupt);
}

static void one_that_nohup_ignores_does_not_wait(void **state)
{
	const int status = status_of(ignore_and_hold, SIGHUP);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), NOT_ENDED);
}

static void take_twice(int number)
{
	struct interrupt interrupt;

	interrupt_hold(&interrupt);
	if (interrupt_take() || raise(number) || !interrupt_take() || interrupt_take())
		_exit(1);
	interrupt_release(&interrupt);
}

static void one_that_is_taken_waits_no_longer(void **state)
{
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		int status = status_of(take_twice, ending[i]);

		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), NOT_ENDED);
	}
}

static void hold_only(int number)
{
	struct interrupt interrupt;

	interrupt_hold(&interrupt);
	(void)raise(number);
}

static void other_signals_are_not_held_back(void **state)
{
	int status = status_of(hold_only, SIGQUIT);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGQUIT);
}

static void others_that_wait_are_no_reason_to_end(void **state)
{
	sigset_t set, before;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_false(interrupt_waits());
	assert_int_equal(sigwaitinfo(&set, NULL), SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* A signal that was ignored or held back before, as with nohup, is so afterwards. */
static void release_what_was_held_before(int number)
{
	struct interrupt outer, inner;

	interrupt_hold(&outer);
	interrupt_hold(&inner);
	(void)raise(number);
	interrupt_release(&inner);
}

static void what_was_held_back_before_stays_so(void **state)
{
	int status = status_of(release_what_was_held_before, SIGINT);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), NOT_ENDED);
}

static void *raise_in_thread(void *context)
{
	(void)kill(getpid(), SIGTERM);
	return interrupt_waits() ? context : NULL;
}

static void hold_for_threads(int number)
{
	struct interrupt interrupt;
	void *waited = NULL;
	pthread_t thread;

	interrupt_hold(&interrupt);
	if (pthread_create(&thread, NULL, raise_in_thread, &interrupt) ||
	    pthread_join(thread, &waited) || !waited || !interrupt_waits())
		_exit(1);
}

static void threads_that_are_started_hold_back_as_well(void **state)
{
	int status = status_of(hold_for_threads, 0);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), NOT_ENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_waits_and_ends_the_program_then),
		cmocka_unit_test(one_that_nohup_ignores_does_not_wait),
		cmocka_unit_test(one_that_is_taken_waits_no_longer),
		cmocka_unit_test(other_signals_are_not_held_back),
		cmocka_unit_test(others_that_wait_are_no_reason_to_end),
		cmocka_unit_test(what_was_held_back_before_stays_so),
		cmocka_unit_test(threads_that_are_started_hold_back_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
