#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/pause_watch.h"
#include "host/record_targets.h"

/* Watches a machine that has no libvirt. */
static void start(struct pause_watch *watch, struct watched_domain *domain)
{
	*watch = (struct pause_watch){ .lock = PTHREAD_MUTEX_INITIALIZER };
	*domain = (struct watched_domain){ .name = "vm" };
}

/* pause_watch_next() gives nothing without a thread, so it is told for a moment that there is one.
 */
static bool take(struct pause_watch *watch, struct pause *ret)
{
	bool is_one;

	watch->is_started = true;
	is_one = pause_watch_next(watch, ret);
	watch->is_started = false;
	return is_one;
}

static void a_pause_is_told_when_it_is_over(void **state)
{
	struct watched_domain domain;
	struct pause_watch watch;
	struct pause pause;

	start(&watch, &domain);
	pause_watch_note(&watch, &domain, NULL, 1000);
	pause_watch_note(&watch, &domain, "paused", 1200);
	pause_watch_note(&watch, &domain, "paused", 1400);
	assert_false(take(&watch, &pause));
	pause_watch_note(&watch, &domain, NULL, 3500);
	pause_watch_note(&watch, &domain, NULL, 3700);
	assert_true(take(&watch, &pause));
	assert_string_equal(pause.name, "vm");
	assert_string_equal(pause.state, "paused");
	assert_int_equal(pause.ms, 2300);
	assert_false(take(&watch, &pause));
	pause_watch_stop(&watch);
}

static void each_pause_is_one(void **state)
{
	struct watched_domain domain;
	struct pause_watch watch;
	struct pause pause;

	start(&watch, &domain);
	for (int64_t at = 0; at < 3; at++) {
		pause_watch_note(&watch, &domain, "paused", 100 * at);
		pause_watch_note(&watch, &domain, NULL, 100 * at + 50);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_true(take(&watch, &pause));
	assert_false(take(&watch, &pause));
	pause_watch_stop(&watch);
}

static void without_domains_nothing_is_watched(void **state)
{
	struct trace_machine machine = { .name = "by hand" };
	const struct record_targets targets = { .machines = { &machine, 1, 1 } };
	struct pause_watch watch = { 0 };
	struct pause pause;

	assert_false(pause_watch_next(&watch, &pause));
	pause_watch_start(&watch, &targets, NULL);
	assert_false(watch.is_started);
	assert_false(pause_watch_next(&watch, &pause));
	pause_watch_stop(&watch);
}

/* Its thread ends by itself. */
static void a_libvirt_that_is_not_there_is_no_error(void **state)
{
	struct trace_machine machine = { .name = "vm", .uuid = "1", .has_domain = true };
	const struct record_targets targets = { .machines = { &machine, 1, 1 } };
	struct pause_watch watch = { 0 };
	struct pause pause;

	pause_watch_start(&watch, &targets, "nothing:///here");
	assert_true(watch.is_started);
	assert_false(pause_watch_next(&watch, &pause));
	pause_watch_stop(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_is_told_when_it_is_over),
		cmocka_unit_test(each_pause_is_one),
		cmocka_unit_test(without_domains_nothing_is_watched),
		cmocka_unit_test(a_libvirt_that_is_not_there_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
