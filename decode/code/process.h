/* The maps of the host's processes over time: which file lies at an address of a pid at a time.
 * Knows nothing of what is in the files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/dso.h"
#include "decode/code/history.h"

struct process_map {
	uint64_t start,
		page_offset; /* the byte at address a is at offset a - start + page_offset */
	struct dso *dso;
};

/** One address space: from a fork or exec of the pid to its next one. */
struct address_space {
	int32_t pid;
	uint64_t from, to; /* ns */
	uint64_t order;    /* of the event that made it; 0: there before all others */
	int64_t parent;    /* index of the space it was copied from, -1 none */
	struct {
		struct process_map *items;
		size_t count, room;
	} maps; /* as in `history` */
	struct history history;
};

struct processes {
	struct {
		struct address_space *items;
		size_t count, room;
	} spaces;         /* by order */
	uint32_t *by_pid; /* indices of spaces, sorted by pid and order */
	size_t lost;      /* spaces with too many ancestors, and maps that overlap too much */
};

/*
 * Building takes two passes over the records: the first for all that begins an address space, the
 * second for what is mapped into them. `order` is a number above 0 that rises with the records.
 */

/** First pass: there is a process `pid`, since a record says that it has maps. */
int processes_add(struct processes *processes, int32_t pid);
/** First pass: `pid` is a copy of `parent` (-1: of nothing, exec) from `time` on. */
int processes_begin(struct processes *processes, int32_t pid, int32_t parent, uint64_t time,
		    uint64_t order);
/** Between the passes. Returns 0 or -PTVM_NO_MEMORY, as do the others. */
int processes_link(struct processes *processes);
/** Second pass: `size` bytes of `map` from `time` on. */
int processes_map(struct processes *processes, int32_t pid, const struct process_map *map,
		  uint64_t size, uint64_t time, uint64_t order);
/** After the second pass. */
int processes_finish(struct processes *processes);

/** What lies at an address: for addresses below `end`, for times in [from, to). */
struct process_view {
	const struct process_map *map;
	uint64_t end, from, to;
};

/** Find the map at `address` of `pid` at `time`. Returns false where there is none; `ret` then says
 * from when to when. */
bool processes_find(const struct processes *processes, int32_t pid, uint64_t address, uint64_t time,
		    struct process_view *ret);

/** Free everything (not the files). */
void processes_free(struct processes *processes);
