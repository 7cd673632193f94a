#include "correlate/vmcs_seen.h"

#include <stdlib.h>

#include "correlate/tsc_chain.h"
#include "decode/base/error.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/pt/pt_clock.h"

/* More of them than any real machine has, so that damage cannot make us fill memory. */
enum { SEEN_MAX = 1024, RUNS_MAX = 1024 };

/* A walk and what it needs besides the table. */
struct collector {
	struct vmcs_table *table;
	const struct aux_queue *queue;
	size_t number;
	const struct pt_config *config;
	int64_t tolerance;
	struct tsc_chain chain; /* of the host's TSC */
	struct tsc_chain guest; /* of a guest's that this does not date, or not surely */
	bool have_host;         /* time stamps of the host; `host` is the last */
	uint64_t host;
};

/* The entry of a VMCS, NULL if it was not seen. */
static struct vmcs_seen *find(const struct vmcs_table *table, uint64_t vmcs)
{
	for (size_t i = 0; i < table->seen.count; i++)
		if (table->seen.items[i].vmcs == vmcs)
			return &table->seen.items[i];
	return NULL;
}

/* The entry of a VMCS, made where there is none. Returns -PTVM_END when there are `most`. */
static int get(struct vmcs_table *table, uint64_t vmcs, size_t queue, size_t most,
	       struct vmcs_seen **ret)
{
	*ret = find(table, vmcs);
	if (*ret)
		return 0;
	if (table->seen.count >= most)
		return -PTVM_END;
	if (!vec_push(&table->seen, (struct vmcs_seen){ .vmcs = vmcs, .queue = queue }))
		return -PTVM_NO_MEMORY;
	*ret = &table->seen.items[table->seen.count - 1];
	return 0;
}

/* Of too many runs, keep those with more than one observation. */
static void squeeze(struct vmcs_seen *seen)
{
	size_t kept = 0;

	for (size_t i = 0; i < seen->runs.count; i++) {
		if (seen->runs.items[i].count == 1)
			seen->outliers++;
		else
			seen->runs.items[kept++] = seen->runs.items[i];
	}
	seen->runs.count = kept;
}

static int push_run(struct vmcs_seen *seen, const struct tsc_run *run)
{
	if (seen->runs.count == RUNS_MAX)
		squeeze(seen);
	if (seen->runs.count == RUNS_MAX) {
		seen->outliers += run->count;
		return 0;
	}
	return vec_push(&seen->runs, *run) ? 0 : -PTVM_NO_MEMORY;
}

/* Two observations in a row that agree with each other and not with the run begin a new one; one
 * that agrees with nothing is an outlier. */
static int observe(const struct collector *collector, struct vmcs_seen *seen,
		   const struct tsc_pair *pair, enum tsc_quality quality)
{
	struct tsc_run *last = seen->runs.count ? &seen->runs.items[seen->runs.count - 1] : NULL;
	struct tsc_run begun = tsc_run_begin(pair, quality, collector->number);
	int r = 0;

	if (!last)
		return push_run(seen, &begun);
	if (tsc_run_add(last, pair, quality, collector->tolerance)) {
		seen->outliers += seen->have_pending;
		seen->have_pending = false;
		return 0;
	}
	if (seen->have_pending && tsc_run_is_constant(last) &&
	    tsc_run_tilt(last, &seen->pending, pair, collector->tolerance)) {
		seen->have_pending = false;
		return 0;
	}
	if (seen->have_pending) {
		bool agrees = tsc_run_add(&seen->pending, pair, quality, collector->tolerance);

		r = push_run(seen, &seen->pending);
		seen->have_pending = !agrees;
	} else {
		seen->have_pending = true;
	}
	seen->pending = begun;
	return r;
}

static int observe_of(const struct collector *collector, uint64_t vmcs, const struct tsc_pair *pair,
		      enum tsc_quality quality)
{
	struct vmcs_seen *seen;
	int r = get(collector->table, vmcs, collector->number, SEEN_MAX, &seen);

	return r ? r : observe(collector, seen, pair, quality);
}

/* Take in the observations that waited for the host's TSC, which says how good they are, or does
 * not come. */
