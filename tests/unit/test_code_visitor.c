#include "decode/flow/code_visitor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* A kernel that jumps into a function of a module, which returns. It was at first
 *     xor eax, eax; nopl 0(rax, rax); nop...; ret
 * and then
 *     jne; longer nops; ret
 * so that a visit has a branch, or none. */

enum { SIZE = 128, ASTRAY = 5, MIDDLE = 41, APART = 0x2000, VISITS_MAX = 8 };

static const uint64_t kernel = 0xffffffff81000000, nowhere = 0xffffffff81100000,
		      module = 0xffffffffc0200000;

static uint8_t before[SIZE], after[SIZE];

struct fixture {
	struct machines machines;
	struct pt_config config;
	struct pt_bytes trace;
	struct bench_queue queue;
	struct trace_sources sources;
	struct code_visitor visitor;
	bool is_late; /* the first visit is before the first time */
	char votes[VISITS_MAX + 1];
};

static void make_code(void)
{
	memset(before, 0x90, SIZE);
	memcpy(before, "\x31\xc0\x0f\x1f\x44\0\0", 7);
	memcpy(after, "\x75\0\x90", 3);
	for (unsigned i = 3; i + 2 < SIZE; i += 2)
		memcpy(after + i, "\x66\x90", 2);
	before[SIZE - 1] = after[SIZE - 1] = 0xc3;
}

static int set_up(void **state)
{
	const struct symbol symbol = { .start = module, .name = "function", .module = "[old]" };
	static struct fixture fixture;
	struct machine *host;

	fixture =
		(struct fixture){ .config = { .tsc = true, .conv = { .valid = true, .mult = 1 } } };
	make_code();
	assert_true(bench_machines_new(&fixture.machines));
	host = fixture.machines.host;
	assert_true(bench_add_code(host, kernel, "\xff\xe0", 2));
	assert_true(bench_add_code(host, module, before, SIZE));
	assert_int_equal(symbols_add(&host->symbols, &symbol), 0);
	assert_int_equal(symbols_finish(&host->symbols, true), 0);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	code_visitor_free(&f->visitor);
	trace_sources_free(&f->sources);
	bench_queue_free(&f->queue);
	pt_bytes_free(&f->trace);
	machines_free(&f->machines);
	return 0;
}

/* A later copy has other code there. */
static void replace(struct fixture *f, uint64_t address)
{
	assert_int_equal(later_code_add(&f->machines.host->later, address, before,
					(struct bytes){ after, SIZE }),
			 0);
}

static void put_tnt(struct fixture *f, uint8_t count)
{
	pt_put(&f->trace, &(struct pt_packet){ .kind = PT_TNT, .count = count });
}

/* A letter is what is visited: the function as it was Before or After, or as it never was (x); its
 * middle as it was before (m) or otherwise (y), a place within an instruction (a), one without code
 * (n), another function (C); or nothing (-). From `k` it returns to where no code is.
 */
static void visit(struct fixture *f, char what)
{
	static const uint64_t places[] = { ['m'] = MIDDLE, ['y'] = MIDDLE, ['a'] = ASTRAY,
					   ['n'] = SIZE,   ['C'] = APART,  [UINT8_MAX] = 0 };

	if (what == '-')
		return;
	pt_put_ip(&f->trace, PT_TIP, module + places[(uint8_t)what], PT_IP_AUTO);
	if (what == 'A')
		put_tnt(f, 1);
	if (what == 'x' || what == 'y')
		put_tnt(f, 3);
	pt_put_ip(&f->trace, PT_TIP, what == 'k' ? nowhere : kernel, PT_IP_AUTO);
}

