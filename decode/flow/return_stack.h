/* The calls that are open: where they return to, as the CPU keeps it for compressed returns (SDM
 * "RET Compression"). Behind a gap nobody knows which calls from before it still are: they stay
 * below those that are made from then on, and are doubted until a search for the way back
 * (flow_way_back.h) trusts them again. A PSB empties the CPU's stack, and so ends all doubt. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { RETURN_STACK = 64 }; /* entries, as in hardware */

/** Zero-initialise before use. */
struct return_stack {
	uint32_t top;    /* the next one's index, modulo RETURN_STACK */
	uint32_t count;  /* calls that are open */
	uint32_t doubts; /* calls below those, open before a gap, or replaced by others since */
	bool is_cut;     /* there was a gap: calls may be open that are not here */
	uint64_t ips[RETURN_STACK]; /* a ring: new ones replace the oldest */
};

/** A call was made that returns to `ip`. */
static inline void return_stack_push(struct return_stack *stack, uint64_t ip)
{
	stack->ips[stack->top++ % RETURN_STACK] = ip;
	if (stack->count < RETURN_STACK)
		stack->count++;
}

/** Where the last call that is open returns to; there is one. */
static inline uint64_t return_stack_last(const struct return_stack *stack)
{
	return stack->ips[(stack->top - 1) % RETURN_STACK];
}

/** The last call that is open, which there is, returns. */
static inline void return_stack_drop(struct return_stack *stack)
{
	stack->top--;
	stack->count--;
}

/** The last call that is open returns, to `ret`; false when there is none. */
static inline bool return_stack_pop(struct return_stack *stack, uint64_t *ret)
{
	if (!stack->count)
		return false;
	stack->count--;
	*ret = stack->ips[--stack->top % RETURN_STACK];
	return true;
}

/** A PSB: no call from before matters any more. */
static inline void return_stack_clear(struct return_stack *stack)
{
	stack->count = stack->doubts = 0;
	stack->is_cut = false;
}

/** A gap: all calls are doubted. */
static inline void return_stack_doubt(struct return_stack *stack)
{
	stack->doubts += stack->count;
	if (stack->doubts > RETURN_STACK)
		stack->doubts = RETURN_STACK;
	stack->count = 0;
	stack->is_cut = true;
}

/** Where the doubted call returns to that is below `index` others; there is no call that is surely
 * open, and `index` is less than `doubts`. */
static inline uint64_t return_stack_doubted(const struct return_stack *stack, uint32_t index)
{
	return stack->ips[(stack->top - 1 - index) % RETURN_STACK];
}

/** The last `count` doubted calls are known to have returned; there are so many, and no others. */
static inline void return_stack_drop_doubted(struct return_stack *stack, uint32_t count)
{
	stack->top -= count;
	stack->doubts -= count;
}

/** The doubted calls are known to be open; there are no others. */
static inline void return_stack_trust(struct return_stack *stack)
{
	stack->count = stack->doubts;
	stack->doubts = 0;
}
