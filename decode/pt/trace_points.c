/* A point is a row of 64-bit words: a segment's position, context and clock, field by field, and
 * then the TSC offsets. The order is part of a file format (docs/recording-format.md). */
#include "decode/pt/trace_points.h"

#include <string.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"

enum { MOST_WORDS = TRACE_POINT_WORDS + 2 * PT_OFFSETS_MAX };

#define FIELD(name, most)                                                                          \
	{                                                                                          \
		offsetof(struct pt_segment, name), sizeof(((struct pt_segment *)NULL)->name), most \
	}

static const struct field {
	size_t at, size;
	uint64_t most;
} fields[TRACE_POINT_WORDS] = {
	FIELD(from, UINT64_MAX),
	FIELD(context.nr, 1),
	FIELD(context.in_tx, 1),
	FIELD(context.if_clear, 1),
	FIELD(context.bits, 64),
	FIELD(context.vmcs, UINT64_MAX),
	FIELD(context.cr3, UINT64_MAX),
	FIELD(clock.now, UINT64_MAX),
	FIELD(clock.base, UINT64_MAX),
	FIELD(clock.anchor, UINT64_MAX),
	FIELD(clock.ctc, UINT64_MAX),
	FIELD(clock.cycles, UINT64_MAX),
	FIELD(clock.mtc_cycles, UINT64_MAX),
	FIELD(clock.mtc_base, UINT64_MAX),
	FIELD(clock.ratio, UINT64_MAX),
	FIELD(clock.nominal, UINT64_MAX),
	FIELD(clock.ctc16, UINT16_MAX),
	FIELD(clock.last_mtc, UINT8_MAX),
	FIELD(clock.cbr, UINT8_MAX),
	FIELD(clock.known, 1),
	FIELD(clock.have_ctc, 1),
	FIELD(clock.doubtful, 1),
	FIELD(clock.mtc_unseen, 1),
	FIELD(clock.calibrating, 1),
	FIELD(clock.reference, UINT64_MAX),
	FIELD(clock.corrections, UINT64_MAX),
	FIELD(clock.translated, UINT64_MAX),
	FIELD(clock.offsets.count, PT_OFFSETS_MAX),
};

/* Returns how many words it takes. */
static size_t write_words(const struct pt_segment *segment, uint64_t words[MOST_WORDS])
{
	const struct pt_offsets *offsets = &segment->clock.offsets;

	for (size_t i = 0; i < TRACE_POINT_WORDS; i++) {
		words[i] = 0;
		memcpy(&words[i], (const char *)segment + fields[i].at, fields[i].size);
	}
	memcpy(words + TRACE_POINT_WORDS, offsets->items,
	       offsets->count * sizeof(offsets->items[0]));
	return TRACE_POINT_WORDS + 2 * (size_t)offsets->count;
}

/* Whether words can be a point. That they are the right one is for a walk to find out. */
static bool are_good(const uint64_t *words, size_t count, struct pt_segment *ret)
{
	const int64_t most_ticks = INT64_MAX / 4; /* of the crystal: centuries */
	struct pt_offsets *offsets = &ret->clock.offsets;

	if (count < TRACE_POINT_WORDS)
		return false;
	for (size_t i = 0; i < TRACE_POINT_WORDS; i++) {
		if (words[i] > fields[i].most)
			return false;
		memcpy((char *)ret + fields[i].at, &words[i], fields[i].size);
	}
	if (count - TRACE_POINT_WORDS < 2 * (size_t)offsets->count)
		return false;
	memcpy(offsets->items, words + TRACE_POINT_WORDS,
	       offsets->count * sizeof(offsets->items[0]));
	return (ret->context.bits == 16 || ret->context.bits == 32 || ret->context.bits == 64) &&
	       ret->clock.ctc < most_ticks && ret->clock.ctc > -most_ticks;
}

static bool is_after_all(const struct trace_points *points, const struct pt_segment *segment)
{
	const struct trace_point *last = points->items;

	if (!points->count)
		return true;
	last += points->count - 1;
	return segment->from > last->position && segment->clock.now >= last->tsc;
}

static int add(struct trace_points *points, const struct pt_segment *segment, const uint64_t *words,
	       size_t count)
{
	struct trace_point point = { segment->from, segment->clock.now, points->words.count };

	for (size_t i = 0; i < count; i++)
		if (!vec_push(&points->words, words[i]))
			return -PTVM_NO_MEMORY;
	return vec_push(points, point) ? 0 : -PTVM_NO_MEMORY;
}

int trace_points_add(struct trace_points *points, const struct pt_segment *segment)
{
	uint64_t words[MOST_WORDS];

	if (!is_after_all(points, segment))
		return 0;
	return add(points, segment, words, write_words(segment, words));
}

int trace_points_take(struct trace_points *points, const uint64_t *words, size_t count)
{
	struct pt_segment segment = { .to_psb = false };
	int r;

	if (!are_good(words, count, &segment) || !is_after_all(points, &segment))
		return -PTVM_BAD_INPUT;
	count = TRACE_POINT_WORDS + 2 * (size_t)segment.clock.offsets.count;
	r = add(points, &segment, words, count);
	return r ? r : (int)count;
}

struct pt_segment trace_points_segment(const struct trace_points *points, size_t index,
				       const struct aux_queue *queue,
				       const struct pt_config *config)
{
	size_t at = points->items[index].words;
	struct pt_segment segment = { .queue = queue };

	pt_clock_init(&segment.clock, config); /* what does not change */
	(void)are_good(points->words.items + at, points->words.count - at, &segment);
	return segment;
}

bool trace_points_equal(const struct trace_points *points, size_t index,
			const struct pt_segment *segment)
{
	size_t at = points->items[index].words;
	uint64_t words[MOST_WORDS];
	size_t count = write_words(segment, words);

	return !segment->fresh && points->words.count - at >= count &&
	       !memcmp(points->words.items + at, words, count * sizeof(words[0]));
}

size_t trace_points_before(const struct trace_points *points, const struct time_conv *conv,
			   uint64_t time_ns)
{
	return search_sorted(points->count, i, time_conv_ns(conv, points->items[i].tsc) < time_ns);
}

void trace_points_drop(struct trace_points *points)
{
	trace_points_free(points);
	points->bad = true;
}

void trace_points_free(struct trace_points *points)
{
	vec_free(points);
	vec_free(&points->words);
}
