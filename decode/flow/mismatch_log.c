#include "decode/flow/mismatch_log.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum {
	NEAR = 16, /* bytes of trace: a reason may show a bit earlier or later */
	AT_ODDS = 1 << MISMATCH_LOST | 1 << MISMATCH_ODD, /* kinds of events */
	ANY = AT_ODDS | 1 << MISMATCH_FOUND,
	ASIDE = 3,     /* a patch was not in force outside of its time if so many places speak
			* against it there, */
	ASIDE_IN = 16, /* and so many times more than speak for it */
};

static bool is_lost(const struct mismatch_log *log)
{
	const struct mismatch *last = log->count ? &log->items[log->count - 1] : NULL;

	return last && last->kind == MISMATCH_LOST && last->source == log->source;
}

void mismatch_log_add(struct mismatch_log *log, struct mismatch event)
{
	if (event.kind == MISMATCH_FOUND && !is_lost(log))
		return;
	event.source = log->source;
	event.segment = log->segment;
	if (log->count >= MISMATCH_LOG_MAX || !vec_push(log, event))
		log->is_cut = true;
}

void mismatch_log_clear(struct mismatch_log *log)
{
	log->count = 0;
	log->source = log->segment = 0;
	log->is_cut = false;
}

void mismatch_log_free(struct mismatch_log *log)
{
	vec_free(log);
}

/* What a place says: for the patch, or against it. */
struct evidence {
	uint64_t time;
	bool is_for, is_odd;
};

struct evidence_list {
	struct evidence *items;
	size_t count, room;
};

/* Whether the event comes before a place. */
static bool is_below(const struct mismatch *event, uint32_t source, uint64_t position)
{
	return event->source != source ? event->source < source : event->position < position;
}

/* The first event of the log at or behind a place. */
static size_t find(const struct mismatch_log *log, uint32_t source, uint64_t position)
{
	return search_sorted(log->count, i, is_below(&log->items[i], source, position));
}

/* The first event of the log in a segment, or behind it. */
static size_t find_segment(const struct mismatch_log *log, uint32_t segment)
{
	return search_sorted(log->count, i, log->items[i].segment < segment);
}

bool mismatch_log_is_at_odds(const struct mismatch_log *log, uint32_t segment)
{
	for (size_t i = find_segment(log, segment);
	     i < log->count && log->items[i].segment == segment; i++)
		if (log->items[i].kind == MISMATCH_LOST)
			return true;
	return false;
}

size_t mismatch_log_against(const struct mismatch_log *log)
{
	size_t count = 0;

	for (size_t i = 0; i < log->count; i++)
		count += log->items[i].kind == MISMATCH_LOST && log->items[i].from;
	return count;
}

void mismatch_log_add_from(struct mismatch_log *log, const struct mismatch_log *other)
{
	for (size_t i = find_segment(other, log->segment);
	     i < other->count && other->items[i].segment == log->segment; i++)
		mismatch_log_add(log, other->items[i]);
	log->is_cut |= other->is_cut;
}

/* Branches that look odd, but that programs do make: they are made with and without the patch. */
struct usual {
	struct odd {
		uint64_t from, to;
		bool is_used, is_usual;
	} * slots; /* by a hash */
	size_t mask;
};

/* The slot of a branch, or the free one where it belongs. */
static struct odd *slot_of(const struct usual *usual, const struct mismatch *event)
{
	uint64_t hash = (event->from ^ event->to << 1) * 0x9e3779b97f4a7c15;
	struct odd *slot;

	for (size_t at = hash >> 32;; at++) {
		slot = &usual->slots[at & usual->mask];
		if (!slot->is_used || (slot->from == event->from && slot->to == event->to))
			return slot;
	}
}

static bool is_usual(const struct usual *usual, const struct mismatch *event)
{
	return event->kind == MISMATCH_ODD && usual->slots && slot_of(usual, event)->is_usual;
}

static size_t count_odd(const struct mismatch_log *log)
{
	size_t count = 0;

	for (size_t i = 0; i < log->count; i++)
		count += log->items[i].kind == MISMATCH_ODD;
	return count;
}

/* Returns false when memory is out; free the slots in any case. */
static bool find_usual(const struct mismatch_log *without, const struct mismatch_log *with,
		       struct usual *ret)
{
	size_t count = count_odd(with), mask = 1;

