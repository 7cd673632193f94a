#include "decode/pt/pt_offset_learn.h"

#include "decode/base/cleanup.h"
#include "decode/base/error.h"
#include "decode/pt/aux_pages.h"
#include "decode/pt/pt_segment.h"

enum {
	LEARN_BYTES = 32 << 20, /* how far into a queue to look */
	LEARN_GROUPS = 4096,    /* PSB+ of a queue to look at */
	CTC_RANGE = 1 << 16,    /* values of the crystal count that a TMA shows */
};

struct learner {
	const struct aux_queue *queues;
	size_t count;
	const struct pt_config *config;
	const struct bytes *mapping;
	bool *used_up;   /* for each queue: it was walked, and has no more to tell */
	size_t searched; /* so many of the first queues have no TSC and TMA of the host */
	bool have_host;  /* `host` is a PSB+ that has them */
	struct pt_psb_state host;
};

static bool read_psb(const struct aux_queue *queue, const struct pt_config *config,
		     uint64_t position, struct pt_psb_state *ret)
{
	struct pt_packet packet;
	struct pt_cursor cursor;

	pt_cursor_init(&cursor, queue, config, position);
	return !pt_cursor_next(&cursor, &packet) && packet.kind == PT_PSB &&
	       !pt_cursor_psb(&cursor, ret);
}

/* Whether the trace is in a guest at a PSB whose offset is not known; `ret` is its PSB+ then. */
static bool needs_offset(const struct aux_queue *queue, const struct pt_config *config,
			 uint64_t psb, const struct pt_offsets *known, struct pt_psb_state *ret)
{
	uint64_t offset;

	if (!read_psb(queue, config, psb, ret))
		return false;
	return ret->have_pip && ret->nr && !pt_offsets_find(known, ret->vmcs, &offset);
}

/* Walk all queues, beginning with number `first`, until one has shown the offset of this VMCS. A
 * queue is walked once, however many others need an offset. */
static void learn_by_walk(const struct learner *learner, size_t first, uint64_t vmcs,
			  struct pt_offsets *offsets)
{
	bool is_known = false;

	for (size_t k = 0; k < learner->count && !is_known; k++) {
		size_t number = (first + k) % learner->count;
		struct pt_segment segment;
		struct pt_walk walk;
		uint64_t offset;

		if (learner->used_up[number])
			continue;
		pt_walk_init(&walk, &learner->queues[number], learner->config, offsets, 0);
		while (!is_known && !pt_walk_next(&walk, &segment) && segment.to < LEARN_BYTES)
			is_known = pt_offsets_find(&walk.clock.offsets, vmcs, &offset);
		learner->used_up[number] = !is_known;
		aux_pages_release_trace(learner->mapping, &learner->queues[number], 0,
					pt_cursor_position(&walk.cursor));
		*offsets = walk.clock.offsets;
		is_known = pt_offsets_find(offsets, vmcs, &offset);
	}
}

/* A PSB+ of the host with TSC and TMA, in any queue; looked for once. */
static bool find_host_tsc(struct learner *learner)
{
	const struct aux_queue *queues = learner->queues;
	struct pt_psb_state *host = &learner->host;

	for (; !learner->have_host && learner->searched < learner->count; learner->searched++) {
		size_t i = learner->searched;
		uint64_t position = pt_psb_after(&queues[i], 0);

		for (int n = 0; n < LEARN_GROUPS && position < queues[i].size; n++) {
			learner->have_host =
				read_psb(&queues[i], learner->config, position, host) &&
				host->have_pip && !host->nr && host->have_tsc && host->tsc.have_tma;
			if (learner->have_host)
				return true;
			position = pt_psb_after(&queues[i], position + PT_PSB_SIZE);
		}
	}
	return learner->have_host;
}

/* The first span from number `i` on whose end is dated, with no loss before that; NULL if none. */
static const struct aux_span *dated_span(const struct aux_queue *queue, size_t i)
{
	while (!queue->spans[i].stop_ns)
		if (++i == queue->count || queue->spans[i].lost_before)
			return NULL;
	return &queue->spans[i];
}

