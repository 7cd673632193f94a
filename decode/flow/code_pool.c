#include "decode/flow/code_pool.h"

#include <stdlib.h>

enum {
	SLOTS = 1 << 16,
	GENERATIONS_MOST = 2,
};

struct code_generation {
	struct arena arena; /* with the pool's lock */
	unsigned users;
	atomic_bool is_full;
	/* Chains of blocks, without the lock. */
	_Atomic(struct pooled_block *) *slots;
};

void code_pool_init(struct code_pool *pool, size_t most_bytes)
{
	*pool = (struct code_pool){ .most_bytes = most_bytes };
	pthread_mutex_init(&pool->lock, NULL);
}

static void generation_free(struct code_generation *generation)
{
	arena_free(&generation->arena);
	free(generation);
}

void code_pool_free(struct code_pool *pool)
{
	if (pool->current)
		generation_free(pool->current);
	pthread_mutex_destroy(&pool->lock);
}

static struct code_generation *begin_generation(struct code_pool *pool)
{
	struct code_generation *generation = calloc(1, sizeof(*generation));

	if (!generation)
		return NULL;
	generation->arena.is_huge = true;
	generation->slots = arena_alloc_line(&generation->arena, SLOTS * sizeof(void *));
	if (!generation->slots) {
		generation_free(generation);
		return NULL;
	}
	pool->generations++;
	atomic_fetch_add_explicit(&pool->begun, 1, memory_order_release);
	return pool->current = generation;
}

struct code_generation *code_pool_join(struct code_pool *pool)
{
	struct code_generation *current;

	pthread_mutex_lock(&pool->lock);
	current = pool->current;
	if (!current || code_generation_is_full(current))
		current = pool->generations < GENERATIONS_MOST ? begin_generation(pool) : NULL;
	if (current)
		current->users++;
	pthread_mutex_unlock(&pool->lock);
	return current;
}

void code_pool_leave(struct code_pool *pool, struct code_generation *generation)
{
	bool is_last;

	pthread_mutex_lock(&pool->lock);
	is_last = !--generation->users && code_generation_is_full(generation);
	if (is_last) {
		pool->generations--;
		if (pool->current == generation)
			pool->current = NULL;
	}
	pthread_mutex_unlock(&pool->lock);
	if (is_last)
		generation_free(generation);
}

bool code_generation_is_full(const struct code_generation *generation)
{
	return atomic_load_explicit(&generation->is_full, memory_order_relaxed);
}

void *code_pool_alloc(struct code_pool *pool, struct code_generation *generation, size_t size)
{
	const struct arena *arena = &generation->arena;
	void *ret;

	pthread_mutex_lock(&pool->lock);
	ret = arena_alloc(&generation->arena, size);
	if (arena->total - (arena->size - arena->used) > pool->most_bytes)
		atomic_store_explicit(&generation->is_full, true, memory_order_relaxed);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

static bool is_of_space(const struct pooled_block *pooled, const struct code_space *space)
{
	return pooled->machine == space->machine && pooled->pid == space->pid &&
	       pooled->bits == space->bits;
}

static struct pooled_block *find_in(struct pooled_block *pooled, const struct code_space *space,
				    uint64_t ip, uint64_t time_ns)
{
	while (pooled && !(block_is_at(&pooled->block, ip, time_ns) && is_of_space(pooled, space)))
		pooled = pooled->chain;
	return pooled;
}

/* Thousands of processes may have code at the same addresses. */
static _Atomic(struct pooled_block *) *slot_of(struct code_generation *generation,
					       const struct code_space *space, uint64_t ip)
{
	uint64_t key = ip + ((uint64_t)(uint32_t)space->pid << 32) + (uintptr_t)space->machine;

	return &generation->slots[block_slot(key, SLOTS - 1)];
}

struct pooled_block *code_generation_find(struct code_generation *generation,
					  const struct code_space *space, uint64_t ip,
					  uint64_t time_ns)
{
	return find_in(atomic_load_explicit(slot_of(generation, space, ip), memory_order_acquire),
		       space, ip, time_ns);
}

struct pooled_block *code_generation_add(struct code_generation *generation,
					 const struct block *block, struct pooled_block *room)
{
	const struct code_space *space = block->space;
	_Atomic(struct pooled_block *) *slot = slot_of(generation, space, block->ip);
	struct pooled_block *first = atomic_load_explicit(slot, memory_order_acquire), *other;

	room->block = *block;
	room->block.space = NULL;
	room->machine = space->machine;
	room->pid = space->pid;
	room->bits = space->bits;
	do {
		other = find_in(first, space, block->ip, block->from_ns);
		if (other)
			return other;
		room->chain = first;
	} while (!atomic_compare_exchange_weak_explicit(slot, &first, room, memory_order_acq_rel,
							memory_order_acquire));
	return room;
}
