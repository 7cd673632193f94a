#include "host/record/pause_watch.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/monotonic.h"
#include "decode/base/vec.h"
#include "host/record/record_targets.h"
#include "tests/fake_domain.h"

enum { LONG_MS = 3600 * MS_PER_S };

static struct trace_machine machine;
static const struct record_targets targets = { .machines = { &machine, 1, 1 } };

static int set_up(void **state)
{
	machine = (struct trace_machine){ .name = "vm", .uuid = "1", .has_domain = true };
	fake_libvirt = (struct fake_libvirt){
		.domain = { .name = "vm", .uuid = "1", .id = 7, .is_running = true }
	};
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(fake_libvirt.opened, fake_libvirt.closed);
	return 0;
}

/* One that watches nothing by itself. */
struct notes {
	struct pause_watch watch;
	struct watched_domain domain;
};

static void note(struct notes *notes, const char *state, int64_t at_ms)
{
	const struct domain found = { .id = state && !strcmp(state, "shut off") ? -1 : 7,
				      .is_running = !state,
				      .state = state };

	pause_watch_note(&notes->watch, &notes->domain, &found, at_ms);
}

static struct notes no_notes(void)
{
	return (struct notes){ .watch.lock = PTHREAD_MUTEX_INITIALIZER, .domain.name = "vm" };
}

static void a_pause_is_told_when_it_is_over(void **state)
{
	struct notes notes = no_notes();
	struct pause pause;

	note(&notes, NULL, 1000);
	note(&notes, "paused", 1200);
	note(&notes, "paused", 1400);
	assert_string_equal(notes.domain.still, "paused");
	assert_false(pause_watch_next(&notes.watch, &pause));
	note(&notes, NULL, 3500);
	note(&notes, NULL, 3700);
	assert_null(notes.domain.still);
	assert_true(pause_watch_next(&notes.watch, &pause));
	assert_string_equal(pause.name, "vm");
	assert_string_equal(pause.state, "paused");
	assert_int_equal(pause.ms, 2300);
	assert_false(pause_watch_next(&notes.watch, &pause));
	vec_free(&notes.watch.pauses);
}

static void each_pause_is_one(void **state)
{
	struct notes notes = no_notes();
	struct pause pause;

	for (int64_t at = 0; at < 3; at++) {
		note(&notes, "paused", 100 * at);
		note(&notes, NULL, 100 * at + 50);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_true(pause_watch_next(&notes.watch, &pause));
	assert_false(pause_watch_next(&notes.watch, &pause));
	vec_free(&notes.watch.pauses);
}

static void to_be_gone_is_no_pause(void **state)
{
	struct notes notes = no_notes();
	struct pause pause;

	note(&notes, "shut off", 1000);
	assert_string_equal(notes.domain.still, "shut off");
	note(&notes, NULL, 2000);
	assert_null(notes.domain.still);
	assert_false(pause_watch_next(&notes.watch, &pause));
}

static void without_domains_nothing_is_watched(void **state)
{
	struct pause pause;

	machine.has_domain = false;
	assert_null(pause_watch_start(&targets, NULL));
	assert_false(pause_watch_next(NULL, &pause));
	pause_watch_end(NULL, LONG_MS);
	assert_null(pause_watch_still(NULL, "1"));
	pause_watch_free(NULL);
}

/* Its thread ends by itself. */
static void a_libvirt_that_is_not_there_is_no_error(void **state)
{
	struct pause_watch *watch;
	struct pause pause;

	fake_libvirt.is_down = true;
	watch = pause_watch_start(&targets, "nothing:///here");
	assert_non_null(watch);
	pause_watch_end(watch, LONG_MS);
	assert_false(pause_watch_next(watch, &pause));
	assert_null(pause_watch_still(watch, "1"));
	pause_watch_free(watch);
}

static void the_last_look_tells_how_it_ended(void **state)
{
	struct pause_watch *watch = pause_watch_start(&targets, NULL);

	assert_non_null(watch);
	pause_watch_end(watch, LONG_MS);
	assert_null(pause_watch_still(watch, "1"));
	pause_watch_free(watch);
	fake_libvirt.domain.is_running = false;
	fake_libvirt.domain.state = "crashed";
	watch = pause_watch_start(&targets, NULL);
	pause_watch_end(watch, LONG_MS);
	assert_string_equal(pause_watch_still(watch, "1"), "crashed");
	assert_null(pause_watch_still(watch, "2"));
	pause_watch_free(watch);
}

/* What belongs to the recording is gone when it answers at last. */
static void nobody_waits_for_a_libvirt_that_hangs(void **state)
{
	struct pause_watch *watch;
	sem_t hold;

	assert_int_equal(sem_init(&hold, 0, 0), 0);
	fake_libvirt.hold = &hold;
	watch = pause_watch_start(&targets, NULL);
	assert_non_null(watch);
	pause_watch_end(watch, 1);
	assert_null(pause_watch_still(watch, "1"));
	pause_watch_free(watch);
	memset(&machine, 0xff, sizeof(machine));
	/* It looks twice. */
	assert_int_equal(sem_post(&hold) | sem_post(&hold), 0);
	while (!__atomic_load_n(&fake_libvirt.closed, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	assert_int_equal(sem_destroy(&hold), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pause_is_told_when_it_is_over),
		TEST(each_pause_is_one),
		TEST(to_be_gone_is_no_pause),
		TEST(without_domains_nothing_is_watched),
		TEST(a_libvirt_that_is_not_there_is_no_error),
		TEST(the_last_look_tells_how_it_ended),
		TEST(nobody_waits_for_a_libvirt_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
