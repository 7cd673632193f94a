/* Kernel text that changed while it was traced: TEXT_POKE records, applied as patches to a copy of
 * the text. */
#pragma once

#include "decode/code/history.h"
#include "decode/code/image.h"
#include "decode/perf/perf_record.h"

struct text_pokes {
	struct {
		struct perf_text_poke *items;
		size_t count, room;
	} list;
	struct history history;
};

/** Bytes, for addresses up to data + left and times in [from, to). */
struct text_view {
	const uint8_t *data;
	uint64_t left;
	uint64_t from, to;
};

/** Append a poke, not before the last in time; its bytes are borrowed. 0 or -PTVM_NO_MEMORY. */
int text_pokes_add(struct text_pokes *pokes, const struct perf_text_poke *poke, uint64_t time);

/** Build the tables; `ret_dropped` pokes overlap too much and are left out. Returns 0 or
 * -PTVM_NO_MEMORY. */
int text_pokes_finish(struct text_pokes *pokes, size_t *ret_dropped);

/**
 * The text at `address` and `time`: what the last poke before wrote, or what the next one will
 * overwrite (`image` may have been copied after it), or what `image` has.
 * Returns 0 or -PTVM_NO_CODE.
 */
int text_pokes_find(const struct text_pokes *pokes, const struct image *image, uint64_t address,
		    uint64_t time, struct text_view *ret);

/** Free the tables. */
void text_pokes_free(struct text_pokes *pokes);
