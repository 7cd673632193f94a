#include "decode/flow/code_visits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"
#include "decode/flow/replaced_module.h"
#include "tests/flow_bench.h"

/* A kernel that jumps into a module, which returns. Its function was at first
 *     xor eax, eax; nop...; nopl 0(rax, rax); nop...; ret
 * and then
 *     jne; nop...; ret
 * so that a visit has a branch, or none. */

enum { SIZE = 128, NOPL = 16, MIDDLE = 40, APART = 0x2000, MANY = 70 };
enum { LONG = 2600, LONG_BLOCK = 10000 }; /* too much to look at all of it */

static const uint64_t kernel = 0xffffffff81000000, module = 0xffffffffc0200000;

struct fixture {
	struct machines machines;
	uint8_t before[SIZE], after[SIZE];
	struct pt_config config;
	struct pt_bytes traces[2];
	struct bench_queue queues[2];
	struct trace_sources sources;
	struct code_visits visits;
	size_t block; /* bytes in each block of a long queue */
};

static int set_up(void **state)
{
	static struct fixture fixture;
	const struct symbol symbol = { .start = module, .name = "function", .module = "[old]" };
	struct machine *host;

	assert_true(bench_machines_new(&fixture.machines));
	host = fixture.machines.host;
	memset(fixture.before, 0x90, SIZE);
	memcpy(fixture.before, "\x31\xc0", 2);
	memcpy(fixture.before + NOPL, "\x0f\x1f\x44\x00\x00", 5);
	memset(fixture.after, 0x66, SIZE); /* the prefix of a longer nop */
	memcpy(fixture.after, "\x75\x00\x90", 3);
	for (unsigned i = 4; i < SIZE; i += 2)
		fixture.after[i] = 0x90;
	fixture.before[SIZE - 1] = fixture.after[SIZE - 1] = 0xc3;
	assert_true(bench_add_code(host, kernel, "\xff\xe0", 2));
	assert_true(bench_add_code(host, module, fixture.before, SIZE));
	assert_int_equal(symbols_add(&host->symbols, &symbol), 0);
	assert_int_equal(symbols_finish(&host->symbols, true), 0);
	fixture.block = LONG_BLOCK;
	fixture.config = (struct pt_config){ .tsc = true, .conv = { .valid = true, .mult = 1 } };
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned i = 0; i < 2; i++) {
		bench_queue_free(&fixture->queues[i]);
		pt_bytes_free(&fixture->traces[i]);
	}
	machines_free(&fixture->machines);
	*fixture = (struct fixture){ 0 };
	return 0;
}

static void put_tnt(struct pt_bytes *trace, uint8_t count)
{
	pt_put(trace, &(struct pt_packet){ .kind = PT_TNT, .payload = 0, .count = count });
}

/* A letter is what is visited: code as it was Before or After, other code (x), or none (-).
 * Capital: at the function (C, D: Before and After at the second place), `m`: its middle as it was
 * before, `a`: a place within an instruction.
 */
static void visit(struct pt_bytes *trace, char what)
{
	uint64_t place = what == 'm' || what == 'y'   ? MIDDLE
			 : what == 'a'                ? NOPL + 1
			 : what == 'C' || what == 'D' ? APART
						      : 0;

	if (what == '-')
		return;
	pt_put_ip(trace, PT_TIP, module + place, PT_IP_AUTO);
	if (what == 'A' || what == 'D')
		put_tnt(trace, 1);
	if (what == 'x' || what == 'y')
		put_tnt(trace, 3);
	pt_put_ip(trace, PT_TIP, kernel, PT_IP_AUTO);
}

/* A queue in which these visits are, 100 ns after each other, the first at 100. */
static void add_queue(struct fixture *fixture, unsigned number, const char *visits)
{
	struct pt_bytes *trace = &fixture->traces[number];

	pt_put_psb(trace);
	pt_put_value(trace, PT_PSBEND, 0);
	pt_put_ip(trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
	for (unsigned i = 0; visits[i]; i++) {
		if (fixture->config.tsc)
			pt_put_value(trace, PT_TSC, 100 * (i + 1));
		visit(trace, visits[i]);
	}
	bench_queue_add(&fixture->queues[number], trace->data, trace->size, false);
}

/* Take both queues. */
static void begin_queues(struct fixture *fixture)
{
	const struct flow_code where = { .pid = 0 };

	fixture->sources = (struct trace_sources){ .config = &fixture->config,
						   .machines = &fixture->machines };
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			trace_sources_add(&fixture->sources, &fixture->queues[i].queue, &where), 0);
}

