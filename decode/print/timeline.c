#include "decode/print/timeline.h"

#include <errno.h>
#include <string.h>

enum { KEPT_BYTES = 64 << 10 };

/* The part of the text that --max-lines still allows. */
static size_t limit(struct timeline *timeline, const char *data, size_t size)
{
	const char *p = data;

	while (timeline->lines < timeline->output->max_lines && p < data + size) {
		p = memchr(p, '\n', (size_t)(data + size - p));
		p = p ? p + 1 : data + size;
		timeline->lines++;
	}
	timeline->full = timeline->lines >= timeline->output->max_lines;
	return (size_t)(p - data);
}

static int flush(struct timeline *timeline, struct ptvm_error *error)
{
	struct iovec *slice = timeline->slices;
	struct iovec *end = slice + timeline->slice_count;

	timeline->slice_count = 0;
	timeline->kept.size = 0;
	while (slice < end) {
		ssize_t written = writev(timeline->output->fd, slice, (int)(end - slice));

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return ptvm_fail_errno(error, "cannot write output");
		for (; slice < end && (size_t)written >= slice->iov_len; slice++)
			written -= (ssize_t)slice->iov_len;
		if (slice == end)
			break;
		slice->iov_base = (char *)slice->iov_base + written;
		slice->iov_len -= (size_t)written;
	}
	return 0;
}

/* Add lines, which must stay where they are until the next flush(). */
static int add_lines(struct timeline *timeline, char *data, size_t size, struct ptvm_error *error)
{
	if (timeline->output->max_lines)
		size = limit(timeline, data, size);
	timeline->written |= size > 0;
	timeline->slices[timeline->slice_count++] = (struct iovec){ data, size };
	return timeline->slice_count < TIMELINE_SLICES ? 0 : flush(timeline, error);
}

/* Add a copy of lines. */
static int add_copy(struct timeline *timeline, const struct text *lines, struct ptvm_error *error)
{
	struct text *kept = &timeline->kept;
	int r;

	if (lines->failed)
		return -PTVM_NO_MEMORY;
	r = lines->size > KEPT_BYTES - kept->size ? flush(timeline, error) : 0;
	if (r)
		return r;
	if (lines->size > KEPT_BYTES) {
		r = add_lines(timeline, lines->data, lines->size, error);
		return r ? r : flush(timeline, error);
	}
	/* Reserve all at first: what was added must not move. */
	if (!text_reserve(kept, KEPT_BYTES - kept->size))
		return -PTVM_NO_MEMORY;
	text_add(kept, lines->data, lines->size);
	return add_lines(timeline, kept->data + kept->size - lines->size, lines->size, error);
}

/* Add lines of one time, which is filled in where they have a mark for it. */
static int write_timed(struct timeline *timeline, const char *data, size_t size, uint64_t time_ns,
		       struct ptvm_error *error)
{
	time_column_fill(&timeline->times, data, size, time_ns);
	return add_copy(timeline, &timeline->times.text, error);
}

static const struct print_run *next_run(const struct timeline_lane *lane)
{
	return lane->chunks.first ? &lane->chunks.first->runs.items[lane->run] : NULL;
}

static size_t start_of(const struct timeline_lane *lane)
{
	return lane->run ? lane->chunks.first->runs.items[lane->run - 1].end : 0;
}

/* The lane's runs up to one are done with. */
static void pass(struct timeline *timeline, struct timeline_lane *lane, size_t to)
{
	lane->run = to;
	if (to < lane->chunks.first->runs.count)
		return;
	chunk_list_push(&timeline->done, chunk_list_pop(&lane->chunks));
	lane->run = 0;
}

/* The lane whose next run is about the record that comes next; NULL none. */
static struct timeline_lane *lane_about_record(const struct timeline *timeline)
{
	const struct record_lines *records = &timeline->records;
	struct timeline_lane *lane = timeline->heap_count ? timeline->heap[0] : NULL;

	return lane && lane->heap_ns == records->time_ns && lane->heap_record == records->next
		       ? lane
		       : NULL;
}

