/* What threads that decode one recording know of its code together: a block that one of them read,
 * and its text, is there for all. Which blocks follow it each finds for itself.
 *
 * What the pool has got since it was empty is a generation. Nothing in it changes, and it is
 * dropped as a whole: when it is full, a new one begins, threads leave the old one as they come to
 * it, and the last one releases it. There are two at most: until nobody is left in the older one,
 * who leaves the newer one works for itself. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/block.h"

struct code_generation;

struct code_pool {
	pthread_mutex_t lock;
	struct code_generation *current; /* NULL: none yet */
	unsigned generations;            /* that there are */
	atomic_uint begun;               /* that there ever were */
	size_t most_bytes;               /* of one, before the next begins */
};

/** A block that all can use, with the text that somebody has made of it. */
struct pooled_block {
	struct block block; /* as it was read: without space, links, or what was found patched */
	const struct machine *machine;
	int32_t pid;
	uint8_t bits;
	struct pooled_block *chain;
	_Atomic(struct block_text *) lines;
	_Atomic(struct branch_text *) branches;
};

/** Begin without any code. */
void code_pool_init(struct code_pool *pool, size_t most_bytes);

/** Release everything. Nobody may be left in it. */
void code_pool_free(struct code_pool *pool);

/** The generation to use until code_pool_leave(); NULL: there is none now, or memory is out. */
struct code_generation *code_pool_join(struct code_pool *pool);

/** Nothing of a generation that was joined is used any more. */
void code_pool_leave(struct code_pool *pool, struct code_generation *generation);

/** How often a new generation began: who still uses another one should leave it. */
static inline unsigned code_pool_begun(struct code_pool *pool)
{
	return atomic_load_explicit(&pool->begun, memory_order_acquire);
}

/** Whether a generation should be left. */
bool code_generation_is_full(const struct code_generation *generation);

/** `size` zeroed bytes that last as long as the generation; NULL when memory is out. Waits for
 * other threads: take many at a time. */
void *code_pool_alloc(struct code_pool *pool, struct code_generation *generation, size_t size);

/** The block at `ip` of an address space, as block_get() would build it; NULL if nobody had it. */
struct pooled_block *code_generation_find(struct code_generation *generation,
					  const struct code_space *space, uint64_t ip,
					  uint64_t time_ns);

/** Add a block that was just built, whose parts the generation has, as `room` has been, too.
 * Returns what others will find: `room`, or if another thread was faster what that has added. */
struct pooled_block *code_generation_add(struct code_generation *generation,
					 const struct block *block, struct pooled_block *room);