	if (!count || !count_odd(without))
		return true;
	while (mask / 2 < count)
		mask = mask * 2 + 1;
	ret->mask = mask;
	ret->slots = calloc(mask + 1, sizeof(*ret->slots));
	if (!ret->slots)
		return false;
	for (size_t i = 0; i < with->count; i++) {
		const struct mismatch *event = &with->items[i];

		if (event->kind == MISMATCH_ODD)
			*slot_of(ret, event) = (struct odd){ event->from, event->to, true, false };
	}
	for (size_t i = 0; i < without->count; i++) {
		const struct mismatch *event = &without->items[i];

		if (event->kind == MISMATCH_ODD)
			slot_of(ret, event)->is_usual = slot_of(ret, event)->is_used;
	}
	return true;
}

/* Whether there is an event of these kinds close to another one, that is not `usual` (NULL: none
 * is). */
static bool is_near(const struct mismatch_log *log, const struct mismatch *event, unsigned kinds,
		    const struct usual *usual)
{
	uint64_t from = event->position < NEAR ? 0 : event->position - NEAR;

	for (size_t i = find(log, event->source, from); i < log->count; i++) {
		const struct mismatch *other = &log->items[i];

		if (other->source != event->source || other->position > event->position + NEAR)
			break;
		if (kinds & 1U << other->kind && !(usual && is_usual(usual, other)))
			return true;
	}
	return false;
}

/* Whether the flow was lost where another log is at odds, so that this one says nothing there. */
static bool is_lost_at(const struct mismatch_log *log, const struct mismatch *event)
{
	size_t i = find(log, event->source, event->position);

	return i > 0 && log->items[i - 1].source == event->source &&
	       log->items[i - 1].kind == MISMATCH_LOST;
}

/* Whether the event speaks against the patch. */
static bool is_against(const struct mismatch_log *without, const struct usual *usual,
		       const struct mismatch *event)
{
	return event->kind != MISMATCH_FOUND && !is_usual(usual, event) &&
	       !is_lost_at(without, event) && !is_near(without, event, ANY, usual);
}

/* Whether an event is about the place of the one before, and says no more. */
static bool is_again(const struct mismatch *event, const struct mismatch *last)
{
	return last && last->source == event->source && last->kind == event->kind &&
	       event->position - last->position <= NEAR;
}

/* Whether packets agreed with the way behind the event before the flow was lost again: a loop that
 * takes whatever bits there are goes on, too. */
static bool is_agreed_behind(const struct mismatch_log *log, const struct mismatch *event)
{
	for (size_t i = find(log, event->source, event->position); i < log->count; i++) {
		const struct mismatch *other = &log->items[i];

		if (other->source != event->source || other->segment != event->segment)
			break;
		if (other->kind == MISMATCH_LOST)
			return other->agreed > event->position;
	}
	return true;
}

/* An odd branch is still there if it is made again; where the flow was lost it may make others that
 * are usual. */
static bool is_gone(const struct mismatch_log *with, const struct usual *usual,
		    const struct mismatch *event)
{
	return event->kind != MISMATCH_FOUND && !is_lost_at(with, event) &&
	       !is_near(with, event, AT_ODDS, event->kind == MISMATCH_LOST ? usual : NULL) &&
	       is_agreed_behind(with, event);
}

/* What is compared, and the evidence so far. */
struct comparison {
	const struct mismatch_log *without, *with, *unclear;
	struct usual usual;
	const struct mismatch *last_for, *last_against;
	struct evidence_list *ret;
};

static bool collect_for(struct comparison *logs, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct mismatch *event = &logs->without->items[i];

		if (!is_gone(logs->with, &logs->usual, event) ||
		    is_near(logs->unclear, event, AT_ODDS, NULL))
			continue;
		if (!is_again(event, logs->last_for) &&
		    !vec_push(logs->ret, (struct evidence){ .time = event->time, .is_for = true }))
			return false;
		logs->last_for = event;
	}
	return true;
}

static bool collect_against(struct comparison *logs, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct mismatch *event = &logs->with->items[i];
		struct evidence evidence = { .time = event->time,
					     .is_odd = event->kind == MISMATCH_ODD };

		if (!is_against(logs->without, &logs->usual, event))
			continue;
		if (!is_again(event, logs->last_against) && !vec_push(logs->ret, evidence))
			return false;
		logs->last_against = event;
	}
	return true;
}

/* Where the events of a segment end, of which `from` may be the first. */
static size_t end_of(const struct mismatch_log *log, size_t from, uint32_t segment)
{
	while (from < log->count && log->items[from].segment == segment)
		from++;
	return from;
}

static uint32_t segment_at(const struct mismatch_log *log, size_t at)
{
	return at < log->count ? log->items[at].segment : UINT32_MAX;
}

static bool is_same(const struct mismatch *a, const struct mismatch *b)
{
	return a->source == b->source && a->position == b->position && a->kind == b->kind &&
	       a->from == b->from && a->to == b->to;
}