static int flush_waiting(const struct collector *collector, enum tsc_quality quality)
{
	struct vmcs_table *table = collector->table;
	int r = 0;

	for (size_t i = 0; i < table->waiting_count && (!r || r == -PTVM_END); i++)
		r = observe_of(collector, table->waiting[i].vmcs, &table->waiting[i].pair, quality);
	table->waiting_count = 0;
	return r == -PTVM_END ? 0 : r;
}

static bool near(const struct collector *collector, uint64_t a, uint64_t b)
{
	int64_t apart = tsc_difference(a, b);

	return apart <= collector->tolerance && apart >= -collector->tolerance;
}

/* The host's TSC does not run back: what is before its last one is a guest's, as behind data that
 * was lost up to the middle of a PSB+. */
static bool is_before_host(const struct collector *collector, uint64_t tsc)
{
	return collector->have_host && tsc_difference(tsc, collector->host) < -collector->tolerance;
}

/* Where no PSB+ says whose time it is, the host's TSC is known by what it must be, and a guest's by
 * the offset that it had. */
static bool is_guest(const struct collector *collector, const struct tsc_event *event)
{
	const struct tsc_chain *chain = &collector->chain;
	const struct vmcs_seen *seen;
	uint64_t host;

	if (event->mode_told)
		return event->guest;
	if (!tsc_chain_expect(chain, event, collector->config, &host))
		return event->guest || is_before_host(collector, event->value);
	if (near(collector, event->value, host))
		return false;
	if (event->guest)
		return true;
	seen = find(collector->table, event->vmcs);
	if (!seen || !seen->runs.count)
		return false;
	return near(collector, event->value,
		    host + tsc_run_offset(&seen->runs.items[seen->runs.count - 1]));
}

/* Observe the guest whose TSC is followed, now that the host's is told. The pair is as of the
 * guest's time stamp: by now another thread may have the CPU. */
static int observe_guest(const struct collector *collector, const struct tsc_event *event,
			 uint64_t host)
{
	const struct tsc_chain *guest = &collector->guest;
	struct tsc_pair pair = { .guest = guest->tsc & PT_TSC_MASK };
	uint64_t expected;

	if (!tsc_chain_expect(guest, event, collector->config, &expected))
		return 0;
	pair.host = host - (expected - guest->tsc);
	/* outside of a PSB+ the CPU may have slept, when the crystal stands still */
	return observe_of(collector, guest->vmcs, &pair,
			  guest->lost || !event->in_psb ? TSC_DOUBTFUL : TSC_GOOD);
}

/* What the host's TSC says of the observations that wait for it. */
static enum tsc_quality judge_waiting(const struct collector *collector,
				      const struct tsc_event *event, uint64_t host)
{
	const struct tsc_chain *chain = &collector->chain;
	uint64_t expected;

	return !chain->lost && tsc_chain_expect(chain, event, collector->config, &expected) &&
			       near(collector, host, expected)
		       ? TSC_CONFIRMED
		       : TSC_DOUBTFUL;
}

static int take_host(struct collector *collector, const struct tsc_event *event)
{
	struct vmcs_table *table = collector->table;
	struct tsc_chain *chain = &collector->chain;
	uint64_t host = tsc_near(
		event->value, tsc_chain_about(chain, event, collector->queue, collector->config));
	int r;

	collector->have_host = true;
	collector->host = event->value;
	if (!event->have_tma)
		return 0;
	r = observe_guest(collector, event, host);
	if (!r || r == -PTVM_END)
		r = flush_waiting(collector, judge_waiting(collector, event, host));
	if (!table->phase.valid)
		table->phase =
			(struct tsc_phase){ true, host - event->fast, (uint16_t)event->count };
	tsc_chain_anchor(chain, event, host);
	collector->guest = (struct tsc_chain){ 0 };
	return r;
}

/* Note a guest's TSC packet; NULL in `ret` where nothing is to be learned from it. */
static int note_guest(const struct collector *collector, const struct tsc_event *event,
		      struct vmcs_seen **ret)
{
	struct vmcs_table *table = collector->table;
	int r;

