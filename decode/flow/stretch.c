#include "decode/flow/stretch.h"

#include <string.h>

enum {
	PASSES_MOST = 8, /* blocks in a row that need no packet */
	TABLE_BYTES = sizeof(struct stretch) << STRETCH_TABLE_BITS,
};

bool stretch_table(struct code *code)
{
	if (!code->stretches)
		code->stretches = arena_alloc_line(&code->arena, TABLE_BYTES);
	return code->stretches;
}

void stretch_table_clear(struct code *code)
{
	if (code->stretches)
		memset(code->stretches, 0, TABLE_BYTES);
}

/* All of a block runs: its calls are on the stack. False when there are too many. */
static bool run_block(struct stretch *stretch, const struct block *block)
{
	if (stretch->push_count + block->push_count > STRETCH_PUSHES)
		return false;
	for (unsigned i = 0; i < block->push_count; i++)
		stretch->pushes[stretch->push_count++] = block_pushes(block)[i];
	if (stretch->depth < stretch->push_count)
		stretch->depth = stretch->push_count;
	stretch->insns += block->count;
	return true;
}

/* Pass the blocks that need no packet, then take one bit. False, with the stretch as it was, when
 * that is not possible; `linked` tells whether it will ever be. */
static bool take_bit(struct stretch *stretch, bool *linked)
{
	bool bit = stretch_first_bit(stretch->rest);
	struct stretch next = *stretch;

	for (unsigned i = 0; i < PASSES_MOST && next.to->end == BLOCK_GOES_ON; i++) {
		*linked = next.to->successor[0];
		if (!*linked || !run_block(&next, next.to))
			return false;
		next.to = next.to->successor[0];
	}
	if (next.to->end != BLOCK_CONDITIONAL && (next.to->end != BLOCK_RETURN || !bit))
		return false;
	if (!run_block(&next, next.to))
		return false;
	next.returns |= next.to->end == BLOCK_RETURN;
	if (next.to->end == BLOCK_CONDITIONAL)
		next.to = next.to->successor[bit];
	else if (next.push_count)
		next.to = block_follow(next.to, next.pushes[--next.push_count]);
	else
		return false;
	*linked = next.to;
	if (!*linked)
		return false;
	next.rest = stretch_drop_bit(next.rest);
	*stretch = next;
	return true;
}

const struct stretch *stretch_add(struct code *code, struct block *from, uint8_t bits)
{
	struct stretch stretch = { .key = stretch_key(from, bits), .to = from, .rest = bits };
	struct stretch *slot = stretch_slot(code, stretch.key);
	bool linked = true;

	while (stretch.rest != STRETCH_NO_BITS && take_bit(&stretch, &linked))
		;
	if (!linked)
		return NULL;
	*slot = stretch;
	return slot;
}
