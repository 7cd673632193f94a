#include "decode/flow/trace_sample.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/pt/aux_pages.h"

/* Of trace before a part that begins in a guest, for the clock. */
enum { LEAD_BYTES = 256 << 10 };

/* Parts in a row that were not looked at. */
struct run {
	struct sample_part first;
	uint64_t count;
	uint64_t before; /* parts in the runs before */
};

struct run_list {
	struct run *items;
	size_t count, room;
	uint64_t parts; /* in all */
	bool is_cut;    /* memory was out */
};

/* Some of the parts in a list, by their number in it. */
struct choice {
	uint64_t *items;
	size_t count, most;
};

static int compare(const struct sample_part *a, const struct sample_part *b)
{
	return a->queue != b->queue ? sort_order(a->queue, b->queue)
				    : sort_order(a->number, b->number);
}

/* Where a part is or belongs. */
static size_t slot(const struct trace_sample *sample, const struct sample_part *part)
{
	return search_sorted(sample->seen.count, i, compare(&sample->seen.items[i].part, part) < 0);
}

uint64_t trace_sample_parts(const struct aux_queue *queue)
{
	return queue->size / SAMPLE_BYTES + !!(queue->size % SAMPLE_BYTES);
}

bool trace_sample_has(const struct trace_sample *sample, const struct sample_part *part)
{
	size_t at = slot(sample, part);

	return at < sample->seen.count && !compare(&sample->seen.items[at].part, part);
}

bool trace_sample_add(struct trace_sample *sample, const struct sample_seen *seen)
{
	size_t at = slot(sample, &seen->part);
	struct sample_seen *items;

	if (!vec_push(&sample->seen, *seen))
		return false;
	items = sample->seen.items;
	memmove(items + at + 1, items + at, (sample->seen.count - 1 - at) * sizeof(*items));
	items[at] = *seen;
	return true;
}

static void add_run(struct run_list *list, const struct sample_part *first, uint64_t end)
{
	const struct run run = { *first, end - first->number, list->parts };

	if (end <= first->number)
		return;
	list->is_cut |= !vec_push(list, run);
	list->parts += run.count;
}

/* The runs of a queue that may have something of these times, by what was seen of it, which begins
 * at number `at`. Returns where it ends. */
static size_t add_queue(const struct trace_sample *sample, size_t queue, size_t at,
			const struct sample_times *times, struct run_list *list)
{
	uint64_t end = trace_sample_parts(sample->sources->items[queue].queue);
	size_t kept = list->count;
	uint64_t kept_parts = list->parts;
	struct sample_part next = { queue, 0 };
	bool is_over = false;

	for (; at < sample->seen.count && sample->seen.items[at].part.queue == queue; at++) {
		const struct sample_seen *seen = &sample->seen.items[at];

		if (!is_over)
			add_run(list, &next, seen->part.number);
		if (seen->from_ns && seen->from_ns <= times->from_ns) {
			list->count = kept; /* all so far was too early */
			list->parts = kept_parts;
		}
		is_over |= seen->to_ns >= times->to_ns && seen->to_ns != UINT64_MAX;
		next.number = seen->part.number + 1;
	}
	if (!is_over)
		add_run(list, &next, end);
	return at;
}

static void choose_one(struct choice *choice, uint64_t number)
{
	if (choice->count < choice->most)
		choice->items[choice->count++] = number;
}

/* Next to the beginning and the end of what each queue has, if they are known. */
static void choose_ends(const struct run_list *list, const struct sample_times *times,
			size_t queues, struct choice *choice)
{
	uint64_t each = choice->most / 4 / queues, first = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct run *run = &list->items[i];
		uint64_t end = run->before + run->count;

		if (i + 1 < list->count && run->first.queue == run[1].first.queue)
			continue;
		for (uint64_t k = 0; k < each && k < end - first; k++) {
			if (times->from_ns)
				choose_one(choice, first + k);
			if (times->to_ns != UINT64_MAX)
				choose_one(choice, end - 1 - k);
		}
		first = end;
	}
}

static void choose_evenly(const struct run_list *list, struct choice *choice)
{
	size_t count = choice->most - choice->count;

	for (size_t i = 0; i < count; i++)
		choose_one(choice, list->parts / count * i + list->parts % count * i / count +
					   list->parts / count / 2);
}

