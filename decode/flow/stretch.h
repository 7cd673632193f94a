/* Stretches of code that the flow went through before: from a block, by the bits of a short TNT
 * packet, to another block.
 *
 * A stretch remembers where successor pointers lead, so that they need not be followed again. It
 * does not say which blocks are in it: it is for runs that only look for errors and count
 * instructions. The table has a fixed size, and new stretches replace old ones. A compressed return
 * can be in a stretch if its call is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/flow/block.h"

enum {
	STRETCH_TABLE_BITS = 14, /* 1 MB: half of a huge page */
	STRETCH_PUSHES = 4,
	STRETCH_NO_BITS = 2, /* the stop bit, and nothing below it */
};

struct stretch {
	uint64_t key;  /* stretch_key(); 0: none */
	uint64_t seen; /* the key that was last asked for in vain */
	struct block *to;
	uint64_t
		pushes[STRETCH_PUSHES]; /* return addresses of its calls that do not return in it */
	uint32_t insns;
	uint8_t rest;       /* of the bits, those that are left at `to` */
	uint8_t push_count; /* in `pushes` */
	uint8_t depth;      /* the most addresses that were in `pushes` at a time */
	bool returns;       /* from one of its calls */
};
_Static_assert(sizeof(struct stretch) == 64, "a line of the cache, and a power of two");

/** Whether there is a table, which is made here if there is none. False when memory is out. */
bool stretch_table(struct code *code);

/** Forget all that is remembered. */
void stretch_table_clear(struct code *code);

/**
 * Follow the bits of a TNT packet from a block, as far as successor pointers lead, and remember it.
 * `bits` is the packet's byte: a stop bit, the oldest branch, ..., a 0.
 *
 * Returns NULL, and remembers nothing, where the pointers may lead further next time.
 */
const struct stretch *stretch_add(struct code *code, struct block *from, uint8_t bits);

/** One number for a block and bits. */
static inline uint64_t stretch_key(const struct block *from, uint8_t bits)
{
	return (uint64_t)(uintptr_t)from << 8 | bits;
}

/** Its place in the table. */
static inline struct stretch *stretch_slot(const struct code *code, uint64_t key)
{
	return &code->stretches[(key * 0x9e3779b97f4a7c15) >> (64 - STRETCH_TABLE_BITS)];
}

/** The stretch for a block and bits, or NULL. It is added when it is asked for the second time in a
 * row: adding more does not pay in code that seldom runs the same way again. Valid until the next
 * call. */
static inline const struct stretch *stretch_get(struct code *code, struct block *from, uint8_t bits)
{
	uint64_t key = stretch_key(from, bits);
	struct stretch *stretch = stretch_slot(code, key);

	if (stretch->key == key)
		return stretch;
	if (stretch->seen == key)
		return stretch_add(code, from, bits);
	stretch->seen = key;
	return NULL;
}

/** Without the oldest of the bits. */
static inline uint8_t stretch_drop_bit(uint8_t bits)
{
	unsigned oldest = 30 - (unsigned)__builtin_clz(bits); /* the bit below the stop bit */

	return (uint8_t)((bits & ((1u << oldest) - 1)) | 1u << oldest);
}

/** The oldest of the bits, of which there is one at least. */
static inline bool stretch_first_bit(uint8_t bits)
{
	return bits >> (30 - __builtin_clz(bits)) & 1;
}
