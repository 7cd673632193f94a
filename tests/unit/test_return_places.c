#include "decode/flow/return_places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gap_fixture.h"

enum { RET = 0x1040 };

static const uint64_t kernel = 0xffffffff81000000;

/* The flow is at RET, behind a gap in calls that return to these. */
static struct pt_flow *doubt(struct gap_fixture *fixture, const uint64_t *ips, unsigned count)
{
	struct pt_flow *flow = &fixture->f.flow;

	gap_fixture_init(fixture);
	flow_fixture_begin(&fixture->f, RET, false);
	flow->where.inference = &fixture->inference;
	flow->block = flow_fixture_block(&fixture->f, RET);
	for (unsigned i = 0; i < count; i++)
		return_stack_push(&flow->calls, ips[i]);
	return_stack_doubt(&flow->calls);
	return flow;
}

static void done(struct gap_fixture *fixture)
{
	patch_inference_free(&fixture->inference);
	flow_fixture_deinit(&fixture->f);
}

static void the_innermost_call_comes_first(void **state)
{
	const uint64_t ips[] = { 0x1000, 0x2000, kernel, 0x3000, 0x2000 };
	struct return_places places = { 0 };
	struct gap_fixture fixture;

	return_places_add_open(&places, doubt(&fixture, ips, 5));
	assert_int_equal(places.count, 3);
	assert_int_equal(places.items[0].ip, 0x2000);
	assert_int_equal(places.items[0].popped, 1);
	assert_int_equal(places.items[1].ip, 0x3000);
	assert_int_equal(places.items[1].popped, 2);
	assert_int_equal(places.items[2].ip, 0x1000);
	assert_int_equal(places.items[2].popped, 5);
	done(&fixture);
}

static void calls_far_out_are_left_out(void **state)
{
	const uint64_t ips[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct return_places places = { 0 };
	struct gap_fixture fixture;

	return_places_add_open(&places, doubt(&fixture, ips, 10));
	assert_int_equal(places.count, RETURN_OPEN_CALLS);
	assert_int_equal(places.items[RETURN_OPEN_CALLS - 1].ip, 3);
	done(&fixture);
}

static void where_it_returned_elsewhere_is_a_place(void **state)
{
	const uint64_t ips[] = { 0x1000 };
	struct return_places places = { 0 };
	struct gap_fixture fixture;
	struct pt_flow *flow = doubt(&fixture, ips, 1);

	return_sites_note(&fixture.inference.returns, flow->block, 0x4000);
	return_sites_note(&fixture.inference.returns, flow->block, 0x1000);
	return_places_add_open(&places, flow);
	return_places_add_seen(&places, flow);
	assert_int_equal(places.count, 2);
	assert_int_equal(places.items[1].ip, 0x4000);
	assert_int_equal(places.items[1].popped, 0);
	done(&fixture);
}

static void what_returns_to_many_places_has_none(void **state)
{
	struct return_places places = { 0 };
	struct gap_fixture fixture;
	struct pt_flow *flow = doubt(&fixture, NULL, 0);

	for (uint64_t ip = 1; ip <= RETURN_SITES + 1; ip++)
		return_sites_note(&fixture.inference.returns, flow->block, ip);
	return_places_add_seen(&places, flow);
	assert_int_equal(places.count, 0);
	done(&fixture);
}

/* FUNCTION is there, and so many calls of it. */
static void add_callers(struct machine *machine, unsigned count)
{
	enum { CALL_SIZE = 5, FUNCTION = 0x10 };
	uint8_t code[FUNCTION + CALL_SIZE * RETURN_PLACES];

	memset(code, 0xc3, sizeof(code));
	for (unsigned i = 0; i < count; i++) {
		int32_t distance = -(int32_t)(FUNCTION + (i + 1) * CALL_SIZE);

		code[FUNCTION + i * CALL_SIZE] = 0xe8;
		memcpy(code + FUNCTION + i * CALL_SIZE + 1, &distance, sizeof(distance));
	}
	assert_true(bench_add_code(machine, kernel, code, sizeof(code)));
	assert_true(bench_add_function(machine, kernel));
	assert_true(bench_add_function(machine, kernel + FUNCTION));
}

/* How many places there are behind so many calls and one that is doubted; 0: they are not known. */
static unsigned count_of(unsigned callers)
{
	const uint64_t ips[] = { kernel + 0x15 };
	struct return_places places = { 0 };
	struct gap_fixture fixture;
	struct pt_flow *flow = doubt(&fixture, ips, 1);
	unsigned ret = 0;

	if (callers)
		add_callers(fixture.f.machines.host, callers);
	else
		flow_fixture_code(&fixture.f, kernel, "\xc3", 1);
	flow->ip = kernel;
	flow->block = flow_fixture_block(&fixture.f, kernel);
	return_places_add_open(&places, flow);
	assert_int_equal(places.count, 1);
	if (return_places_add_callers(&places, flow))
		ret = places.count;
	done(&fixture);
	return ret;
}

static void calls_in_the_kernels_code_are_places(void **state)
{
	assert_int_equal(count_of(1), 1);
	assert_int_equal(count_of(3), 3);
	assert_int_equal(count_of(RETURN_PLACES - 1), RETURN_PLACES - 1);
}

static void too_many_calls_are_none(void **state)
{
	assert_int_equal(count_of(RETURN_PLACES), 0);
}

static void of_unknown_functions_no_call_is_known(void **state)
{
	assert_int_equal(count_of(0), 0);
}

static void calls_inside_have_returned(void **state)
{
	const uint64_t ips[] = { 0x1000, 0x2000, 0x3000 };
	struct gap_fixture fixture;
	struct pt_flow *flow = doubt(&fixture, ips, 3);

	return_place_enter(&(struct return_place){ 0x2000, 2 }, flow);
	assert_int_equal(flow->state, FLOW_RUNNING);
	assert_int_equal(flow->ip, 0x2000);
	assert_null(flow->block);
	assert_int_equal(flow->calls.doubts, 1);
	assert_int_equal(return_stack_doubted(&flow->calls, 0), 0x1000);
	done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_innermost_call_comes_first),
		cmocka_unit_test(calls_far_out_are_left_out),
		cmocka_unit_test(where_it_returned_elsewhere_is_a_place),
		cmocka_unit_test(what_returns_to_many_places_has_none),
		cmocka_unit_test(calls_in_the_kernels_code_are_places),
		cmocka_unit_test(too_many_calls_are_none),
		cmocka_unit_test(of_unknown_functions_no_call_is_known),
		cmocka_unit_test(calls_inside_have_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