/* The offset by the time when tracing stopped, which is known in host time: walk in guest time from
 * a PSB of that guest in span number `i` to the end of the dated span. By then the host may run, or
 * another guest: of their time only the crystal's ticks count. */
static bool learn_by_stop(const struct aux_queue *queue, const struct pt_config *config, size_t i,
			  uint64_t psb, uint64_t vmcs, uint64_t *ret)
{
	const struct aux_span *span = dated_span(queue, i);
	struct pt_config guest = *config;
	struct pt_segment segment;
	struct pt_walk walk;

	if (!span || !config->conv.valid)
		return false;
	guest.guest_tsc_raw = true;
	guest.only_vmcs = vmcs;
	pt_walk_init(&walk, queue, &guest, NULL, UINT64_MAX);
	segment = walk.segment;
	segment.from = psb;
	pt_walk_resume(&walk, &segment);
	walk.stop = span->position + span->size;
	(void)pt_walk_next(&walk, &segment);
	*ret = walk.clock.now - time_conv_tsc(&config->conv, span->stop_ns);
	return walk.clock.known;
}

/* The crystal count of a guest's PSB+ leaves several host times for it, 65536 crystal ticks apart.
 * Returns the offset by the one that comes nearest to what is known roughly. */
static uint64_t refine(const struct pt_psb_state *guest, const struct pt_psb_state *host,
		       const struct pt_config *config, uint64_t rough)
{
	int64_t period = (int64_t)pt_ctc_to_tsc(config, CTC_RANGE);
	uint64_t at = host->tsc.tsc - host->tsc.fast + guest->tsc.fast +
		      pt_ctc_to_tsc(config, (int64_t)guest->tsc.ctc - host->tsc.ctc);
	int64_t off = (int64_t)(((guest->tsc.tsc - at) - rough) << 8) >> 8;

	if (period <= 0)
		return rough;
	off %= period;
	if (off > period / 2)
		off -= period;
	else if (off < -period / 2)
		off += period;
	return rough + (uint64_t)off;
}

/* Learn what is needed at a PSB in span number `i` of a queue, if the trace is in a guest there. */
static void learn_at(struct learner *learner, size_t number, size_t i, uint64_t psb,
		     struct pt_offsets *ret)
{
	const struct aux_queue *queue = &learner->queues[number];
	struct pt_psb_state guest;
	uint64_t offset;

	if (!needs_offset(queue, learner->config, psb, ret, &guest))
		return;
	learn_by_walk(learner, number, guest.vmcs, ret);
	if (pt_offsets_find(ret, guest.vmcs, &offset) ||
	    !learn_by_stop(queue, learner->config, i, psb, guest.vmcs, &offset))
		return;
	if (guest.have_tsc && guest.tsc.have_tma && find_host_tsc(learner))
		offset = refine(&guest, &learner->host, learner->config, offset);
	pt_offsets_set(ret, guest.vmcs, offset & PT_TSC_MASK);
}

/* Learn what a queue needs where it begins and where it goes on after a loss. */
static void learn(struct learner *learner, size_t number, struct pt_offsets *ret)
{
	const struct aux_queue *queue = &learner->queues[number];
	uint64_t psb = 0;

	for (size_t i = 0, groups = 0; i < queue->count && groups < LEARN_GROUPS; i++) {
		const struct aux_span *span = &queue->spans[i];

		if (i && (!span->lost_before || span->position <= psb))
			continue;
		psb = pt_psb_after(queue, span->position);
		learn_at(learner, number, i, psb, ret);
		groups++;
	}
}

int pt_offsets_learn(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		     const struct bytes *mapping, struct pt_offsets *ret)
{
	_cleanup_free_ bool *used_up = calloc(count + 1, sizeof(*used_up));
	struct learner learner = { .queues = queues,
				   .count = count,
				   .config = config,
				   .mapping = mapping,
				   .used_up = used_up };

	ret->count = 0;
	if (!used_up)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; config->tsc && i < count; i++)
		learn(&learner, i, ret);
	return 0;
}