static int write_record(struct timeline *timeline, struct ptvm_error *error)
{
	struct timeline_lane *lane = lane_about_record(timeline);
	struct record_lines *records = &timeline->records;
	struct sample_origin origin = { 0 };
	struct text *text = &records->text;
	int r;

	if (lane) {
		const char *at = lane->chunks.first->text.data + start_of(lane);

		origin = sample_origin_read((struct bytes){ (const uint8_t *)at,
							    next_run(lane)->end - start_of(lane) });
	}
	record_lines_make(records, &origin);
	if (lane)
		pass(timeline, lane, lane->run + 1);
	if (time_column_waits(&timeline->times))
		r = write_timed(timeline, text->data, text->size, records->time_ns, error);
	else
		r = add_copy(timeline, text, error);
	record_lines_next(records);
	return r;
}

/* The lane's runs up to one. */
static int write_runs(struct timeline *timeline, struct timeline_lane *lane, size_t to,
		      struct ptvm_error *error)
{
	const struct chunk *chunk = lane->chunks.first;
	const struct print_run *runs = chunk->runs.items;
	char *text = chunk->text.data;
	size_t start = start_of(lane);
	int r = 0;

	if (!time_column_waits(&timeline->times))
		r = add_lines(timeline, text + start, runs[to - 1].end - start, error);
	else
		for (size_t i = lane->run; !r && i < to && !timeline->full; i++) {
			r = write_timed(timeline, text + start, runs[i].end - start,
					runs[i].time_ns, error);
			start = runs[i].end;
		}
	if (!timeline->full) /* or some of them have not been written */
		pass(timeline, lane, to);
	return r;
}

/* The lane's next run that does not come before a time, or is about a record; at least the second
 * one. */
static size_t run_at(const struct timeline_lane *lane, uint64_t time_ns)
{
	const struct print_runs *runs = &lane->chunks.first->runs;
	size_t to = lane->run + 1;

	while (to < runs->count && runs->items[to].time_ns < time_ns && !runs->items[to].record)
		to++;
	return to;
}

/* Where times are the same, first comes a lane that may still get lines of that time, then one
 * whose next run is about a record, in the order of those, and then the lower one. */
static bool is_before(const struct timeline_lane *a, const struct timeline_lane *b)
{
	if (a->heap_ns != b->heap_ns)
		return a->heap_ns < b->heap_ns;
	if (a->heap_waits != b->heap_waits)
		return a->heap_waits;
	if (a->heap_record != b->heap_record)
		return a->heap_record - 1 < b->heap_record - 1; /* 0 is last */
	return a < b;
}

/* Put a lane of the heap that may come after those below it where it belongs. */
static void sink(struct timeline *timeline, size_t at)
{
	struct timeline_lane **heap = timeline->heap;

	for (;;) {
		struct timeline_lane *lane = heap[at];
		size_t best = at, below = 2 * at + 1;

		for (size_t i = below; i < below + 2 && i < timeline->heap_count; i++)
			if (is_before(heap[i], heap[best]))
				best = i;
		if (best == at)
			return;
		heap[at] = heap[best];
		heap[best] = lane;
		at = best;
	}
}

/* Its place in the heap is from now on that by its next lines. */
static void settle(struct timeline_lane *lane)
{
	const struct print_run *run = next_run(lane);

	lane->heap_ns = run ? run->time_ns : lane->from_ns;
	lane->heap_waits = !run;
	lane->heap_record = run ? run->record : 0;
}

static void order_lanes(struct timeline *timeline)
{
	timeline->is_ordered = true;
	timeline->heap_count = timeline->lane_count;
	for (size_t i = 0; i < timeline->lane_count; i++) {
		timeline->heap[i] = &timeline->lanes[i];
		settle(timeline->heap[i]);
	}
	for (size_t i = timeline->heap_count / 2; i--;)
		sink(timeline, i);
}

static void drop_first(struct timeline *timeline)
{
	timeline->heap[0] = timeline->heap[--timeline->heap_count];
	if (timeline->heap_count)
		sink(timeline, 0);
}

