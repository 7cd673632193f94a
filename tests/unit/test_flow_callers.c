#include "decode/flow/flow_callers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/flow/flow_guess.h"
#include "tests/gap_fixture.h"

/* Functions of a kernel, each FUNCTION bytes from the one before:
 *	ROUND	call LEAF; jmp to the call
 *	ONCE	call LEAF; ret
 *	AROUND	call ONCE; jmp to the call
 *	BRANCH	call LEAF; jmp *%rax
 *	LEAF	ret
 * NOWHERE has no code. */
enum { ROUND, ONCE, AROUND, BRANCH, LEAF, FUNCTIONS };

enum { FUNCTION = 0x20, SIZE = FUNCTIONS * FUNCTION, NOWHERE = 0x10000, CALL_SIZE = 5 };

static const uint64_t base = 0xffffffff81000000;

static uint64_t ip_of(unsigned function)
{
	return base + function * FUNCTION;
}

static uint64_t behind_call(unsigned function)
{
	return ip_of(function) + CALL_SIZE;
}

/* A function that begins with a call, and what is behind that. */
static void put(uint8_t *code, int function, int callee, const void *behind, size_t size)
{
	int32_t distance = (callee - function) * FUNCTION - CALL_SIZE;

	code += function * FUNCTION;
	*code = 0xe8;
	memcpy(code + 1, &distance, sizeof(distance));
	memcpy(code + CALL_SIZE, behind, size);
}

/* `which` are there, by bits, and LEAF. */
static void add_code(struct flow_fixture *f, unsigned which)
{
	uint8_t code[SIZE];

	memset(code, 0xcc, SIZE);
	if (which & 1 << ROUND)
		put(code, ROUND, LEAF, "\xeb\xf9", 2);
	if (which & 1 << ONCE)
		put(code, ONCE, LEAF, "\xc3", 1);
	if (which & 1 << AROUND)
		put(code, AROUND, ONCE, "\xeb\xf9", 2);
	if (which & 1 << BRANCH)
		put(code, BRANCH, LEAF, "\xff\xe0", 2);
	code[LEAF * FUNCTION] = 0xc3;
	flow_fixture_code(f, base, code, SIZE);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_true(bench_add_function(f->machines.host, ip_of(i)));
}

/* A packet leads to LEAF, and so many returns follow. */
static void follow(struct gap_fixture *fixture, unsigned which, unsigned returns)
{
	gap_fixture_init(fixture);
	add_code(&fixture->f, which);
	gap_fixture_tip(fixture, ip_of(LEAF));
	gap_fixture_return(fixture, returns);
	gap_fixture_follow(fixture, base + NOWHERE);
}

/* Where LEAF is found to return to; 0 if nowhere. */
static uint64_t place_among(unsigned which, unsigned returns)
{
	struct gap_fixture fixture;
	uint64_t ret = 0;

	follow(&fixture, which, returns);
	for (uint32_t i = 0; i < fixture.f.batch.count && !ret; i++)
		if (fixture.f.batch.items[i].kind == FLOW_TO)
			ret = fixture.f.batch.items[i].value;
	flow_fixture_deinit(&fixture.f);
	return ret;
}

static void what_agrees_is_behind_a_call(void **state)
{
	const unsigned which = 1 << ROUND | 1 << BRANCH | 1 << ONCE;

	assert_int_equal(place_among(which, 60), behind_call(ROUND));
	assert_int_equal(place_among(which, 30), behind_call(ROUND));
}

static void little_does_not_tell(void **state)
{
	assert_int_equal(place_among(1 << ROUND, 1 + 19), 0);
	assert_int_equal(place_among(1 << ROUND, 1 + 20), behind_call(ROUND));
}

static void further_returns_are_tried_too(void **state)
{
	const unsigned which = 1 << AROUND | 1 << BRANCH | 1 << ONCE;

	assert_int_equal(place_among(which, 60), behind_call(ONCE));
	assert_int_equal(place_among(1 << BRANCH | 1 << ONCE, 60), 0);
}

static void of_calls_that_are_alike_there_is_no_telling(void **state)
{
	assert_int_equal(place_among(1 << ROUND | 1 << AROUND | 1 << ONCE, 60), 0);
}

static void nothing_is_taken_from_other_searches(void **state)
{
	struct gap_fixture fixture;
	const struct pt_flow *flow = &fixture.f.flow;

	follow(&fixture, 1 << BRANCH, 60);
	assert_true(flow->caller_steps < flow_guess_steps(&flow->segment));
	assert_int_equal(flow->return_steps, flow_guess_steps(&flow->segment));
	flow_fixture_deinit(&fixture.f);
}

static void there_is_an_end_to_trying(void **state)
{
	struct gap_fixture fixture;

	gap_fixture_init(&fixture);
	add_code(&fixture.f, 1 << ROUND);
	flow_fixture_begin(&fixture.f, ip_of(LEAF), false);
	fixture.f.flow.block = flow_fixture_block(&fixture.f, ip_of(LEAF));
	fixture.f.flow.where.inference = &fixture.inference;
	fixture.f.flow.caller_steps = 0;
	assert_false(flow_callers_find(&fixture.f.flow, &(struct return_place){ 0 }));
	fixture.f.flow.caller_steps = 1;
	assert_false(flow_callers_find(&fixture.f.flow, &(struct return_place){ 0 }));
	assert_int_equal(fixture.f.flow.caller_steps, 0);
	patch_inference_free(&fixture.inference);
	flow_fixture_deinit(&fixture.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_agrees_is_behind_a_call),
		cmocka_unit_test(little_does_not_tell),
		cmocka_unit_test(further_returns_are_tried_too),
		cmocka_unit_test(of_calls_that_are_alike_there_is_no_telling),
		cmocka_unit_test(nothing_is_taken_from_other_searches),
		cmocka_unit_test(there_is_an_end_to_trying),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
