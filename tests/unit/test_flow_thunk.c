#include "decode/flow/flow_thunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/flow/flow_packet.h"
#include "tests/flow_fixture.h"
#include "tests/sim_random.h"

/* A kernel that calls and jumps by thunks of which there is no code (from KERNEL on):
 *	00 call 10; jmp *%rax			a function
 *	10 nops; 18 call 100000; ret		a function
 *	20 nops; 28 jmp 100000			a function
 *	30 je 32; ret				a function
 *	40 call 100000; ret			a function */
enum {
	BY_CALL = 0x10,
	AT_CALL = 0x18,
	BY_JUMP = 0x20,
	TARGET = 0x30,
	FTRACED = 0x40,
	SIZE = 0x50,
	THUNK = 0x100000,
};

static const uint64_t kernel = 0xffffffff81000000;

static void set_code(struct flow_fixture *f, uint64_t base)
{
	uint8_t code[SIZE];

	memset(code, 0x90, sizeof(code));
	memcpy(code, "\xe8\x0b\0\0\0\xff\xe0", 7);
	memcpy(code + AT_CALL, "\xe8\xe3\xff\x0f\0\xc3", 6);
	memcpy(code + BY_JUMP + 8, "\xe9\xd3\xff\x0f\0", 5);
	memcpy(code + TARGET, "\x74\0\xc3", 3);
	memcpy(code + FTRACED, "\xe8\xbb\xff\x0f\0\xc3", 6);
	flow_fixture_code(f, base, code, sizeof(code));
}

static int set_up(void **state)
{
	static struct flow_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture);
	set_code(&fixture, kernel);
	for (uint64_t at = 0; at < SIZE; at += 0x10)
		assert_true(bench_add_function(fixture.machines.host, kernel + at));
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	flow_fixture_deinit(*state);
	return 0;
}

static void put_tip(struct flow_fixture *f, uint64_t ip)
{
	pt_put_ip(&f->trace, PT_TIP, ip, PT_IP_AUTO);
}

/* The last of `bits` is the newest branch. */
static void put_tnt(struct flow_fixture *f, unsigned bits, unsigned count)
{
	pt_put(&f->trace,
	       &(struct pt_packet){ .kind = PT_TNT, .payload = bits, .count = (uint16_t)count });
}

static void follow(struct flow_fixture *f, uint64_t ip)
{
	flow_fixture_begin(f, ip, false);
	while (!flow_next(&f->run))
		;
}

static void what_a_thunk_calls_returns_behind_the_call(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, kernel + TARGET);
	put_tnt(f, 3, 3); /* not taken, return, return */
	follow(f, kernel);
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:10+) TO(ffffffff81000030) GAP(7) "
			       "AT(ffffffff81100000) BLOCK(ffffffff81000030:1) "
			       "BLOCK(ffffffff81000032:1+) TO(ffffffff8100001d) "
			       "BLOCK(ffffffff8100001d:1+) TO(ffffffff81000005)");
	assert_int_equal(f->flow.gaps, 0);
	assert_false(f->flow.disagrees);
}

static void a_jump_by_a_thunk_opens_no_call(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, kernel + TARGET);
	put_tnt(f, 1, 2);
	flow_fixture_begin(f, kernel + BY_JUMP, false);
	return_stack_push(&f->flow.calls, kernel + 5);
	while (!flow_next(&f->run))
		;
	flow_fixture_expect(f, "BLOCK(ffffffff81000020:9+) TO(ffffffff81000030) GAP(7) "
			       "AT(ffffffff81100000) BLOCK(ffffffff81000030:1) "
			       "BLOCK(ffffffff81000032:1+) TO(ffffffff81000005)");
}

static void what_packets_refute_is_other_code(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, kernel + TARGET);
	put_tnt(f, 0, 2); /* a return is always taken */
	follow(f, kernel + BY_CALL);
	flow_fixture_expect(f, "BLOCK(ffffffff81000010:9) TIME(0) GAP(1) AT(ffffffff81100000) "
			       "BEGIN(ffffffff81000030) BLOCK(ffffffff81000030:1) "
			       "BLOCK(ffffffff81000032:1+) TIME(0) GAP(2) AT(ffffffff81000032)");
	assert_true(f->flow.disagrees);
}

/* Rounds through both functions; after five addresses that agree nothing is tried any more. */
static void a_thunk_that_was_found_is_not_tried_again(void **state)
{
	enum { ROUNDS = 8 };
	struct flow_fixture *f = *state;
	uint64_t steps;

	for (unsigned i = 0; i < ROUNDS; i++) {
		put_tip(f, kernel + TARGET);
		put_tnt(f, 3, 3);
		put_tip(f, kernel);
	}
	flow_fixture_begin(f, kernel, false);
	assert_int_equal(flow_next(&f->run), 0);
	assert_int_equal(f->flow.thunks[block_slot(kernel + THUNK, FLOW_THUNKS - 1)],
			 kernel + THUNK);
	steps = f->flow.return_steps;
	while (!flow_next(&f->run))
		;
	assert_int_equal(f->flow.return_steps, steps);
	assert_int_equal(f->flow.gaps, 0);
}

