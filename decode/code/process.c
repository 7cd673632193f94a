#include "decode/code/process.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum { MAX_DEPTH = 64 }; /* forks without exec in between that a lookup follows */

int processes_add(struct processes *processes, int32_t pid)
{
	size_t count = processes->spaces.count;

	/* Most maps of a process come one after the other; what few are added twice do no harm. */
	if (count && processes->spaces.items[count - 1].pid == pid)
		return 0;
	return processes_begin(processes, pid, -1, 0, 0);
}

int processes_begin(struct processes *processes, int32_t pid, int32_t parent, uint64_t time,
		    uint64_t order)
{
	struct address_space space = {
		.pid = pid, .from = time, .to = UINT64_MAX, .order = order, .parent = parent
	};

	if (processes->spaces.count >= UINT32_MAX)
		return -PTVM_NO_MEMORY;
	return vec_push(&processes->spaces, space) ? 0 : -PTVM_NO_MEMORY;
}

SORT_BY(compare_order, struct address_space, order)

static int compare_pid(const void *a, const void *b, void *context)
{
	const struct address_space *spaces = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (spaces[left].pid != spaces[right].pid)
		return spaces[left].pid < spaces[right].pid ? -1 : 1;
	return sort_order(left, right);
}

static bool is_up_to(const struct address_space *space, int32_t pid, uint64_t limit, bool by_time)
{
	uint64_t value = by_time ? space->from : space->order;

	return space->pid < pid || (space->pid == pid && value <= limit);
}

/* How many entries of by_pid are not after (pid, limit), where limit is a time or an order. */
static size_t count_up_to(const struct processes *processes, int32_t pid, uint64_t limit,
			  bool by_time)
{
	const struct address_space *spaces = processes->spaces.items;

	return search_sorted(processes->spaces.count, i,
			     is_up_to(&spaces[processes->by_pid[i]], pid, limit, by_time));
}

/* The index of the last space of `pid` made not after `limit`, -1 if there is none. */
static int64_t space_at(const struct processes *processes, int32_t pid, uint64_t limit,
			bool by_time)
{
	size_t n = count_up_to(processes, pid, limit, by_time);

	if (!n || processes->spaces.items[processes->by_pid[n - 1]].pid != pid)
		return -1;
	return processes->by_pid[n - 1];
}

/* When the next space of `pid` after `time` begins; UINT64_MAX: there is none. */
static uint64_t next_space(const struct processes *processes, int32_t pid, uint64_t time)
{
	size_t n = count_up_to(processes, pid, time, true);
	const struct address_space *space;

	if (n >= processes->spaces.count)
		return UINT64_MAX;
	space = &processes->spaces.items[processes->by_pid[n]];
	return space->pid == pid ? space->from : UINT64_MAX;
}

/* From pids of parents to indices; a space ends where the pid's next one begins. */
static int link_parents(struct processes *processes)
{
	struct address_space *spaces = processes->spaces.items;
	size_t count = processes->spaces.count;
	uint8_t *depth = calloc(count, 1);

	if (!depth)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < count; i++) {
		int32_t parent = (int32_t)spaces[i].parent;

		spaces[i].parent = -1;
		if (parent >= 0 && spaces[i].order)
			spaces[i].parent = space_at(processes, parent, spaces[i].order - 1, false);
		if (spaces[i].parent < 0)
			continue;
		depth[i] = depth[spaces[i].parent] + 1;
		if (depth[i] < MAX_DEPTH)
			continue;
		depth[i] = 0;
		spaces[i].parent = -1;
		processes->lost++;
	}
	free(depth);
	for (size_t i = 1; i < count; i++) {
		struct address_space *before = &spaces[processes->by_pid[i - 1]];
		const struct address_space *after = &spaces[processes->by_pid[i]];

		if (before->pid == after->pid)
			before->to = after->from;
	}
	return 0;
}

int processes_link(struct processes *processes)
{
	size_t count = processes->spaces.count;

	if (!count)
		return 0;
	qsort(processes->spaces.items, count, sizeof(*processes->spaces.items), compare_order);
	processes->by_pid = reallocarray(NULL, count, sizeof(*processes->by_pid));
	if (!processes->by_pid)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		processes->by_pid[i] = (uint32_t)i;
	qsort_r(processes->by_pid, count, sizeof(*processes->by_pid), compare_pid,
		processes->spaces.items);
	return link_parents(processes);
}

int processes_map(struct processes *processes, int32_t pid, const struct process_map *map,
		  uint64_t size, uint64_t time, uint64_t order)
{
	int64_t index = space_at(processes, pid, order, false);
	struct address_space *space;

	if (index < 0 || size > UINT64_MAX - map->start)
		return 0;
	space = &processes->spaces.items[index];
	if (!vec_push(&space->maps, *map))
		return -PTVM_NO_MEMORY;
	return history_add(&space->history, map->start, map->start + size, time);
}

int processes_finish(struct processes *processes)
{
	for (size_t i = 0; i < processes->spaces.count; i++) {
		size_t dropped;

		if (history_finish(&processes->spaces.items[i].history, &dropped))
			return -PTVM_NO_MEMORY;
		processes->lost += dropped;
	}
	return 0;
}

bool processes_find(const struct processes *processes, int32_t pid, uint64_t address, uint64_t time,
		    struct process_view *ret)
{
	int64_t index = space_at(processes, pid, time, true);
	bool is_inherited = false;

	*ret = (struct process_view){ NULL, UINT64_MAX, 0, UINT64_MAX };
	if (index < 0)
		ret->to = next_space(processes, pid, time);
	while (index >= 0) {
		const struct address_space *space = &processes->spaces.items[index];
		struct history_view view = history_find(&space->history, address, time);

		if (view.end && view.end < ret->end)
			ret->end = view.end;
		/* What a parent had at the fork holds for the child's whole time. */
		if (!is_inherited) {
			ret->from = view.from > space->from ? view.from : space->from;
			ret->to = view.to < space->to ? view.to : space->to;
		}
		if (view.item >= 0) {
			ret->map = &space->maps.items[view.item];
			break;
		}
		is_inherited = true;
		time = space->from;
		index = space->parent;
	}
	return ret->map;
}

void processes_free(struct processes *processes)
{
	for (size_t i = 0; i < processes->spaces.count; i++) {
		vec_free(&processes->spaces.items[i].maps);
		history_free(&processes->spaces.items[i].history);
	}
	vec_free(&processes->spaces);
	free(processes->by_pid);
	*processes = (struct processes){ 0 };
}