/* The parts of a choice. Returns how many. */
static size_t take(const struct run_list *list, struct choice *choice, struct sample_part *ret)
{
	const struct run *run = list->items;
	size_t count = 0;

	sort_vec(choice, sort_numbers);
	for (size_t i = 0; i < choice->count; i++) {
		uint64_t number = choice->items[i];

		if (i && number == choice->items[i - 1])
			continue;
		while (number - run->before >= run->count)
			run++;
		ret[count] = run->first;
		ret[count++].number += number - run->before;
	}
	return count;
}

static size_t queues_of(const struct run_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += !i || list->items[i].first.queue != list->items[i - 1].first.queue;
	return count;
}

static size_t choose(const struct run_list *list, const struct sample_times *times, size_t most,
		     struct sample_part *ret)
{
	struct choice choice = { calloc(most, sizeof(uint64_t)), 0, most };
	size_t count = 0;

	if (!choice.items || !list->parts)
		goto out;
	if (list->parts > most)
		choose_ends(list, times, queues_of(list), &choice);
	else
		choice.most = list->parts;
	choose_evenly(list, &choice);
	count = take(list, &choice, ret);
out:
	free(choice.items);
	return count;
}

size_t trace_sample_choose(const struct trace_sample *sample, const struct sample_times *times,
			   size_t most, struct sample_part *ret)
{
	struct run_list list = { 0 };
	size_t count = 0, at = 0;

	for (size_t i = 0; i < sample->sources->count; i++)
		at = add_queue(sample, i, at, times, &list);
	if (!list.is_cut)
		count = choose(&list, times, most, ret);
	vec_free(&list);
	return count;
}

static struct pt_psb_state state_at(const struct trace_sources *sources,
				    const struct aux_queue *queue, uint64_t psb)
{
	struct pt_psb_state state;
	struct pt_cursor cursor;

	pt_cursor_init(&cursor, queue, sources->config, psb + PT_PSB_SIZE);
	(void)pt_cursor_psb(&cursor, &state);
	return state;
}

/* The last PSB of the host, with a time, in a part of a queue; UINT64_MAX none. */
static uint64_t last_of_host(const struct trace_sources *sources, const struct aux_queue *queue,
			     uint64_t from, uint64_t to)
{
	uint64_t last = UINT64_MAX;

	for (; (from = pt_psb_after(queue, from)) < to; from += PT_PSB_SIZE) {
		const struct pt_psb_state state = state_at(sources, queue, from);

		if (state.have_tsc && !(state.have_pip && state.nr))
			last = from;
	}
	return last;
}

/* The PSB from which on a clock that knows nothing knows the time at a PSB. A guest's time it may
 * not understand: then that is the last one before it, if it is not far, that is of the host. */
static uint64_t clock_start(const struct trace_sources *sources, const struct aux_queue *queue,
			    uint64_t psb)
{
	const struct pt_psb_state state = state_at(sources, queue, psb);
	uint64_t to = psb, from, start, offset;

	if (!state.have_pip || !state.nr || pt_offsets_find(&sources->offsets, state.vmcs, &offset))
		return psb;
	/* Mostly it is near: in a large file each page that is not read saves time. */
	for (uint64_t lead = SAMPLE_BYTES; lead <= LEAD_BYTES; lead *= 2, to = from) {
		from = psb > lead ? psb - lead : 0;
		aux_pages_prefetch_trace(&sources->mapping, queue, from, to);
		start = last_of_host(sources, queue, from, to);
		if (start != UINT64_MAX)
			return start;
	}
	return psb;
}

void trace_sample_enter(const struct trace_sources *sources, const struct aux_queue *queue,
			uint64_t psb, struct pt_walk *walk)
{
	struct pt_segment start;

	pt_walk_init(walk, queue, sources->config, &sources->offsets, UINT64_MAX);
	walk->grid = SAMPLE_BYTES;
	start = walk->segment;
	start.from = clock_start(sources, queue, psb);
	pt_walk_resume(walk, &start);
}

void trace_sample_free(struct trace_sample *sample)
{
	vec_free(&sample->seen);
}