	*ret = NULL;
	if (event->vmcs == PT_NO_VMCS) {
		table->no_vmcs++;
		return 0;
	}
	r = get(table, event->vmcs, collector->number, SEEN_MAX, ret);
	if (r) {
		table->dropped += r == -PTVM_END;
		return r == -PTVM_END ? 0 : r;
	}
	if (!(*ret)->packets++)
		(*ret)->first_host = tsc_chain_about(&collector->chain, event, collector->queue,
						     collector->config);
	(*ret)->without_tma += !event->have_tma;
	return 0;
}

static int take_guest(struct collector *collector, const struct tsc_event *event)
{
	struct vmcs_table *table = collector->table;
	struct tsc_chain *chain = &collector->chain;
	struct tsc_pair pair = { .guest = event->value };
	struct vmcs_seen *seen;
	int r = note_guest(collector, event, &seen);

	if (r || !seen || !event->have_tma)
		return r;
	if (!tsc_chain_expect(chain, event, collector->config, &pair.host)) {
		tsc_chain_anchor(&collector->guest, event, event->value);
		return 0;
	}
	chain->lost |= !event->in_psb; /* it may have slept, as the host */
	if (chain->lost) {
		tsc_chain_anchor(&collector->guest, event, event->value);
		return observe(collector, seen, &pair, TSC_DOUBTFUL);
	}
	if (table->waiting_count == TSC_WAITING_MAX)
		r = flush_waiting(collector, TSC_GOOD);
	table->waiting[table->waiting_count++] = (struct tsc_waiting){ pair, event->vmcs };
	return r;
}

/* Tracing ended in a guest whose time was never seen beside the host's: the kernel's time of that
 * is good to some microseconds, and the crystal may tell the rest. */
static int take_break(struct collector *collector, const struct tsc_event *event)
{
	const struct pt_config *config = collector->config;
	const struct tsc_chain *guest = &collector->guest;
	const struct aux_span *span =
		pt_span_at(collector->queue, event->position ? event->position - 1 : 0);
	struct vmcs_seen *seen;
	uint64_t ticks;
	int r = flush_waiting(collector, TSC_GOOD);

	if (r || collector->chain.known || !guest->known || !event->have_count || !span ||
	    !span->stop_ns || !config->conv.valid)
		return r;
	r = get(collector->table, guest->vmcs, collector->number, SEEN_MAX, &seen);
	if (r || seen->rough.valid)
		return r == -PTVM_END ? 0 : r;
	ticks = pt_ctc_to_tsc(config, event->count - guest->count);
	seen->rough =
		(struct tsc_rough){ .valid = true,
				    .host = time_conv_tsc(&config->conv, span->stop_ns) - ticks,
				    .guest = guest->tsc & PT_TSC_MASK,
				    .ctc = (uint16_t)guest->count,
				    .queue = collector->number };
	return 0;
}

static void step(struct collector *collector, const struct tsc_event *event)
{
	tsc_chain_step(&collector->chain, event);
	tsc_chain_step(&collector->guest, event);
}

static int take(struct collector *collector, const struct tsc_event *event)
{
	int r;

	switch (event->kind) {
	case TSC_PACKET:
		step(collector, event);
		collector->table->packets++;
		return is_guest(collector, event) ? take_guest(collector, event)
						  : take_host(collector, event);
	case TSC_BREAK:
		r = take_break(collector, event);
		step(collector, event);
		return r;
	default: return 0;
	}
}

/* An observation that was left over at the end is one like others. */
static int finish(struct vmcs_table *table)
{
	int r = 0;

	for (size_t i = 0; i < table->seen.count && !r; i++) {
		struct vmcs_seen *seen = &table->seen.items[i];

		if (seen->have_pending)
			r = push_run(seen, &seen->pending);
		seen->have_pending = false;
	}
	return r;
}

