#include "decode/flow_patch.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/label_targets.h"

enum {
	BASES = 4,      /* told addresses to go back to */
	SITES = 64,     /* tried for one of them */
	DEPTH = 3,      /* labels changed between two told addresses */
	ENDBR_SIZE = 4, /* a function may be entered behind its first instruction */
	CONFIRMED = 6,  /* addresses told after the disagreement make a trial as good as can be */
	ENOUGH = 4,     /* no more patches need be tried at once */
	GOOD = 2,       /* so many do if nothing is better */
	TRIAL_STEPS = 4096,
	TRIAL_INSNS = 20000,
	SEARCH_WORK = 1 << 15,  /* instructions */
	SEGMENT_WORK = 1 << 18, /* and for each byte of a segment: */
	BYTE_WORK = 4,
};

/* A jump label that the flow passed. */
struct site {
	struct block *block;
	unsigned index;
};

struct sites {
	struct site items[SITES];
	unsigned count;
};

struct search {
	struct pt_flow flow; /* of the trial */
	struct flow_batch batch;
	struct pt_flow bases[BASES]; /* where addresses were told, the last is base_count - 1 */
	uint32_t base_count;
	uint64_t position; /* behind the packet that disagrees */
	struct flow_patches patches, best;
	int best_merit; /* below GOOD: there is none */
	uint32_t known; /* patches from before this search */
	uint64_t work;
};

void flow_patch_init(struct pt_flow *flow)
{
	uint64_t bytes = flow->segment.to - flow->segment.from;

	flow->patches.work = SEGMENT_WORK + BYTE_WORK * bytes;
}

void flow_patch_settle(struct pt_flow *flow)
{
	struct flow_patches *patches = &flow->patches;
	struct code *code = flow->where.code;

	if (!patches->count || patches->code == code)
		return;
	patches->code = code;
	for (uint32_t i = 0; i < patches->count; i++)
		(void)code_add_site(code, patches->items[i].machine, patches->items[i].site);
	flow->block = NULL;
}

void flow_mark_set(const struct flow_run *run, struct flow_mark *ret)
{
	ret->flow = *run->flow;
	ret->position = pt_cursor_position(&run->flow->cursor);
	ret->count = run->batch->count;
	ret->context_count = run->batch->context_count;
}

static const struct flow_patch *find_patch(const struct flow_patches *patches,
					   const struct machine *machine, uint64_t site,
					   uint32_t addresses)
{
	for (uint32_t i = patches->count; i-- > 0;) {
		const struct flow_patch *patch = &patches->items[i];

		if (patch->site == site && patch->machine == machine && patch->from <= addresses)
			return patch->to ? patch : NULL;
	}
	return NULL;
}

/* Whether it looks like a jump label in either form. */
static bool is_label(const struct insn *insn)
{
	if (insn->length != 2 && insn->length != 5)
		return false;
	if (insn->class == INSN_JMP)
		return insn->bytes[0] == 0xeb || insn->bytes[0] == 0xe9;
	return insn->length == 2 ? !memcmp(insn->bytes, "\x66\x90", 2)
				 : !memcmp(insn->bytes, "\x0f\x1f\x44\0\0", 5);
}

static bool is_kernel(const struct block *block)
{
	return block->ip >> 63 && block->space->machine && block->space->bits == 64;
}

struct block *flow_patch_block(struct pt_flow *flow, struct block *block)
{
	if (!is_kernel(block))
		return block;
	for (unsigned i = 0; i < block->count; i++) {
		const struct flow_patch *patch;

		if (!is_label(&block->insns[i]))
			continue;
		patch = find_patch(&flow->patches, block->space->machine, block->insns[i].ip,
				   flow->addresses);
		if (patch)
			return block_variant(flow->where.code, block, i, patch->to);
	}
	return block;
}

static bool is_call_at(struct machine *machine, uint64_t ip, uint64_t time_ns, uint64_t next)
{
	struct code_view view;
	struct insn insn;

	return !machine_code(machine, -1, ip, time_ns, &view) &&
	       !insn_read(view.data, view.left, ip, 64, &insn) && insn_next(&insn) == next &&
	       (insn.class == INSN_CALL || insn.class == INSN_CALL_INDIRECT);
}

static bool is_after_call(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	for (unsigned size = 2; size <= 8; size++)
		if (is_call_at(machine, ip - size, time_ns, ip))
			return true;
	return false;
}

/* A return goes behind a call, and has a TIP only where it goes elsewhere than the call that was
 * last (if they are compressed); a call goes to where a function begins. */
