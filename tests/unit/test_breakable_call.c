#include "host/vm/breakable_call.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"

enum { LONG_MS = 3600 * MS_PER_S };

static struct fixture {
	struct interrupt interrupt;
	sigset_t held;      /* in the thread that ran the call */
	sem_t go_on, ended; /* a call that hangs waits for the one, and tells the other */
	unsigned runs, drops;
} fixture;

static int set_up(void **state)
{
	fixture = (struct fixture){ .runs = 0 };
	interrupt_hold(&fixture.interrupt);
	return sem_init(&fixture.go_on, 0, 0) || sem_init(&fixture.ended, 0, 0);
}

static int tear_down(void **state)
{
	while (interrupt_take())
		;
	interrupt_release(&fixture.interrupt);
	return sem_destroy(&fixture.go_on) || sem_destroy(&fixture.ended);
}

static void run(void *context)
{
	struct fixture *its = context;

	its->runs++;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &its->held);
}

static void hang(void *context)
{
	struct fixture *its = context;

	while (sem_wait(&its->go_on))
		;
}

static void drop(void *context)
{
	struct fixture *its = context;

	its->drops++;
	(void)sem_post(&its->ended);
}

static void interrupt_us(void)
{
	assert_int_equal(kill(getpid(), SIGINT), 0);
}

static void a_call_that_returns_is_as_any_other(void **state)
{
	assert_true(breakable_call(run, drop, &fixture, 0, LONG_MS));
	assert_int_equal(fixture.runs, 1);
	assert_int_equal(fixture.drops, 0);
}

/* It returns at last, and then nothing is left of it. */
static void assert_is_dropped(void)
{
	assert_int_equal(sem_post(&fixture.go_on), 0);
	assert_int_equal(sem_wait(&fixture.ended), 0);
	assert_int_equal(fixture.drops, 1);
}

/* One that was left behind must not be where Ctrl-C ends us, when we hold it back later. */
static void signals_are_for_others(void **state)
{
	interrupt_release(&fixture.interrupt);
	assert_true(breakable_call(run, drop, &fixture, 0, LONG_MS));
	assert_int_equal(sigismember(&fixture.held, SIGINT), 1);
	interrupt_hold(&fixture.interrupt);
}

static void a_signal_leaves_one_that_hangs_behind(void **state)
{
	interrupt_us();
	assert_false(breakable_call(hang, drop, &fixture, 0, LONG_MS));
	assert_true(interrupt_waits());
	assert_is_dropped();
}

/* Whether or not signals are held back. */
static void time_leaves_one_that_hangs_behind(void **state)
{
	assert_false(breakable_call(hang, drop, &fixture, LONG_MS, 1));
	assert_is_dropped();
	interrupt_release(&fixture.interrupt);
	fixture.drops = 0;
	assert_false(breakable_call(hang, drop, &fixture, LONG_MS, 1));
	assert_is_dropped();
	interrupt_hold(&fixture.interrupt);
}

/* A signal is no reason for more of it. */
static void time_is_over_when_it_is(void **state)
{
	interrupt_us();
	assert_false(breakable_call(hang, drop, &fixture, LONG_MS, 1));
	assert_is_dropped();
}

static void one_that_returns_in_time_is_waited_for(void **state)
{
	interrupt_us();
	assert_true(breakable_call(run, drop, &fixture, LONG_MS, LONG_MS));
	assert_int_equal(fixture.runs, 1);
	assert_int_equal(fixture.drops, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_that_returns_is_as_any_other),
		TEST(signals_are_for_others),
		TEST(a_signal_leaves_one_that_hangs_behind),
		TEST(time_leaves_one_that_hangs_behind),
		TEST(time_is_over_when_it_is),
		TEST(one_that_returns_in_time_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
