#include "decode/base/quiet_thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *read_mask(void *context)
{
	return pthread_sigmask(SIG_SETMASK, NULL, context) ? NULL : context;
}

static void no_signal_reaches_it_but_us(void **state)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR2, SIGCHLD };
	sigset_t its, ours;
	pthread_t thread;
	void *r;

	assert_int_equal(quiet_thread_start(&thread, read_mask, &its), 0);
	assert_int_equal(pthread_join(thread, &r), 0);
	assert_non_null(r);
	assert_non_null(read_mask(&ours));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_int_equal(sigismember(&its, numbers[i]), 1);
		assert_int_equal(sigismember(&ours, numbers[i]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_signal_reaches_it_but_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