void flow_patch_judge(struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	uint64_t time_ns = time_conv_ns(&flow->config->conv, flow->clock.now);
	struct machine *machine = block->space->machine;
	struct symbol_view symbol;

	if (!is_kernel(block) || !(ip >> 63))
		return;
	if (block->end == BLOCK_RETURN) {
		flow->odd_branches += flow->return_count &&
				      (!flow->config->noretcomp ||
				       flow->returns[(flow->return_top - 1) % RETURN_STACK] != ip);
		flow->odd_branches += !is_after_call(machine, ip, time_ns);
	} else if (block->insns[block->count - 1].class == INSN_CALL_INDIRECT) {
		machine_symbol(machine, -1, ip, time_ns, &symbol);
		flow->odd_branches += symbol.name && symbol.offset > ENDBR_SIZE;
	}
}

/* The trial's flow begins at another's state. */
static void begin(struct search *search, const struct pt_flow *from)
{
	search->flow = *from;
	search->flow.block = NULL;
	search->flow.is_trial = true;
	search->flow.gaps_only = false;
	search->flow.gap_block = NULL;
	search->flow.patches = search->patches;
	search->batch.count = search->batch.context_count = 0;
	search->batch.room = FLOW_BATCH;
}

/* One step of the trial; its batch keeps what came last. */
static int step(struct search *search)
{
	struct flow_run run = { &search->flow, &search->batch };

	if (!flow_has_room(&run))
		search->batch.count = search->batch.context_count = 0;
	return flow_next(&run);
}

static void charge(struct search *search, uint64_t work)
{
	search->work = search->work > work ? search->work - work : 0;
}

static void add_base(struct search *search)
{
	if (search->flow.state != FLOW_RUNNING || search->flow.tnt_count)
		return;
	if (search->base_count == BASES) {
		memmove(search->bases, search->bases + 1, (BASES - 1) * sizeof(*search->bases));
		search->base_count--;
	}
	search->bases[search->base_count++] = search->flow;
}

/* Come to the disagreement again, and see where addresses are told on the way. */
static bool replay(struct search *search, const struct pt_flow *from)
{
	begin(search, from);
	add_base(search);
	while (!search->flow.disagrees) {
		uint32_t addresses = search->flow.addresses;
		uint64_t insns = search->flow.insns;

		if (!search->work || (step(search) && !search->flow.disagrees))
			return false;
		charge(search, 4 + (search->flow.insns - insns) / 4);
		if (search->flow.addresses != addresses && !search->flow.disagrees)
			add_base(search);
	}
	search->position = pt_cursor_position(&search->flow.cursor);
	return true;
}

/* How many addresses agree with the trial from the disagreement on, as far as need be. */
static int confirmations(struct search *search, const struct pt_flow *base)
{
	int confirmed = 0;

	for (unsigned steps = 0; steps < TRIAL_STEPS && confirmed < CONFIRMED; steps++) {
		uint32_t addresses = search->flow.addresses;
		int r = step(search);

		if (search->flow.disagrees || search->flow.insns - base->insns > TRIAL_INSNS)
			return confirmed;
		if (pt_cursor_position(&search->flow.cursor) < search->position) {
			if (r || search->flow.gaps != base->gaps)
				return 0;
			continue;
		}
		confirmed += search->flow.addresses != addresses;
		/* the trace ends, or there is a gap of another kind: that is not the trial's */
		if (r || search->flow.gaps != base->gaps)
			return confirmed ? CONFIRMED : 0;
	}
	return confirmed;
}

/* Try the patches from a base. True when they are so good that no others need be tried. */
static bool try_patches(struct search *search, const struct pt_flow *base)
{
	int merit;

	begin(search, base);
	merit = confirmations(search, base);
	merit -= (int)(search->flow.odd_branches - base->odd_branches);
	charge(search, 64 + search->flow.insns - base->insns);
	if (merit <= search->best_merit || search->patches.count == search->known)
		return false;
	search->best = search->patches;
	search->best_merit = merit;
	return merit == CONFIRMED;
}

static bool is_decided(const struct search *search, const struct machine *machine, uint64_t ip)
{
	for (uint32_t i = search->known; i < search->patches.count; i++)
		if (search->patches.items[i].site == ip &&
		    search->patches.items[i].machine == machine)
			return true;
	return false;
}

static bool is_listed(const struct sites *sites, uint64_t ip)
{
	for (unsigned i = 0; i < sites->count; i++)
		if (sites->items[i].block->insns[sites->items[i].index].ip == ip)
			return true;
	return false;
}