int vmcs_table_collect(struct vmcs_table *table, const struct aux_queue *queue, size_t number,
		       const struct pt_config *config, struct vmcs_walks *walks)
{
	struct collector collector = { .table = table,
				       .queue = queue,
				       .number = number,
				       .config = config,
				       .tolerance = tsc_tolerance(config) };
	uint64_t before = 0;
	struct tsc_event event;
	struct tsc_walk walk;

	tsc_walk_init(&walk, queue, config, walks->mapping);
	while (!tsc_walk_next(&walk, &event)) {
		uint64_t at = pt_cursor_position(&walk.cursor);
		int r = take(&collector, &event);

		if (r)
			return r;
		__atomic_fetch_add(&walks->done, at - before, __ATOMIC_RELAXED);
		before = at;
		if (__atomic_load_n(&walks->stop, __ATOMIC_RELAXED))
			return -PTVM_END;
	}
	return finish(table);
}

/* Which of two queues saw a guest first: one that does not know when is last, of two such the lower
 * one is first. */
static bool is_earlier(const struct vmcs_seen *a, const struct vmcs_seen *b)
{
	const uint64_t x = a->first_host - 1,
		       y = b->first_host - 1; /* 0, unknown, becomes the most */

	return x == y ? a->queue < b->queue : x < y;
}

static bool is_earlier_phase(const struct tsc_phase *a, const struct tsc_phase *b)
{
	return a->host == b->host ? a->ctc < b->ctc : a->host < b->host;
}

/* The best first. */
static int compare_worth(const void *a, const void *b)
{
	if (tsc_run_is_better(a, b) || tsc_run_is_better(b, a))
		return tsc_run_is_better(a, b) ? -1 : 1;
	return tsc_run_compare(a, b);
}

SORT_BY(compare_vmcs, struct vmcs_seen, vmcs)

/* Of too many runs the best are kept: the same ones in whatever order they come. */
static int merge_runs(struct vmcs_seen *to, const struct vmcs_seen *from)
{
	for (size_t i = 0; i < from->runs.count; i++)
		if (!vec_push(&to->runs, from->runs.items[i]))
			return -PTVM_NO_MEMORY;
	if (to->runs.count <= RUNS_MAX)
		return 0;
	sort_vec(&to->runs, compare_worth);
	for (size_t i = RUNS_MAX; i < to->runs.count; i++)
		to->outliers += to->runs.items[i].count;
	to->runs.count = RUNS_MAX;
	return 0;
}

static int merge_seen(struct vmcs_table *table, const struct vmcs_seen *from)
{
	struct vmcs_seen *to;
	int r = get(table, from->vmcs, from->queue, SIZE_MAX, &to);

	if (!r)
		r = merge_runs(to, from);
	if (r)
		return r;
	if (from->rough.valid && (!to->rough.valid || from->rough.queue < to->rough.queue))
		to->rough = from->rough;
	to->packets += from->packets;
	to->without_tma += from->without_tma;
	to->outliers += from->outliers;
	if (is_earlier(from, to)) {
		to->first_host = from->first_host;
		to->queue = from->queue;
	}
	return 0;
}

/* Of too many VMCSs the lowest are kept, for the same reason. */
static void drop_highest(struct vmcs_table *table)
{
	if (table->seen.count <= SEEN_MAX)
		return;
	sort_vec(&table->seen, compare_vmcs);
	for (size_t i = SEEN_MAX; i < table->seen.count; i++) {
		table->dropped += table->seen.items[i].packets;
		vec_free(&table->seen.items[i].runs);
	}
	table->seen.count = SEEN_MAX;
}

int vmcs_table_merge(struct vmcs_table *table, const struct vmcs_table *from)
{
	int r = 0;

	for (size_t i = 0; i < from->seen.count && !r; i++)
		r = merge_seen(table, &from->seen.items[i]);
	drop_highest(table);
	if (from->phase.valid &&
	    (!table->phase.valid || is_earlier_phase(&from->phase, &table->phase)))
		table->phase = from->phase;
	table->packets += from->packets;
	table->no_vmcs += from->no_vmcs;
	table->dropped += from->dropped;
	return r;
}

void vmcs_table_free(struct vmcs_table *table)
{
	for (size_t i = 0; i < table->seen.count; i++)
		vec_free(&table->seen.items[i].runs);
	vec_free(&table->seen);
}
