/* call_stack: depth by calls and returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/print/call_stack.h"
#include "decode/print/sample_flags.h"

enum { CALL = SAMPLE_BRANCH | SAMPLE_CALL, RETURN = SAMPLE_BRANCH | SAMPLE_RETURN };

/* A call at `from`, five bytes long. */
static void call(struct call_stack *stack, uint64_t from, uint64_t to)
{
	call_stack_follow(stack, CALL, from, from + 5, to);
}

static void ret(struct call_stack *stack, uint64_t from, uint64_t to)
{
	call_stack_follow(stack, RETURN, from, from + 1, to);
}

static void a_return_undoes_its_call(void **state)
{
	static struct call_stack stack;

	call(&stack, 0x1000, 0x2000);
	call(&stack, 0x2000, 0x3000);
	assert_int_equal(stack.depth, 2);
	ret(&stack, 0x3010, 0x2005);
	assert_int_equal(stack.depth, 1);
	ret(&stack, 0x2010, 0x1005);
	assert_int_equal(stack.depth, 0);
}

static void a_return_may_leave_several_functions(void **state)
{
	static struct call_stack stack;

	call(&stack, 0x1000, 0x2000);
	call(&stack, 0x2000, 0x3000);
	call(&stack, 0x3000, 0x4000);
	ret(&stack, 0x4000, 0x1005);
	assert_int_equal(stack.depth, 0);
}

static void a_return_to_a_call_before_the_trace_changes_nothing(void **state)
{
	static struct call_stack stack;

	call(&stack, 0x1000, 0x2000);
	ret(&stack, 0x2000, 0x9999);
	assert_int_equal(stack.depth, 1);
}

static void a_call_of_the_next_instruction_is_none(void **state)
{
	static struct call_stack stack;

	call(&stack, 0x1000, 0x1005);
	assert_int_equal(stack.depth, 0);
}

static void a_call_that_ended_the_trace_is_over_when_it_begins_again(void **state)
{
	static struct call_stack stack;

	call(&stack, 0x1000, 0x2000);
	call_stack_follow(&stack, CALL | SAMPLE_TRACE_END, 0x2000, 0x2005, 0x3000);
	assert_int_equal(stack.depth, 2);
	call_stack_follow(&stack, SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN, 0, 0, 0x2100);
	assert_int_equal(stack.depth, 1);
	call_stack_follow(&stack, SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN, 0, 0, 0x1005);
	assert_int_equal(stack.depth, 0); /* it returned while the trace was off */
}

static void entering_and_leaving_a_guest_is_no_call(void **state)
{
	static struct call_stack stack;

	call(&stack, 0x1000, 0x2000);
	call_stack_follow(&stack, CALL | SAMPLE_VMENTRY, 0x2000, 0x2003, 0x8000);
	call_stack_follow(&stack, CALL | SAMPLE_ASYNC | SAMPLE_VMEXIT, 0x8000, 0x8000, 0x2100);
	assert_int_equal(stack.depth, 1);
}

static void the_deepest_calls_push_out_the_outermost(void **state)
{
	static struct call_stack stack;

	for (uint64_t i = 0; i < 2 * CALL_STACK_MAX; i++)
		call(&stack, 0x1000 + 16 * i, 0x100000 + 16 * i);
	assert_int_equal(stack.depth, CALL_STACK_MAX);
	ret(&stack, 0x1, 0x1005); /* the first is forgotten */
	assert_int_equal(stack.depth, CALL_STACK_MAX);
	ret(&stack, 0x1, 0x1005 + 16 * (2 * CALL_STACK_MAX - 2));
	assert_int_equal(stack.depth, CALL_STACK_MAX - 2);
}

static void each_thread_and_side_has_its_own_depth(void **state)
{
	struct call_stacks stacks = { 0 };

	call(call_stack_of(&stacks, 7, false), 0x1000, 0x2000);
	call(call_stack_of(&stacks, 8, true), 0x1000, 0x2000);
	assert_int_equal(call_stack_of(&stacks, 7, false)->depth, 1);
	assert_int_equal(call_stack_of(&stacks, 7, true)->depth, 0);
	assert_int_equal(call_stack_of(&stacks, 8, true)->depth, 1);
	call_stacks_free(&stacks);
}

static void memory_does_not_grow_with_the_number_of_threads(void **state)
{
	struct call_stacks stacks = { 0 };

	for (int32_t tid = 0; tid < 10000; tid++)
		call(call_stack_of(&stacks, tid, false), 0x1000, 0x2000);
	assert_true(stacks.threads.count <= 64);
	assert_int_equal(call_stack_of(&stacks, 9999, false)->depth, 1);
	assert_int_equal(call_stack_of(&stacks, 0, false)->depth, 0);
	call_stacks_free(&stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_return_undoes_its_call),
		cmocka_unit_test(a_return_may_leave_several_functions),
		cmocka_unit_test(a_return_to_a_call_before_the_trace_changes_nothing),
		cmocka_unit_test(a_call_of_the_next_instruction_is_none),
		cmocka_unit_test(a_call_that_ended_the_trace_is_over_when_it_begins_again),
		cmocka_unit_test(entering_and_leaving_a_guest_is_no_call),
		cmocka_unit_test(the_deepest_calls_push_out_the_outermost),
		cmocka_unit_test(each_thread_and_side_has_its_own_depth),
		cmocka_unit_test(memory_does_not_grow_with_the_number_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