/* Where functions begin, calls are those of ftrace, which may be gone. */
static void a_call_at_the_beginning_of_a_function_is_by_no_thunk(void **state)
{
	struct flow_fixture *f = *state;

	put_tip(f, kernel + TARGET);
	follow(f, kernel + FTRACED);
	flow_fixture_expect(f, "BLOCK(ffffffff81000040:1) TIME(0) GAP(1) AT(ffffffff81100000) "
			       "BEGIN(ffffffff81000030)");
	assert_true(f->flow.disagrees);
}

static void programs_have_no_thunks_of_the_kernel(void **state)
{
	struct flow_fixture *f = *state;

	set_code(f, 0x401000);
	put_tip(f, 0x401000 + TARGET);
	follow(f, 0x401000 + BY_CALL);
	flow_fixture_expect(f, "BLOCK(401010:9) TIME(0) GAP(1) AT(501000) BEGIN(401030)");
}

/* Functions that each call two of those behind it, by thunks:
 *	00 nops; 08 je 0a; call a thunk; 0f je 11; call another; 16 ret */
enum { FUNCTIONS = 8, FUNCTION_SIZE = 0x20, CALLS = 2, ENTRY_INSNS = 8, CALL_OFFSET = 7 };

struct machine_run {
	struct flow_fixture *f;
	struct sim_random random;
	uint64_t insns;
	unsigned thunks, bits, count; /* of TNT that were not written yet */
};

static void make_functions(struct flow_fixture *f, uint64_t base)
{
	uint8_t code[FUNCTIONS * FUNCTION_SIZE];

	memset(code, 0x90, sizeof(code));
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		uint8_t *at = code + (size_t)i * FUNCTION_SIZE + ENTRY_INSNS;

		assert_true(bench_add_function(f->machines.host, base + i * FUNCTION_SIZE));
		for (unsigned k = 0; k < CALLS; k++, at += CALL_OFFSET)
			memcpy(at, "\x74\0\xe8\0\0\x10\0", CALL_OFFSET);
		*at = 0xc3;
	}
	flow_fixture_code(f, base, code, sizeof(code));
}

static void write_bits(struct machine_run *run)
{
	if (run->count)
		put_tnt(run->f, run->bits, run->count);
	run->bits = run->count = 0;
}

static void add_bit(struct machine_run *run, bool bit)
{
	run->bits = run->bits << 1 | bit;
	if (++run->count == 6)
		write_bits(run);
}

static void run_leaf(struct machine_run *run)
{
	put_tip(run->f, kernel + TARGET);
	add_bit(run, sim_random_below(&run->random, 2));
	run->insns++;
}

/* All but its return. */
static void run_function(struct machine_run *run, uint64_t base, unsigned number)
{
	run->insns += ENTRY_INSNS;
	for (unsigned k = 0; k < CALLS; k++) {
		unsigned callee = number + 1;

		callee += sim_random_below(&run->random, FUNCTIONS - number);
		add_bit(run, sim_random_below(&run->random, 2));
		write_bits(run);
		run->thunks++;
		if (callee == FUNCTIONS) {
			run_leaf(run);
		} else {
			put_tip(run->f, base + callee * FUNCTION_SIZE);
			run_function(run, base, callee);
		}
		add_bit(run, true);
		run->insns += 3;
	}
	write_bits(run);
}

static void whatever_thunks_call_is_followed_to_its_end(void **state)
{
	enum { SEEDS = 32, BASE = 0x1000 };
	struct flow_fixture *f = *state;

	make_functions(f, kernel + BASE);
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct machine_run run = { .f = f, .random = { seed } };
		unsigned thunks = 0;

		pt_bytes_free(&f->trace);
		f->trace = (struct pt_bytes){ 0 };
		run_function(&run, kernel + BASE, seed % FUNCTIONS);
		follow(f, kernel + BASE + seed % FUNCTIONS * FUNCTION_SIZE);
		for (uint32_t i = 0; i < f->batch.count; i++)
			thunks += f->batch.items[i].kind == FLOW_GAP;
		assert_int_equal(thunks, run.thunks);
		assert_int_equal(f->flow.gaps, 0);
		assert_int_equal(f->flow.insns, run.insns);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_thunk_calls_returns_behind_the_call),
		TEST(a_jump_by_a_thunk_opens_no_call),
		TEST(what_packets_refute_is_other_code),
		TEST(a_thunk_that_was_found_is_not_tried_again),
		TEST(a_call_at_the_beginning_of_a_function_is_by_no_thunk),
		TEST(programs_have_no_thunks_of_the_kernel),
		TEST(whatever_thunks_call_is_followed_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