static void collect_block(const struct search *search, struct block *block, unsigned insns,
			  struct sites *ret)
{
	if (!is_kernel(block))
		return;
	for (unsigned i = insns; i-- > 0 && ret->count < SITES;) {
		const struct insn *insn = &block->insns[i];

		if (is_label(insn) && !is_listed(ret, insn->ip) &&
		    !is_decided(search, block->space->machine, insn->ip))
			ret->items[ret->count++] = (struct site){ block, i };
	}
}

/* The labels that the trial came by, the last first. */
static void collect(const struct search *search, struct sites *ret)
{
	struct block *last = search->flow.gap_block;

	ret->count = 0;
	if (last)
		collect_block(search, last, last->count, ret);
	for (uint32_t i = search->batch.count; i-- > 0 && ret->count < SITES;) {
		const struct flow_item *item = &search->batch.items[i];

		if (item->kind == FLOW_BLOCK)
			collect_block(search, item->block, item->count, ret);
	}
}

/* Where the label may lead in its other form. One that was changed before has changed back. */
static unsigned alternatives(struct search *search, const struct site *site,
			     const struct pt_flow *base, uint64_t *ret)
{
	const struct block *block = site->block;
	const struct insn *insn = &block->insns[site->index];
	struct machine *machine = block->space->machine;
	uint64_t time_ns = time_conv_ns(&base->config->conv, base->clock.now);
	unsigned count, looked_at;

	ret[0] = 0;
	if (find_patch(&search->patches, machine, insn->ip, base->addresses))
		return 1;
	ret[0] = insn_next(insn);
	if (insn->class == INSN_JMP)
		return 1;
	count = label_targets(machine, insn, time_ns, ret, &looked_at);
	charge(search, looked_at);
	return count;
}

/* Try what there is, with up to `depth` more patches. True: nothing else need be tried. */
static bool try_from(struct search *search, const struct pt_flow *base, unsigned depth)
{
	struct flow_patches *patches = &search->patches;
	struct sites sites;

	if (!search->work)
		return true;
	if (try_patches(search, base))
		return true;
	if (!depth || patches->count == FLOW_PATCHES)
		return false;
	collect(search, &sites);
	for (unsigned i = 0; i < sites.count; i++) {
		const struct site *site = &sites.items[i];
		uint64_t to[LABEL_TARGETS_MAX];
		unsigned to_count = alternatives(search, site, base, to);
		struct flow_patch *patch = &patches->items[patches->count];

		for (unsigned k = 0; k < to_count; k++) {
			bool enough;

			*patch = (struct flow_patch){
				.machine = site->block->space->machine,
				.site = site->block->insns[site->index].ip,
				.to = to[k],
				.from = base->addresses,
			};
			patches->count++;
			enough = try_from(search, base, depth - 1);
			patches->count--;
			if (enough)
				return true;
		}
	}
	return false;
}

/* Few patches are likelier than many, and late ones than early ones. */
static bool find(struct search *search)
{
	for (unsigned depth = 1; depth <= DEPTH && search->work; depth++) {
		for (uint32_t i = search->base_count; i-- > 0;) {
			(void)try_from(search, &search->bases[i], depth);
			if (search->best_merit >= ENOUGH)
				return true;
		}
	}
	return search->best_merit >= GOOD;
}

static bool search_from(struct search *search, struct pt_flow *flow, const struct pt_flow *from)
{
	bool found;

	search->patches = flow->patches;
	search->known = flow->patches.count;
	search->best_merit = GOOD - 1;
	search->work = flow->patches.work < SEARCH_WORK ? flow->patches.work : SEARCH_WORK;
	flow->patches.work -= search->work;
	found = replay(search, from) && find(search);
	flow->patches.work += search->work;
	return found;
}

bool flow_patch_search(struct flow_run *run, struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	uint64_t work = flow->patches.work;
	struct search *search = NULL;
	bool found = false;

	flow->disagrees = false;
	if (work && flow->patches.count < FLOW_PATCHES)
		search = calloc(1, sizeof(*search));
	if (search)
		found = search_from(search, flow, &mark->flow);
	if (found) {
		work = flow->patches.work;
		*flow = mark->flow;
		flow->patches = search->best;
		flow->patches.work = work;
		flow->patches.code = NULL;
		flow_patch_settle(flow);
		run->batch->count = mark->count;
		run->batch->context_count = mark->context_count;
	}
	free(search);
	if (!found)
		flow_mark_set(run, mark);
	return found;
}