/* Bring the lane that comes first to the top of the heap: each that gets there goes down again if
 * it is later than the heap has it. Returns whether its lines are there, or all lanes have ended.
 */
static bool find_first(struct timeline *timeline)
{
	if (!timeline->is_ordered)
		order_lanes(timeline);
	while (timeline->heap_count) {
		struct timeline_lane *lane = timeline->heap[0];

		if (!lane->chunks.first && lane->ended) {
			drop_first(timeline);
			continue;
		}
		settle(lane);
		sink(timeline, 0);
		if (timeline->heap[0] == lane)
			return lane->chunks.first;
	}
	return true;
}

/* Whether a record comes next. Lines of the same time that are not there yet may be about it; what
 * is about one that was not wanted is done with before. */
static bool is_record_first(const struct timeline *timeline, bool known)
{
	const struct record_lines *records = &timeline->records;
	const struct timeline_lane *lane;

	if (records->time_ns == UINT64_MAX || !timeline->heap_count)
		return records->time_ns != UINT64_MAX;
	lane = timeline->heap[0];
	if (records->time_ns != lane->heap_ns)
		return records->time_ns < lane->heap_ns;
	return known && lane->heap_record - 1 >= records->next - 1;
}

/* The time before which the first lane may go on alone. */
static uint64_t until_next(const struct timeline *timeline)
{
	struct timeline_lane *const *heap = timeline->heap;
	const struct timeline_lane *next;
	uint64_t time_ns;

	if (timeline->heap_count < 2)
		return UINT64_MAX;
	next = timeline->heap_count > 2 && is_before(heap[2], heap[1]) ? heap[2] : heap[1];
	time_ns = next->heap_ns;
	return next < heap[0] || time_ns == UINT64_MAX ? time_ns : time_ns + 1;
}

bool timeline_is_ready(struct timeline *timeline)
{
	bool known = find_first(timeline);

	return is_record_first(timeline, known) || (known && timeline->heap_count);
}

struct timeline_lane *timeline_missed(const struct timeline *timeline)
{
	struct timeline_lane *lane = timeline->heap_count ? timeline->heap[0] : NULL;

	return lane && !lane->chunks.first && !lane->ended ? lane : NULL;
}

/* Write the next lines of the lane that is first, which come before a record. */
static int write_lane(struct timeline *timeline, struct ptvm_error *error)
{
	struct timeline_lane *lane = timeline->heap[0];
	uint64_t until = until_next(timeline), record_ns = timeline->records.time_ns;

	if (next_run(lane)->record) { /* that is not wanted */
		pass(timeline, lane, lane->run + 1);
		return 0;
	}
	return write_runs(timeline, lane, run_at(lane, until < record_ns ? until : record_ns),
			  error);
}

int timeline_write(struct timeline *timeline, struct ptvm_error *error)
{
	int r = 0;

	while (!r && !timeline->full) {
		bool known = find_first(timeline);

		if (is_record_first(timeline, known))
			r = write_record(timeline, error);
		else if (known && timeline->heap_count)
			r = write_lane(timeline, error);
		else
			break;
	}
	return r ? r : flush(timeline, error);
}

int timeline_init(struct timeline *timeline, size_t lanes, const struct print_config *print,
		  const struct timeline_output *output)
{
	*timeline = (struct timeline){ .output = output };
	timeline->times = (struct time_column){ .relative = print->relative_time,
						.delta = print->delta_time,
						.nanoseconds = print->nanoseconds };
	timeline->lanes = calloc(lanes, sizeof(*timeline->lanes));
	timeline->heap = calloc(lanes, sizeof(struct timeline_lane *));
	return timeline->lanes && timeline->heap ? record_lines_init(&timeline->records, print)
						 : -PTVM_NO_MEMORY;
}

void timeline_free(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->lane_count; i++)
		chunk_list_free(&timeline->lanes[i].chunks);
	chunk_list_free(&timeline->done);
	free(timeline->lanes);
	free(timeline->heap);
	record_lines_free(&timeline->records);
	text_free(&timeline->times.text);
	text_free(&timeline->kept);
}
