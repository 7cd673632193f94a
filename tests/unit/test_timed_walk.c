#include "decode/pt/timed_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "tests/flow_bench.h"

enum { GRID = 4096, SEGMENT = 700, SEEDS = 6 };

struct fixture {
	struct sim_vm vm;
	struct bench_queue bench;
	struct pt_config config;
	struct trace_points points; /* of a walk through all of it */
	uint64_t first, last;       /* times, in ns as in ticks */
};

struct segments {
	struct pt_segment *items;
	size_t count, room;
};

/* Walk the wanted times; returns whether all points fitted. */
static bool walk(struct fixture *fixture, const struct time_ranges *times,
		 struct trace_points *points, struct segments *ret)
{
	struct pt_segment segment;
	struct timed_walk walk;

	timed_walk_init(&walk, &fixture->bench.queue, &fixture->config, NULL, SEGMENT);
	walk.walk.grid = GRID;
	walk.times = times;
	walk.points = points;
	*ret = (struct segments){ 0 };
	while (!timed_walk_next(&walk, &segment))
		assert_true(vec_push(ret, segment));
	return !points || !points->bad;
}

/* A trace with guests, losses, and a part in the middle that is missing. */
static void make_trace(struct fixture *fixture, uint64_t seed)
{
	struct sim_options options = sim_options_plain(seed);
	size_t half;

	options.guests = 2;
	options.instructions = 100000;
	options.overflow = seed & 1;
	options.pt.psb_bytes = 300;
	options.tsc_offset[0] = 123456789;
	options.tsc_offset[1] = (uint64_t)-55555;
	sim_vm_run(&options, &fixture->vm);
	half = fixture->vm.pt.out.size / 2;
	bench_queue_add(&fixture->bench, fixture->vm.pt.out.data, half, false);
	bench_queue_add(&fixture->bench, fixture->vm.pt.out.data + half,
			fixture->vm.pt.out.size - half, seed & 2);
	fixture->config = bench_config(&options);
	fixture->config.conv = (struct time_conv){ .valid = true, .mult = 1 };
}

static void set_up(struct fixture *fixture, uint64_t seed)
{
	struct segments all;

	*fixture = (struct fixture){ .points = { 0 } };
	make_trace(fixture, seed);
	assert_true(walk(fixture, NULL, &fixture->points, &all));
	assert_true(fixture->points.count > 8);
	fixture->first = all.items[1].clock.now;
	fixture->last = all.items[all.count - 1].clock.now;
	vec_free(&all);
}

static void tear_down(struct fixture *fixture)
{
	trace_points_free(&fixture->points);
	bench_queue_free(&fixture->bench);
	sim_vm_free(&fixture->vm);
}

static void assert_same(const struct segments *a, const struct segments *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct pt_segment *x = &a->items[i], *y = &b->items[i];

		assert_int_equal(x->from, y->from);
		assert_int_equal(x->to, y->to);
		assert_true(x->fresh == y->fresh && x->lost == y->lost && x->to_psb == y->to_psb);
		assert_memory_equal(&x->context, &y->context, sizeof(x->context));
		assert_memory_equal(&x->clock, &y->clock, sizeof(x->clock));
	}
}

/* Parts of the trace's time, in hundredths. */
static struct time_ranges part(const struct fixture *fixture, unsigned from, unsigned to)
{
	uint64_t all = fixture->last - fixture->first;

	return (struct time_ranges){ .items = { { fixture->first + all * from / 100,
						  fixture->first + all * to / 100 } },
				     .count = 1 };
}

static void points_change_nothing_but_the_way_there(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct fixture fixture;

		set_up(&fixture, seed);
		for (unsigned from = 0; from <= 100; from += 5) {
			struct time_ranges times = part(&fixture, from, from + 3);
			struct segments without, with;

			(void)walk(&fixture, &times, NULL, &without);
			assert_true(walk(&fixture, &times, &fixture.points, &with));
			assert_same(&without, &with);
			vec_free(&without);
			vec_free(&with);
		}
		tear_down(&fixture);
	}
}

static void several_times_are_several_jumps(void **state)
{
	struct segments without, with;
	struct fixture fixture;
	struct time_ranges times;

	set_up(&fixture, 1);
	times = part(&fixture, 90, 91); /* parts may be given in any order */
	times.items[times.count++] = part(&fixture, 20, 21).items[0];
	times.items[times.count++] = part(&fixture, 50, 51).items[0];
	(void)walk(&fixture, &times, NULL, &without);
	assert_true(walk(&fixture, &times, &fixture.points, &with));
	assert_true(with.count > 3);
	assert_same(&without, &with);
	vec_free(&without);
	vec_free(&with);
	tear_down(&fixture);
}

static void all_that_is_wanted_is_handed_out_and_little_more(void **state)
{
	struct fixture fixture;
	struct segments all, found;
	struct time_ranges times;

	set_up(&fixture, 2);
	times = part(&fixture, 60, 62);
	(void)walk(&fixture, NULL, NULL, &all);
	(void)walk(&fixture, &times, NULL, &found);
	assert_true(found.count && found.count * 10 < all.count);
	for (size_t i = 0, k = 0; i + 1 < all.count; i++) {
		bool wanted = all.items[i + 1].clock.now >= times.items[0].from &&
			      all.items[i].clock.now <= times.items[0].to;

		if (k < found.count && found.items[k].from == all.items[i].from) {
			assert_true(wanted);
			k++;
		} else {
			assert_false(wanted);
		}
	}
	vec_free(&all);
	vec_free(&found);
	tear_down(&fixture);
}

/* The walk with points known goes through little of the trace: it ends at the points it makes. */
static void the_walk_stops_behind_the_last_time(void **state)
{
	struct trace_points points = { 0 };
	struct fixture fixture;
	struct segments found;
	struct time_ranges times;

	set_up(&fixture, 2);
	times = part(&fixture, 10, 12);
	assert_true(walk(&fixture, &times, &points, &found));
	assert_true(points.count && points.count < fixture.points.count / 4);
	vec_free(&found);
	trace_points_free(&points);
	tear_down(&fixture);
}

/* Any word of any point changed: either the walk sees it, or it does not matter. */
static void points_that_do_not_fit_are_not_believed(void **state)
{
	struct segments without, with;
	struct fixture fixture;
	struct time_ranges times;
	unsigned seen = 0;

	set_up(&fixture, 3);
	times = part(&fixture, 70, 72);
	(void)walk(&fixture, &times, NULL, &without);
	for (size_t i = 0; i < fixture.points.words.count; i++) {
		struct trace_points forged = { 0 };
		size_t at = 0;
		int r = 1;

		fixture.points.words.items[i] ^= 1;
		while (r > 0 && at < fixture.points.words.count) {
			r = trace_points_take(&forged, fixture.points.words.items + at,
					      fixture.points.words.count - at);
			at += r > 0 ? (size_t)r : 0;
		}
		fixture.points.words.items[i] ^= 1;
		seen += !walk(&fixture, &times, &forged, &with);
		assert_same(&without, &with);
		vec_free(&with);
		trace_points_free(&forged);
	}
	assert_true(seen > 10);
	vec_free(&without);
	tear_down(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_change_nothing_but_the_way_there),
		cmocka_unit_test(several_times_are_several_jumps),
		cmocka_unit_test(all_that_is_wanted_is_handed_out_and_little_more),
		cmocka_unit_test(the_walk_stops_behind_the_last_time),
		cmocka_unit_test(points_that_do_not_fit_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
