/* What was at which address at what time. Items are added in order of time; each replaces what was
 * in its range before. A lookup by address and time also tells for which addresses and times its
 * answer holds. Used for the maps of processes, patches of kernel text, and symbols that come and
 * go. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct history_item {
	uint64_t start, end; /* end exclusive, > start */
	uint64_t time;       /* from then on */
};

struct history {
	struct {
		struct history_item *items;
		size_t count, room;
	} list;
	/* Made by history_finish(), which cuts the addresses into cells at all starts and ends of
	 * items. Cell i is [borders[i], borders[i + 1]). The items that cover it, in order of time,
	 * are held[k] for k in [first[i], first[i + 1]). */
	uint64_t *borders;
	uint32_t *first, *held;
	size_t border_count;
};

enum { HISTORY_NONE = -1 };

/** How many pieces all items of a history may be cut into by the borders of others. A recording may
 * have very many histories: what one may take is in proportion to what was added to it. */
enum {
	HISTORY_HELD_EACH = 256,      /* for each item, */
	HISTORY_HELD_FREE = 64 << 10, /* in addition to these, */
	HISTORY_MAX_HELD = 16 << 20,  /* but no more than this */
};

/** The answer, and where it holds: addresses [start, end), end 0 means 2^64; time [from, to). */
struct history_view {
	uint64_t start, end, from, to;
	int64_t item; /* index in order of adding, HISTORY_NONE */
	int64_t next; /* the item that replaces it at `to`, HISTORY_NONE */
};

/** Append an item, not before the last in time; empty ranges are accepted and never found.
 * Returns 0 or -PTVM_NO_MEMORY. */
int history_add(struct history *history, uint64_t start, uint64_t end, uint64_t time);

/**
 * Build the tables, after the last item; again when more were added.
 * Items beyond that number of pieces are left out: `ret_dropped` says how many.
 * Returns 0 or -PTVM_NO_MEMORY.
 */
int history_finish(struct history *history, size_t *ret_dropped);

/** The item that `address` is in at `time`. O(log n). */
struct history_view history_find(const struct history *history, uint64_t address, uint64_t time);

/** Free everything. */
void history_free(struct history *history);