static void begin_segment(struct fixture *f)
{
	pt_put_psb(&f->trace);
	pt_put_value(&f->trace, PT_PSBEND, 0);
	pt_put_ip(&f->trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
}

/* At `|` another segment begins. */
static void add_trace(struct fixture *f, const char *visits)
{
	begin_segment(f);
	for (unsigned i = 0; visits[i]; i++) {
		if (f->config.tsc && (i || !f->is_late))
			pt_put_value(&f->trace, PT_TSC, 100 * (i + 1));
		if (visits[i] == '|')
			begin_segment(f);
		else
			visit(f, visits[i]);
	}
	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
}

/* Look at a trace with these visits, 100 ns after each other, the first at 100. */
static void run(struct fixture *f, bool is_about_modules, const char *visits)
{
	const struct pt_offsets offsets = { 0 };
	const struct trace_source source = { .queue = &f->queue.queue };
	struct pt_segment segment;
	struct pt_walk walk;

	add_trace(f, visits);
	f->sources = (struct trace_sources){ .config = &f->config, .machines = &f->machines };
	code_visitor_init(&f->visitor, &f->sources, is_about_modules);
	pt_walk_init(&walk, &f->queue.queue, &f->config, &offsets, 0);
	while (!pt_walk_next(&walk, &segment))
		code_visitor_run(&f->visitor, &source, &segment);
	assert_false(f->visitor.is_out_of_memory);
}

/* The votes on the only code that was visited: for each visit B, A (it is other code), or none. */
static const char *votes_of(struct fixture *f, bool is_about_modules, const char *visits)
{
	const struct code_votes *votes;
	char *vote;

	run(f, is_about_modules, visits);
	assert_int_equal(f->visitor.visited.count, 1);
	votes = &f->visitor.visited.items[0]->votes;
	memset(f->votes, '-', strlen(visits));
	for (size_t i = 0; i < votes->count; i++) {
		assert_in_range(votes->items[i].time_ns, 100, 100 * strlen(visits));
		vote = &f->votes[votes->items[i].time_ns / 100 - 1];
		assert_int_equal(*vote, '-');
		*vote = votes->items[i].is_earlier ? 'B' : 'A';
	}
	return f->votes;
}

static void packets_agree_with_one_of_two_copies(void **state)
{
	replace(*state, module);
	assert_string_equal(votes_of(*state, false, "BA-AB"), "BA-AB");
}

static void what_both_or_neither_may_be_is_no_vote(void **state)
{
	replace(*state, module);
	assert_string_equal(votes_of(*state, false, "BxmA"), "B--A");
}

static void what_follows_soon_counts_as_well(void **state)
{
	replace(*state, module);
	assert_string_equal(votes_of(*state, false, "BkAB"), "B-AB");
}

static void each_segment_has_its_votes(void **state)
{
	replace(*state, module);
	assert_string_equal(votes_of(*state, false, "BA|BA"), "BA-BA");
}

static void without_a_later_copy_places_tell(void **state)
{
	assert_string_equal(votes_of(*state, true, "BaymxnB"), "BAA--AB");
}

static void code_that_was_not_replaced_is_not_visited(void **state)
{
	struct fixture *f = *state;

	replace(f, module + APART);
	run(f, false, "BBx");
	assert_int_equal(f->visitor.visited.count, 0);
	assert_int_equal(f->visitor.work, f->trace.size * WORK_SCAN);
}

static void what_came_together_is_one(void **state)
{
	const struct symbol symbols[] = {
		{ .start = module, .name = "a", .module = "[new]" },
		{ .start = module + APART, .name = "b", .module = "[new]" },
	};
	struct fixture *f = *state;
	struct machine *host = f->machines.host;

	assert_true(bench_add_code(host, module + APART, before, SIZE));
	for (unsigned i = 0; i < 2; i++) {
		replace(f, symbols[i].start);
		assert_int_equal(symbols_add(&host->later_symbols, &symbols[i]), 0);
	}
	assert_int_equal(symbols_finish(&host->later_symbols, true), 0);
	assert_int_equal(later_code_group(&host->later, &host->later_symbols), 0);
	assert_string_equal(votes_of(f, false, "CA"), "BA");
	assert_ptr_equal(f->visitor.visited.items[0]->later, host->later.ranges.items);
}

static void what_it_takes_is_known_by_size(void **state)
{
	struct fixture *f = *state;

	replace(f, module);
	run(f, false, "-B");
	assert_int_equal(f->visitor.work, f->trace.size * (WORK_SCAN + 2 * WORK_FOLLOW));
}

static void modules_are_followed_once(void **state)
{
	struct fixture *f = *state;

	run(f, true, "-B");
	assert_int_equal(f->visitor.work, f->trace.size * (WORK_SCAN + WORK_FOLLOW));
}

static void the_first_time_is_kept(void **state)
{
	struct fixture *f = *state;

	f->is_late = true;
	run(f, true, "--B");
	assert_int_equal(f->visitor.first_ns, 200);
}

static void before_the_first_time_there_may_be_votes(void **state)
{
	struct fixture *f = *state;

	f->is_late = true;
	run(f, true, "BB");
	assert_int_equal(f->visitor.visited.items[0]->votes.seen, 2);
}

static void but_not_where_segments_stand_alone(void **state)
{
	struct fixture *f = *state;

	f->is_late = f->visitor.needs_clock = true;
	assert_string_equal(votes_of(f, true, "BB"), "-B");
}

static void a_trace_without_times_has_but_one(void **state)
{
	const struct code_votes *votes;
	struct fixture *f = *state;

	f->config = (struct pt_config){ .conv = { .valid = true, .mult = 1, .zero = 7 } };
	run(f, true, "BaB");
	votes = &f->visitor.visited.items[0]->votes;
	assert_int_equal(votes->count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(votes->items[i].time_ns, 0);
}

/* The first byte of the function as the machine has it. */
static uint8_t byte_there(struct fixture *f)
{
	struct code_view view;

	assert_int_equal(machine_code(f->machines.host, -1, module, 0, &view), 0);
	return view.data[0];
}

static void in_the_end_code_is_that_of_its_time(void **state)
{
	struct fixture *f = *state;

	replace(f, module);
	run(f, false, "B");
	assert_int_equal(byte_there(f), after[0]);
	code_visitor_free(&f->visitor);
	assert_int_equal(byte_there(f), before[0]);
}

static void about_modules_code_is_left_as_it_is(void **state)
{
	const struct symbol symbol = { .start = module, .name = "function", .module = "[new]" };
	struct fixture *f = *state;
	struct machine *host = f->machines.host;

	replace(f, module);
	assert_int_equal(symbols_add(&host->later_symbols, &symbol), 0);
	assert_int_equal(symbols_finish(&host->later_symbols, true), 0);
	machine_replaced_assume(host, LATER_ALWAYS);
	assert_string_equal(votes_of(f, true, "AB"), "B-");
	code_visitor_free(&f->visitor);
	assert_int_equal(byte_there(f), after[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_agree_with_one_of_two_copies),
		TEST(what_both_or_neither_may_be_is_no_vote),
		TEST(what_follows_soon_counts_as_well),
		TEST(each_segment_has_its_votes),
		TEST(without_a_later_copy_places_tell),
		TEST(code_that_was_not_replaced_is_not_visited),
		TEST(what_came_together_is_one),
		TEST(what_it_takes_is_known_by_size),
		TEST(modules_are_followed_once),
		TEST(the_first_time_is_kept),
		TEST(before_the_first_time_there_may_be_votes),
		TEST(but_not_where_segments_stand_alone),
		TEST(a_trace_without_times_has_but_one),
		TEST(in_the_end_code_is_that_of_its_time),
		TEST(about_modules_code_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
