#include "decode/flow/return_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void push(struct return_stack *stack, uint64_t from, uint64_t to)
{
	for (uint64_t ip = from; ip <= to; ip++)
		return_stack_push(stack, ip);
}

static void the_last_64_calls_can_return(void **state)
{
	struct return_stack stack = { 0 };
	uint64_t ip;

	push(&stack, 1, RETURN_STACK + 2);
	for (uint64_t i = RETURN_STACK + 2; i > 2; i--) {
		assert_int_equal(return_stack_last(&stack), i);
		assert_true(return_stack_pop(&stack, &ip));
		assert_int_equal(ip, i);
	}
	assert_false(return_stack_pop(&stack, &ip));
}

static void no_call_from_before_a_gap_can_return(void **state)
{
	struct return_stack stack = { 0 };
	uint64_t ip;

	push(&stack, 1, 3);
	return_stack_doubt(&stack);
	assert_false(return_stack_pop(&stack, &ip));
	assert_true(stack.is_cut);
	push(&stack, 4, 4);
	assert_true(return_stack_pop(&stack, &ip));
	assert_int_equal(ip, 4);
	assert_false(return_stack_pop(&stack, &ip));
	assert_int_equal(stack.doubts, 3);
	assert_int_equal(return_stack_doubted(&stack, 0), 3);
	assert_int_equal(return_stack_doubted(&stack, 2), 1);
}

static void what_is_trusted_again_can(void **state)
{
	struct return_stack stack = { 0 };
	uint64_t ip;

	push(&stack, 1, 3);
	return_stack_doubt(&stack);
	return_stack_drop_doubted(&stack, 1);
	return_stack_trust(&stack);
	assert_int_equal(stack.doubts, 0);
	assert_true(return_stack_pop(&stack, &ip));
	assert_int_equal(ip, 2);
	assert_true(return_stack_pop(&stack, &ip));
	assert_int_equal(ip, 1);
	assert_false(return_stack_pop(&stack, &ip));
}

static void no_more_are_doubted_than_there_is_room_for(void **state)
{
	struct return_stack stack = { 0 };

	push(&stack, 1, RETURN_STACK);
	return_stack_doubt(&stack);
	push(&stack, 1, RETURN_STACK);
	return_stack_doubt(&stack);
	assert_int_equal(stack.doubts, RETURN_STACK);
}

static void a_psb_ends_all_doubt(void **state)
{
	struct return_stack stack = { 0 };

	push(&stack, 1, 3);
	return_stack_doubt(&stack);
	push(&stack, 4, 4);
	return_stack_clear(&stack);
	assert_int_equal(stack.count, 0);
	assert_int_equal(stack.doubts, 0);
	assert_false(stack.is_cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_64_calls_can_return),
		cmocka_unit_test(no_call_from_before_a_gap_can_return),
		cmocka_unit_test(what_is_trusted_again_can),
		cmocka_unit_test(no_more_are_doubted_than_there_is_room_for),
		cmocka_unit_test(a_psb_ends_all_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