/* Segments in which both logs tell the same say nothing, and they are most. */
static bool collect(struct comparison *logs)
{
	size_t i = 0, k = 0;

	while (i < logs->without->count || k < logs->with->count) {
		uint32_t left = segment_at(logs->without, i), right = segment_at(logs->with, k);
		uint32_t segment = left < right ? left : right;
		size_t left_end = end_of(logs->without, i, segment);
		size_t right_end = end_of(logs->with, k, segment);

		while (i < left_end && k < right_end &&
		       is_same(&logs->without->items[i], &logs->with->items[k])) {
			i++;
			k++;
		}
		if (!collect_for(logs, i, left_end) || !collect_against(logs, k, right_end))
			return false;
		i = left_end;
		k = right_end;
	}
	return true;
}

SORT_BY_TWO(compare, struct evidence, time, is_for)

/* The stretch [*from, *to) of the evidence that speaks most for the patch. */
static void find_stretch(const struct evidence_list *list, size_t *from, size_t *to)
{
	int64_t sum = 0, best = 0;
	size_t begin = 0;

	*from = *to = 0;
	for (size_t i = 0; i < list->count; i++) {
		sum += list->items[i].is_for ? 1 : -1;
		if (sum <= 0) {
			sum = 0;
			begin = i + 1;
		} else if (sum > best) {
			best = sum;
			*from = begin;
			*to = i + 1;
		}
	}
}

struct sums {
	uint32_t gone, against, odd;
};

static struct sums add_up(const struct evidence_list *list, size_t from, size_t to)
{
	struct sums sums = { 0 };

	for (size_t i = from; i < to; i++) {
		sums.gone += list->items[i].is_for;
		sums.odd += list->items[i].is_odd;
		sums.against += !list->items[i].is_for && !list->items[i].is_odd;
	}
	return sums;
}

/* Whether the patch was not in force at the time of these. */
static bool is_aside(const struct evidence_list *list, size_t from, size_t to)
{
	struct sums sums = add_up(list, from, to);

	return sums.against >= ASIDE && sums.against >= ASIDE_IN * sums.gone;
}

/* Whether there is a time between the first `count` and the others. */
static bool is_between(const struct evidence_list *list, size_t count)
{
	return !count || count == list->count ||
	       list->items[count - 1].time < list->items[count].time;
}

static void judge(const struct evidence_list *list, struct mismatch_verdict *ret)
{
	struct sums sums;
	size_t from, to;

	find_stretch(list, &from, &to);
	if (!is_between(list, from) || !is_aside(list, 0, from))
		from = 0;
	if (!is_between(list, to) || !is_aside(list, to, list->count))
		to = list->count;

	sums = add_up(list, from, to);
	ret->since = from ? list->items[from - 1].time + 1 : 0;
	ret->until = to < list->count ? list->items[to].time : UINT64_MAX;
	ret->first = from < to ? list->items[from].time : 0;
	ret->last = from < to ? list->items[to - 1].time : 0;
	ret->gone = sums.gone;
	ret->odd = sums.odd;
	ret->against =
		sums.against + add_up(list, 0, from).gone + add_up(list, to, list->count).gone;
}

int mismatch_log_compare(const struct mismatch_log *without, const struct mismatch_log *with,
			 const struct mismatch_log *unclear, struct mismatch_verdict *ret)
{
	bool is_whole = !without->is_cut && !with->is_cut && !unclear->is_cut;
	struct evidence_list list = { 0 };
	struct comparison logs = { without, with, unclear, .ret = &list };

	*ret = (struct mismatch_verdict){ .until = UINT64_MAX };
	is_whole = is_whole && find_usual(without, with, &logs.usual) && collect(&logs);
	if (is_whole && list.count) {
		sort_vec(&list, compare);
		judge(&list, ret);
	}
	free(logs.usual.slots);
	vec_free(&list);
	return is_whole ? 0 : -PTVM_NO_MEMORY;
}

static int compare_places(const void *a, const void *b)
{
	const struct mismatch *left = a, *right = b;

	return is_below(right, left->source, left->position) -
	       is_below(left, right->source, right->position);
}

void mismatch_log_add_gone(const struct mismatch_log *without, const struct mismatch_log *with,
			   struct mismatch_log *unclear)
{
	struct usual usual = { 0 };

	unclear->is_cut |= !find_usual(without, with, &usual);
	for (size_t i = 0; i < without->count && !unclear->is_cut; i++) {
		if (!is_gone(with, &usual, &without->items[i]))
			continue;
		unclear->source = without->items[i].source;
		mismatch_log_add(unclear, without->items[i]);
	}
	sort_vec(unclear, compare_places);
	free(usual.slots);
}
