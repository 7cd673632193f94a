#include "decode/print/call_stack.h"

#include <string.h>

#include "decode/base/vec.h"
#include "decode/print/sample_flags.h"

/* More threads than this in one queue are rare; the stacks of the oldest are then forgotten. */
enum { MOST_THREADS = 64 };

struct call_thread {
	int32_t tid;
	struct call_stack *sides; /* host, guest */
	struct last_branches branches;
};

static struct call_thread *add_thread(struct call_stacks *stacks, int32_t tid)
{
	struct call_stack *sides;

	if (stacks->threads.count == MOST_THREADS) {
		struct call_thread *items = stacks->threads.items;

		sides = items[0].sides;
		sides[0].depth = sides[1].depth = 0;
		last_branches_free(&items[0].branches);
		memmove(items, items + 1, (MOST_THREADS - 1) * sizeof(*items));
		items[MOST_THREADS - 1] = (struct call_thread){ .tid = tid, .sides = sides };
		return &items[MOST_THREADS - 1];
	}
	sides = calloc(2, sizeof(*sides));
	if (!sides ||
	    !vec_push(&stacks->threads, (struct call_thread){ .tid = tid, .sides = sides })) {
		free(sides);
		return NULL;
	}
	return &stacks->threads.items[stacks->threads.count - 1];
}

static struct call_thread *thread_of(struct call_stacks *stacks, int32_t tid)
{
	struct call_thread *thread = stacks->last;

	for (size_t i = 0; (!thread || thread->tid != tid) && i < stacks->threads.count; i++)
		thread = &stacks->threads.items[i];
	if (!thread || thread->tid != tid)
		thread = add_thread(stacks, tid);
	stacks->last = thread;
	return thread;
}

struct call_stack *call_stack_of(struct call_stacks *stacks, int32_t tid, bool guest)
{
	struct call_thread *thread = thread_of(stacks, tid);

	return thread ? &thread->sides[guest] : NULL;
}

struct last_branches *call_stacks_branches(struct call_stacks *stacks, int32_t tid)
{
	struct call_thread *thread = thread_of(stacks, tid);

	return thread ? &thread->branches : NULL;
}

void call_stacks_free(struct call_stacks *stacks)
{
	for (size_t i = 0; i < stacks->threads.count; i++) {
		free(stacks->threads.items[i].sides);
		last_branches_free(&stacks->threads.items[i].branches);
	}
	vec_free(&stacks->threads);
	stacks->last = NULL;
}

static void push(struct call_stack *stack, uint64_t return_ip, bool at_end)
{
	if (stack->depth == CALL_STACK_MAX) {
		stack->depth--;
		memmove(stack->frames, stack->frames + 1, stack->depth * sizeof(*stack->frames));
	}
	stack->frames[stack->depth++] = (struct call_frame){ return_ip, at_end };
}

/* Not every function returns (a context switch, an exception that is handled elsewhere): the frame
 * may be further down. If it is nowhere, its call was before the trace, and all stays. */
static void pop(struct call_stack *stack, uint64_t ip)
{
	for (unsigned i = stack->depth; i--;) {
		if (stack->frames[i].return_ip == ip) {
			stack->depth = i;
			return;
		}
	}
}

void call_stack_follow(struct call_stack *stack, uint32_t flags, uint64_t from, uint64_t next,
		       uint64_t to)
{
	if (flags & (SAMPLE_VMENTRY | SAMPLE_VMEXIT))
		return; /* the host and the guest each have their own stack */
	if (flags & SAMPLE_CALL) {
		if (to && to != next)
			push(stack, next, flags & SAMPLE_TRACE_END);
	} else if (flags & SAMPLE_TRACE_BEGIN) {
		pop(stack, to);
		while (stack->depth && stack->frames[stack->depth - 1].at_end)
			stack->depth--;
	} else if (flags & SAMPLE_RETURN && from) {
		pop(stack, to);
	}
}
