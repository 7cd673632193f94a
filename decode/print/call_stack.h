/* The calls that each thread is in, for indented output and call chains. Unlike the return stack of
 * the decoder (return_stack.h) they are kept for each thread, host and guest apart, and calls from
 * before the trace are missing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/print/last_branches.h"

/* Deeper ones push out the outermost. */
enum { CALL_STACK_MAX = 512 };

struct call_stack {
	struct call_frame {
		uint64_t return_ip;
		bool at_end; /* the trace ended with this call: it is not expected to return */
	} frames[CALL_STACK_MAX];
	unsigned depth;
};

/** Stacks of all threads met; zero-initialise before use. */
struct call_stacks {
	struct {
		struct call_thread *items;
		size_t count, room;
	} threads;
	struct call_thread *last;
};

/** The stack of a thread's host or guest side; NULL when memory is out. Valid until the next call.
 */
struct call_stack *call_stack_of(struct call_stacks *stacks, int32_t tid, bool guest);

/** The last branches of a thread, host and guest as they came; as call_stack_of(). */
struct last_branches *call_stacks_branches(struct call_stacks *stacks, int32_t tid);

/** Release everything; accepts zeroes. */
void call_stacks_free(struct call_stacks *stacks);

/**
 * Follow one branch.
 *
 * @flags      enum sample_flag
 * @from, @to  addresses, 0 unknown
 * @next       address behind the branch, where a call returns to
 */
void call_stack_follow(struct call_stack *stack, uint32_t flags, uint64_t from, uint64_t next,
		       uint64_t to);