static void begin(struct fixture *fixture, const char *one, const char *other)
{
	add_queue(fixture, 0, one);
	add_queue(fixture, 1, other);
	begin_queues(fixture);
}

/* What the first to ask for the code learns. */
static uint64_t settled(struct fixture *fixture)
{
	struct machine *host = fixture->machines.host;
	struct code_view view;

	code_visits_init(&fixture->visits, &fixture->sources);
	assert_int_equal(machine_code(host, -1, kernel, 0, &view), 0);
	assert_false(fixture->visits.is_begun);
	assert_int_equal(machine_code(host, -1, module, 0, &view), 0);
	assert_true(fixture->visits.is_done);
	code_visits_free(&fixture->visits);
	return host->later.ranges.items[0].since;
}

/* With a later copy of the kernel that has other code. */
static struct fixture *set_up_replaced(void **state)
{
	struct later_code *later;
	struct fixture *fixture;

	set_up(state);
	fixture = *state;
	later = &fixture->machines.host->later;
	assert_int_equal(later_code_add(later, module, fixture->before,
					(struct bytes){ fixture->after, SIZE }),
			 0);
	assert_int_equal(later->ranges.count, 1);
	return fixture;
}

/* Since when the later copy's code is there. */
static uint64_t finish(void **state)
{
	struct fixture *fixture = *state;
	uint64_t ret = settled(fixture);

	trace_sources_free(&fixture->sources);
	tear_down(state);
	return ret;
}

/* The same, by what two CPUs visit. */
static uint64_t since(void **state, const char *one, const char *other)
{
	begin(set_up_replaced(state), one, other);
	return finish(state);
}

/* Have the code once more, at some distance, and both replaced by one module, or by different ones.
 */
static void set_up_twice(void **state, const char *one, const char *other)
{
	const struct symbol symbols[] = {
		{ .start = module, .name = "a", .module = one },
		{ .start = module + APART, .name = "b", .module = other }
	};
	struct fixture *fixture;
	struct later_code *later;

	set_up(state);
	fixture = *state;
	later = &fixture->machines.host->later;
	assert_true(bench_add_code(fixture->machines.host, module + APART, fixture->before, SIZE));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(later_code_add(later, symbols[i].start, fixture->before,
						(struct bytes){ fixture->after, SIZE }),
				 0);
		assert_int_equal(symbols_add(&fixture->machines.host->later_symbols, &symbols[i]),
				 0);
	}
	assert_int_equal(symbols_finish(&fixture->machines.host->later_symbols, true), 0);
	assert_int_equal(later_code_group(later, &fixture->machines.host->later_symbols), 0);
}

/* Since when each place has the later copy's code. */
static void finish_twice(void **state, uint64_t ret[2])
{
	struct fixture *fixture = *state;

	ret[0] = settled(fixture);
	ret[1] = fixture->machines.host->later.ranges.items[1].since;
	trace_sources_free(&fixture->sources);
	tear_down(state);
}

/* The same where each place is visited once for it. */
static void replace_twice(void **state, const char *one, const char *other, uint64_t ret[2])
{
	set_up_twice(state, one, other);
	begin(*state, "BA", "--D");
	finish_twice(state, ret);
}

/* What happens in a stretch of a long queue. */
struct stretch {
	unsigned blocks, each; /* of the trace, and in every how many there is a visit */
	char what;
	enum { TOLD, LATE, GUEST } when; /* it is known when a block begins */
};

enum { HOST_EACH = 8 };

/* The PSB+ of block `i` of a stretch, and how the kernel comes to run. Its time is told there; or
 * not before a visit; or a guest runs, whose time nobody knows, but in every so many blocks. */
