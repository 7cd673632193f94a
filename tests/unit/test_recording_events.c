#include "host/record/recording_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TRACEPOINT = 2 };

static const char *const tracepoint_names[] = { "kvm:one", "kvm:two" };
static const uint64_t tracepoints[] = { 115, 103 };
static const struct tracer_choice choice = {
	.perf = { .pt_type = 8, .pt_config = 0x123 },
	.tracepoints = tracepoints,
	.tracepoint_count = 2,
};

/* Two rings; each has a trace, maps, and of the tracepoints the second. */
static struct tracer_event events[2][3] = {
	{ { PERF_TRACE, 0, 10, 3, 0, 7 },
	  { PERF_TASKS, 0, 11, 4, 0, 7 },
	  { PERF_TRACEPOINT, 1, 12, 5, 0, 7 } },
	{ { PERF_TRACE, 0, 20, 6, 1, 7 },
	  { PERF_TASKS, 0, 21, 7, 1, 7 },
	  { PERF_TRACEPOINT, 1, 22, 8, 1, 7 } },
};
static struct tracer_ring rings[2] = {
	{ .events = { events[0], 3, 3 } },
	{ .events = { events[1], 3, 3 } },
};
static const struct tracer tracer = { .choice = &choice, .rings = { rings, 2, 2 } };
static struct recording_events made;

static int set_up(void **state)
{
	return recording_events_make(&tracer, "intel_pt//k", tracepoint_names, 5, &made);
}

static int tear_down(void **state)
{
	recording_events_free(&made);
	return made.count != 0;
}

static void those_of_a_kind_are_one(void **state)
{
	static const char *const names[] = { "intel_pt//k", "dummy:u", "kvm:two" };

	assert_int_equal(made.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(made.items[i].name, names[i]);
		assert_int_equal(made.items[i].id_count, 2);
		assert_int_equal(made.items[i].ids[0], 10 + i);
		assert_int_equal(made.items[i].ids[1], 20 + i);
		assert_int_equal(made.items[i].id_spare, 5);
	}
}

static void attrs_are_what_was_asked_of_the_kernel(void **state)
{
	const struct perf_event_attr *attr = made.items[0].attr;

	assert_int_equal(attr->type, 8);
	assert_int_equal(attr->config, 0x123);
	assert_int_equal(attr->size, RECORDING_ATTR_SIZE);
	attr = made.items[2].attr;
	assert_int_equal(attr->type, TRACEPOINT);
	assert_int_equal(attr->config, 103);
}

static void an_event_is_found_by_what_it_is(void **state)
{
	const struct tracer_event other = { PERF_TRACEPOINT, 0, 99, 9, 0, 7 };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(recording_events_find(&made, &events[1][i]), i);
	assert_int_equal(recording_events_find(&made, &other), made.count);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(those_of_a_kind_are_one),
		TEST(attrs_are_what_was_asked_of_the_kernel),
		TEST(an_event_is_found_by_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