static void put_start(struct pt_bytes *trace, const struct stretch *stretch, unsigned i,
		      uint64_t tsc)
{
	const bool is_guest = stretch->when == GUEST && i % HOST_EACH != 1;

	pt_put_psb(trace);
	if (tsc && stretch->when != LATE)
		pt_put_value(trace, PT_TSC, is_guest ? 1 : tsc);
	if (is_guest)
		pt_put(trace, &(struct pt_packet){ .kind = PT_PIP, .flag = true });
	pt_put_value(trace, PT_PSBEND, 0);
	if (is_guest)
		pt_put(trace, &(struct pt_packet){ .kind = PT_PIP });
	pt_put_ip(trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
}

/* A queue so long that only some of it is looked at: blocks with a PSB+ each, 100 ns after each
 * other, the first at 100, and with one visit or none. */
static void add_long_queue(struct fixture *fixture, unsigned number,
			   const struct stretch *stretches)
{
	static const uint8_t pad[10 * LONG_BLOCK];
	struct pt_bytes *trace = &fixture->traces[number];
	uint64_t tsc = 0;

	for (const struct stretch *stretch = stretches; stretch->blocks; stretch++)
		for (unsigned i = 0; i < stretch->blocks; i++) {
			size_t from = trace->size;

			tsc += fixture->config.tsc ? 100 : 0;
			put_start(trace, stretch, i, tsc);
			visit(trace, i % stretch->each ? '-' : stretch->what);
			if (stretch->when == LATE)
				pt_put_value(trace, PT_TSC, tsc);
			pt_put_bytes(trace, pad, fixture->block - (trace->size - from));
		}
	bench_queue_add(&fixture->queues[number], trace->data, trace->size, false);
}

static void begin_long(struct fixture *fixture, const struct stretch *one,
		       const struct stretch *other)
{
	add_long_queue(fixture, 0, one);
	add_long_queue(fixture, 1, other);
	begin_queues(fixture);
}

/* Since when the later copy's code is there, by what two CPUs visit for long. */
static uint64_t since_long(void **state, const struct stretch *one, const struct stretch *other)
{
	begin_long(set_up_replaced(state), one, other);
	return finish(state);
}

/* Until when the copy is to be believed where there is no later one. */
static uint64_t until(void **state, bool is_timed, const char *one, const char *other)
{
	struct replaced_module_list modules = { 0 };
	struct fixture *fixture;
	struct machine *host;
	uint64_t ret;

	set_up(state);
	fixture = *state;
	host = fixture->machines.host;
	if (!is_timed)
		fixture->config = (struct pt_config){ .have_event_trace = false };
	begin(fixture, one, other);
	code_visits_modules(&fixture->sources, &modules);
	assert_int_equal(modules.count, 1);
	assert_true(modules.items[0].machine == host && !strcmp(modules.items[0].name, "[old]"));
	ret = modules.items[0].since_ns;
	vec_free(&modules);
	trace_sources_free(&fixture->sources);
	tear_down(state);
	return ret;
}

static void a_later_copy_holds_from_between_the_visits_that_tell(void **state)
{
	assert_int_equal(since(state, "BBBAA", ""), 351);
	assert_int_equal(since(state, "B--AA", ""), 251);
	assert_int_equal(since(state, "BB--AA", "-B-B---"), 451);
	assert_int_equal(since(state, "-----A", "--BB---A"), 501);
	assert_int_equal(since(state, "AA", ""), 0);
}

static void without_evidence_all_is_as_copied(void **state)
{
	assert_true(since(state, "", "") == UINT64_MAX);
	assert_true(since(state, "BBBBB", "BB") == UINT64_MAX);
	assert_true(since(state, "BBBBA", "") == UINT64_MAX);
	assert_true(since(state, "ABAB", "BABA") == UINT64_MAX);
	assert_true(since(state, "AAAAAABBBBBB", "") == UINT64_MAX);
	assert_true(since(state, "xxxxxx", "yyyy") == UINT64_MAX);
	assert_true(since(state, "AAAA", "BBBB") == UINT64_MAX);
}

static void a_module_that_came_is_judged_as_a_whole(void **state)
{
	uint64_t found[2];

	replace_twice(state, "[new]", "[new]", found);
	assert_true(found[0] == 151 && found[1] == 151);
	replace_twice(state, "[new]", "[other]", found);
	assert_true(found[0] == UINT64_MAX && found[1] == UINT64_MAX);
}

static void there_may_be_many_modules(void **state)
{
	static char names[MANY][8];
	struct replaced_module_list list = { 0 };
	struct fixture *fixture = *state;
	struct machine *host = fixture->machines.host;
	struct pt_bytes *trace = &fixture->traces[0];

	fixture->config = (struct pt_config){ .have_event_trace = false };
	pt_put_psb(trace);
	pt_put_value(trace, PT_PSBEND, 0);
	pt_put_ip(trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
	for (uint64_t i = 0; i < MANY; i++) {
		const struct symbol symbol = { .start = module + (i + 1) * APART,
					       .name = "function",
					       .module = names[i] };

		(void)snprintf(names[i], sizeof(names[i]), "[m%u]", (unsigned)i);
		assert_int_equal(symbols_add(&host->symbols, &symbol), 0);
		assert_true(bench_add_code(host, symbol.start, fixture->before, SIZE));
		for (unsigned k = 0; k < 2; k++) {
			pt_put_ip(trace, PT_TIP, symbol.start + NOPL + 1, PT_IP_AUTO);
			pt_put_ip(trace, PT_TIP, kernel, PT_IP_AUTO);
		}
	}
	assert_int_equal(symbols_finish(&host->symbols, true), 0);
	bench_queue_add(&fixture->queues[0], trace->data, trace->size, false);
	fixture->sources = (struct trace_sources){ .config = &fixture->config,
						   .machines = &fixture->machines };
	assert_int_equal(trace_sources_add(&fixture->sources, &fixture->queues[0].queue,
					   &(struct flow_code){ .pid = 0 }),
			 0);
	code_visits_modules(&fixture->sources, &list);
	assert_int_equal(list.count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(list.items[i].since_ns, 0);
	vec_free(&list);
	trace_sources_free(&fixture->sources);
}

static void a_change_is_found_between_parts_of_a_long_trace(void **state)
{
	static const unsigned before[] = { 1, 2, 77, LONG / 2, LONG - 3, LONG - 2 };

	for (unsigned i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const struct stretch one[] = { { before[i], 1, 'B' },
					       { LONG - before[i], 1, 'A' },
					       { 0 } };

		assert_int_equal(since_long(state, one, &one[2]), 100 * before[i] + 51);
	}
}

static void a_long_trace_may_have_few_visits(void **state)
{
	const struct stretch seldom[] = { { 1300, 50, 'B' }, { 1300, 50, 'A' }, { 0 } };
	const struct stretch once[] = {
		{ 1300, 1, '-' }, { 1, 1, 'B' }, { 2, 1, 'A' }, { 1297, 1, '-' }, { 0 }
	};
	const struct stretch never[] = { { LONG, 1, '-' }, { 0 } };
	const struct stretch always[] = { { LONG, 3, 'A' }, { 0 } };

	assert_int_equal(since_long(state, seldom, &seldom[2]), 100 * (1251 + 1301) / 2 + 1);
	assert_int_equal(since_long(state, once, &once[4]), 130151);
	assert_true(since_long(state, never, &never[1]) == UINT64_MAX);
	assert_int_equal(since_long(state, always, &always[1]), 0);
}

static void all_queues_say_between_which_parts(void **state)
{
	const struct stretch one[] = { { 1000, 7, 'B' }, { 1600, 1, '-' }, { 0 } };
	const struct stretch other[] = { { 1500, 1, '-' }, { 1100, 9, 'A' }, { 0 } };

	assert_int_equal(since_long(state, one, other), 100 * (995 + 1501) / 2 + 1);
	assert_int_equal(since_long(state, other, one), 100 * (995 + 1501) / 2 + 1);
	assert_true(since_long(state, (struct stretch[]){ { LONG, 2, 'B' }, { 0 } },
			       (struct stretch[]){ { LONG, 2, 'A' }, { 0 } }) == UINT64_MAX);
}

static void a_long_trace_may_have_several_changes(void **state)
{
	const struct stretch one[] = { { 123, 2, 'B' }, { LONG - 123, 2, 'A' }, { 0 } };
	const struct stretch other[] = { { LONG - 55, 1, 'C' }, { 55, 1, 'D' }, { 0 } };
	uint64_t found[2];

	set_up_twice(state, "[new]", "[other]");
	begin_long(*state, one, other);
	finish_twice(state, found);
	assert_int_equal(found[0], 12351);
	assert_int_equal(found[1], 100 * (LONG - 55) + 51);
}

static void psbs_may_be_far_apart(void **state)
{
	const struct stretch blocks[] = { { 100, 3, 'B' }, { 160, 1, 'A' }, { 0 } };
	struct fixture *fixture = set_up_replaced(state);

	fixture->block = 10 * LONG_BLOCK;
	begin_long(fixture, blocks, &blocks[2]);
	assert_int_equal(finish(state), 10051);
}

static void a_visit_whose_time_is_not_known_is_no_vote(void **state)
{
	const struct stretch one[] = { { 1300, 1, 'B' }, { 1300, 1, 'A', LATE }, { 0 } };

	assert_in_range(since_long(state, one, &one[2]), 129900, 131000);
}

/* Visits are soon after a guest ran, of which nothing tells the host's time. */
static void a_clock_may_have_to_begin_before_a_part(void **state)
{
	enum { BEFORE = 50 * HOST_EACH, AFTER = 60 * HOST_EACH };
	const struct stretch blocks[] = { { BEFORE, 4, 'B', GUEST },
					  { HOST_EACH, 1, '-', GUEST },
					  { AFTER, 4, 'A', GUEST },
					  { 0 } };
	struct fixture *fixture = set_up_replaced(state);

	fixture->block = 2 * LONG_BLOCK;
	begin_long(fixture, blocks, &blocks[3]);
	assert_int_equal(finish(state), 100 * BEFORE - 199);
}

/* A trace without times, most of which is the same block over and over. */
static void no_more_than_so_much_is_looked_at(void **state)
{
	enum { HUGE = 50000, BEGIN = 12345 };
	const struct stretch blocks[] = { { 1, 1, '-' }, { 3, 1, 'A' }, { 0 } };
	struct fixture *fixture = set_up_replaced(state);
	struct bench_queue *queue = &fixture->queues[0];
	const uint8_t *data;

	fixture->config = (struct pt_config){ .have_event_trace = false };
	begin_long(fixture, blocks, &blocks[2]);
	data = fixture->traces[0].data;
	bench_queue_free(queue);
	for (unsigned i = 0; i < HUGE; i++)
		bench_queue_add(queue, i == BEGIN ? data + LONG_BLOCK : data,
				(i == BEGIN ? 3 : 1) * LONG_BLOCK, false);
	assert_true(finish(state) == UINT64_MAX);
}

static void where_nobody_goes_other_code_came(void **state)
{
	assert_int_equal(until(state, true, "BBBaa", "BB"), 351);
	assert_int_equal(until(state, true, "B-y-y", ""), 201);
	assert_int_equal(until(state, true, "ay", ""), 0);
}

static void what_may_be_is_believed(void **state)
{
	assert_true(until(state, true, "BBBBB", "") == UINT64_MAX);
	assert_true(until(state, true, "BBxxB", "xxxx") == UINT64_MAX); /* it may be patched */
	assert_true(until(state, true, "mmmmm", "") == UINT64_MAX);     /* an interrupt returns */
	assert_true(until(state, true, "BBBa", "") == UINT64_MAX);
	assert_true(until(state, true, "aBaB", "") == UINT64_MAX);
}

static void without_times_it_is_all_or_nothing(void **state)
{
	assert_true(until(state, false, "BBBaaa", "") == UINT64_MAX);
	assert_int_equal(until(state, false, "aaaa", "y"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_copy_holds_from_between_the_visits_that_tell),
		cmocka_unit_test(without_evidence_all_is_as_copied),
		cmocka_unit_test(a_module_that_came_is_judged_as_a_whole),
		cmocka_unit_test_setup_teardown(there_may_be_many_modules, set_up, tear_down),
		cmocka_unit_test(a_change_is_found_between_parts_of_a_long_trace),
		cmocka_unit_test(a_long_trace_may_have_few_visits),
		cmocka_unit_test(all_queues_say_between_which_parts),
		cmocka_unit_test(a_long_trace_may_have_several_changes),
		cmocka_unit_test(psbs_may_be_far_apart),
		cmocka_unit_test(a_visit_whose_time_is_not_known_is_no_vote),
		cmocka_unit_test(a_clock_may_have_to_begin_before_a_part),
		cmocka_unit_test(no_more_than_so_much_is_looked_at),
		cmocka_unit_test(where_nobody_goes_other_code_came),
		cmocka_unit_test(what_may_be_is_believed),
		cmocka_unit_test(without_times_it_is_all_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
