/* From an address that a packet told, the search follows the code with sites in their other form,
 * and sees how far packets and code agree. A patch is taken if all explanations have it that reach
 * as far as the best one.
 */
#include "decode/flow/patch_search.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/vec.h"
#include "decode/flow/flow_packet.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/mismatch_log.h"
#include "decode/flow/patch_forms.h"

enum {
	BASES = 4,           /* told addresses to go back to */
	SITES = 64,          /* tried from one of them, */
	ENTRIES = 3,         /* of which functions begin at so many: tracers differ soon */
	DEPTH = 2,           /* sites patched between two told addresses */
	ROUNDS = 16,         /* further disagreements that are explained by more patches */
	PARENTS = 2,         /* the best attempts, which more patches are added to */
	WINDOW_BYTES = 2048, /* of trace in which agreement is looked for */
	TRIAL_STEPS = 16384,
	CACHED = 512,         /* instructions whose forms are known */
	ROUND_WORK = 1 << 18, /* instructions, about, for one disagreement */
	FOUND_WORK = 1 << 20, /* that a segment may follow more where patches were found, */
	FOUND_MAX = 8,        /* so often */
};

/* An instruction that the flow passed and that may have been patched. */
struct site {
	struct block *block;
	unsigned index;
};

struct sites {
	struct site items[SITES];
	unsigned count, entries;
};

struct cached {
	const struct machine *machine;
	uint64_t ip;
};

struct search {
	struct pt_flow flow; /* of the trial */
	struct flow_batch batch;
	struct pt_flow start;        /* where what can be taken back begins */
	struct pt_flow bases[BASES]; /* where addresses were told, the last is base_count - 1 */
	uint32_t base_count;
	uint64_t position;        /* behind the packet that disagrees with what is known */
	uint64_t window;          /* the position where agreement is enough */
	struct patch_attempt now; /* that is tried, */
	uint32_t known;           /* with so many patches of its parent */
	struct patch_attempts found;
	struct patch_forms group_forms; /* of a site that a group has changed */
	uint64_t work, left;            /* instructions that may still be followed: now; in all */
	bool is_cut;                    /* not all was tried for the last disagreement */
	struct cached cache[CACHED];
	struct patch_forms forms[CACHED]; /* of the instructions in `cache`, the others undefined */
};

/* What a flow has disagreed with is searched from another one's state on. */
static struct search *search_new(const struct pt_flow *flow, const struct pt_flow *start)
{
	struct search *search = malloc(sizeof(*search));

	if (!search)
		return NULL;
	memset(search, 0, offsetof(struct search, forms));
	flow_copy(&search->start, start);
	search->window = pt_cursor_position(&flow->cursor) + WINDOW_BYTES;
	return search;
}

/* The trial's flow begins at another's state. */
static void begin(struct search *search, const struct pt_flow *from)
{
	flow_copy(&search->flow, from);
	search->flow.block = NULL;
	search->flow.trial = FLOW_TRIES_PATCHES;
	search->flow.where.log = NULL;
	search->flow.where.sites = NULL;
	search->flow.gaps_only = false;
	search->flow.gap_block = NULL;
	search->flow.patches = search->now.patches;
	search->flow.patch_visits.watched = search->start.patches.count;
	search->batch.count = search->batch.context_count = 0;
	search->batch.room = FLOW_BATCH;
}

static void charge(struct search *search, uint64_t work)
{
	search->work = search->work > work ? search->work - work : 0;
}

/* One step of the trial; its batch keeps what came last. */
static int step(struct search *search)
{
	struct flow_run run = { &search->flow, &search->batch };
	uint64_t insns = search->flow.insns;
	int r;

	if (!flow_has_room(&run))
		search->batch.count = search->batch.context_count = 0;
	r = flow_next(&run);
	charge(search, 1 + (search->flow.insns - insns) / 4);
	return r;
}

static void add_base(struct search *search)
{
	if (search->flow.state != FLOW_RUNNING || search->flow.tnt_count)
		return;
	if (search->base_count == BASES) {
		for (unsigned i = 0; i + 1 < BASES; i++)
			flow_copy(&search->bases[i], &search->bases[i + 1]);
		search->base_count--;
	}
	flow_copy(&search->bases[search->base_count++], &search->flow);
}

/* Come to the disagreement again, and see where addresses are told on the way. */
static bool replay(struct search *search)
{
	search->base_count = 0;
	begin(search, &search->start);
	add_base(search);
	while (!search->flow.disagrees) {
		uint32_t addresses = search->flow.addresses;

		if (!search->work || (step(search) && !search->flow.disagrees))
			return false;
		if (search->flow.addresses != addresses && !search->flow.disagrees)
			add_base(search);
	}
	search->position = pt_cursor_position(&search->flow.cursor);
	return true;
}

/* Whether the trace, not the way that was taken, is what the last gap is about. */
static bool is_gap_of_trace(const struct flow_batch *batch)
{
	const struct flow_item *item = &batch->items[batch->count];

	while (item-- > batch->items)
		if (item->kind == FLOW_GAP)
			return item->count != GAP_LOOP &&
			       (item->count != GAP_NO_CODE || !(item[1].value >> 63));
	return true;
}

/* Follow the trial to the next disagreement, the end of the trace or that of the window. */
static void follow(struct search *search)
{
	uint32_t gaps = search->flow.gaps, told = search->flow.addresses;
	uint32_t met = search->flow.returns_met;
	struct patch_attempt *now = &search->now;
	bool is_past = false;

	now->reach = 0;
	for (unsigned steps = 0; steps < TRIAL_STEPS; steps++) {
		int r = step(search);
		uint64_t position = pt_cursor_position(&search->flow.cursor);

		if (!is_past) {
			told = search->flow.addresses;
			met = search->flow.returns_met;
		}
		is_past = position >= search->position;
		now->told = search->flow.addresses - told;
		now->met = search->flow.returns_met - met;
		now->reach = position;
		if (search->flow.disagrees || !search->work)
			return;
		if (search->flow.gaps != gaps && !is_gap_of_trace(&search->batch))
			return;
		if (r || search->flow.gaps != gaps || position >= search->window)
			break;
	}
	if (is_past)
		now->reach = UINT64_MAX;
}

static void try_now(struct search *search, const struct pt_flow *base)
{
	struct patch_attempt *now = &search->now;

	begin(search, base);
	if (patch_attempts_explain_all(&search->found, &now->patches))
		return;
	follow(search);
	if (now->patches.count == search->known || now->reach <= search->position)
		return;
	now->odd = search->flow.odd_branches - base->odd_branches;
	now->visits = search->flow.patch_visits.count - search->start.patch_visits.count;
	patch_attempts_keep(&search->found, now);
}

static uint64_t time_of(const struct pt_flow *flow)
{
	return time_conv_ns(&flow->config->conv, flow->clock.now);
}

/* All that changed with it are as copied again, or, of a group, it alone. */
static const struct patch_forms *as_before(struct search *search, const struct flow_patch *patch)
{
	struct patch_forms *forms = &search->group_forms;
	struct patch_form *form = forms->items;

	if (patch->change.group.table)
		*form++ = (struct patch_form){ .is_usual = true };
	*form = (struct patch_form){ .is_usual = true };
	if (patch_change_is_group(&patch->change))
		form->change = patch_change_undo(&patch->change);
	forms->count = (unsigned)(form + 1 - forms->items);
	return forms;
}

/* The other forms of an instruction; where it is patched already, that it is as copied again. */
static const struct patch_forms *forms_of(struct search *search, struct machine *machine,
					  const struct insn *insn, const struct pt_flow *base)
{
	size_t slot = (insn->ip ^ insn->ip >> 9) % CACHED;
	struct cached *cached = &search->cache[slot];
	struct patch_forms *forms = &search->forms[slot];
	const struct flow_patch *patch;
	struct patched_insn now;

	patch = flow_patch_find(&search->now.patches, machine, insn->ip, base, &now);
	if (patch)
		return as_before(search, patch);
	if (cached->machine == machine && cached->ip == insn->ip)
		return forms;
	cached->machine = machine;
	cached->ip = insn->ip;
	patch_forms_find(machine, insn, time_of(base), forms);
	charge(search, forms->looked_at / 4);
	return forms;
}

static bool is_decided(const struct search *search, const struct machine *machine, uint64_t ip)
{
	for (uint32_t i = search->known; i < search->now.patches.count; i++)
		if (flow_patch_is_about(&search->now.patches.items[i], machine, ip))
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

/* Add a site that has other forms. */
static void add_site(struct sites *sites, struct block *block, unsigned index,
		     const struct patch_forms *forms)
{
	bool is_entry = forms->items[0].change.ftrace.table != NULL;

	if (is_entry && sites->entries == ENTRIES)
		return;
	sites->entries += is_entry;
	sites->items[sites->count++] = (struct site){ block, index };
}

static void collect_block(struct search *search, const struct pt_flow *base, struct block *block,
			  unsigned insns, struct sites *ret)
{
	struct machine *machine = block->space->machine;

	if (!flow_patch_is_possible(block))
		return;
	for (unsigned i = insns; i-- > 0 && ret->count < SITES;) {
		const struct insn *insn = &block->insns[i];
		const struct patch_forms *forms;

		if (!patch_forms_may_be(machine, insn, time_of(base)) || is_listed(ret, insn->ip) ||
		    is_decided(search, machine, insn->ip))
			continue;
		forms = forms_of(search, machine, insn, base);
		if (forms->count)
			add_site(ret, block, i, forms);
	}
}

/* The sites that the trial passed, the last first. */
static void collect(struct search *search, const struct pt_flow *base, struct sites *ret)
{
	struct block *last = search->flow.gap_block;

	ret->count = ret->entries = 0;
	if (last)
		collect_block(search, base, last, last->count, ret);
	for (uint32_t i = search->batch.count; i-- > 0 && ret->count < SITES;) {
		const struct flow_item *item = &search->batch.items[i];

		if (item->kind == FLOW_BLOCK)
			collect_block(search, base, item->block, item->count, ret);
	}
}

/* Whether what a form changes beside its site is so already, as a group in force has it. */
static bool says_nothing_new(const struct search *search, const struct patch_form *form,
			     const struct machine *machine, const struct pt_flow *base)
{
	const struct patched_insn *also = &form->change.also;
	struct patched_insn now;

	return also->site &&
	       flow_patch_find(&search->now.patches, machine, also->site, base, &now) &&
	       now.to == also->to;
}

/* Whether a change is of many sites, each of which might have changed alone. Labels of one key do
 * not. */
static bool is_of_many(const struct patch_change *change)
{
	return patch_change_is_group(change) && !change->key.table;
}

static void try_from(struct search *search, const struct pt_flow *base, unsigned depth);

/* Try what there is with one more patch. */
static void try_form(struct search *search, const struct flow_patch *patch,
		     const struct patch_form *form, const struct pt_flow *base, unsigned depth)
{
	const struct patch_traits traits = search->now.traits;
	struct flow_patches *patches = &search->now.patches;

	patches->items[patches->count++] = *patch;
	search->now.traits = (struct patch_traits){
		.unlikely = traits.unlikely + form->unlikely,
		.unusual = traits.unusual + !form->is_usual,
		.groups = traits.groups + is_of_many(&form->change),
		.is_known = form->is_known,
	};
	try_from(search, base, depth - 1);
	search->now.traits = traits;
	patches->count--;
}

static void try_site(struct search *search, const struct site *site, const struct pt_flow *base,
		     unsigned depth)
{
	const struct insn *insn = &site->block->insns[site->index];
	struct machine *machine = site->block->space->machine;
	struct patch_forms forms = *forms_of(search, machine, insn, base);

	for (unsigned i = 0; i < forms.count && search->work; i++) {
		const struct patch_form *form = &forms.items[i];
		struct flow_patch patch = { .machine = machine,
					    .change = form->change,
					    .from = base->addresses,
					    .until = UINT64_MAX };

		if (says_nothing_new(search, form, machine, base))
			continue;
		if (!patch_change_is_group(&patch.change))
			patch.change.insn.site = insn->ip;
		try_form(search, &patch, form, base, depth);
	}
}

/* Try what there is, with up to `depth` more patches. */
static void try_from(struct search *search, const struct pt_flow *base, unsigned depth)
{
	struct sites sites;

	if (!search->work)
		return;
	try_now(search, base);
	if (!depth || search->now.patches.count == FLOW_PATCHES)
		return;
	collect(search, base, &sites);
	for (unsigned i = 0; i < sites.count && search->work; i++)
		try_site(search, &sites.items[i], base, depth);
}

static void try_all_from(struct search *search, unsigned depth)
{
	for (uint32_t back = 1; back <= search->base_count; back += 1 + back / 4)
		try_from(search, &search->bases[search->base_count - back], depth);
}

static bool is_enough_found(const struct search *search)
{
	const struct patch_attempts *found = &search->found;

	return patch_attempts_are_enough(found) ||
	       (found->count && found->items[0].reach == UINT64_MAX);
}

/* Explain the next disagreement with more patches; what reaches further comes to `found`. Few are
 * likelier than many: what is not tried of those is no loss, and nothing is where one will do. */
static void extend(struct search *search, const struct patch_attempt *parent)
{
	uint64_t saved;

	search->now = *parent;
	search->known = parent->patches.count;
	if (!replay(search))
		return;
	try_all_from(search, 1);
	search->is_cut |= !search->work;
	if (is_enough_found(search))
		return;
	saved = search->work / 2;
	search->work -= saved;
	try_all_from(search, DEPTH);
	search->work += saved;
}

/* Explain one more disagreement: what is best then comes to `found`. Returns whether it reaches
 * further than before. */
static bool go_on(struct search *search, const struct patch_attempts *best)
{
	uint64_t work = search->left < ROUND_WORK ? search->left : ROUND_WORK;

	search->found.count = 0;
	search->work = work;
	for (unsigned i = 0; i < best->count && i < PARENTS; i++)
		extend(search, &best->items[i]);
	patch_attempts_settle(&search->found);
	search->left -= work - search->work;
	return !search->is_cut && search->found.count &&
	       search->found.items[0].reach > best->items[0].reach;
}

/* Go on with the best until what the last patches explain is enough. */
static bool find(struct search *search, const struct flow_patches *patches,
		 struct patch_attempts *best)
{
	uint32_t known = patches->count;

	best->items[0] = (struct patch_attempt){ .patches = *patches };
	best->count = 1;
	for (unsigned round = 0; round < ROUNDS && best->items[0].reach != UINT64_MAX; round++) {
		if (!go_on(search, best))
			return false;
		*best = search->found;
		if (!patch_attempts_are_enough(best))
			continue;
		patch_attempts_agree(best, known);
		if (best->items[0].patches.count > known)
			return true;
		*best = search->found;
	}
	return false;
}

/* A segment may follow the more code, the more comes of it: one in which nothing is found, since
 * the copy is of another kernel, takes little time. */
static bool search_for(struct search *search, struct pt_flow *flow, struct patch_attempts *best)
{
	bool found;

	search->left = flow->patches.work;
	found = find(search, &flow->patches, best);
	if (found && flow->patches.count < FOUND_MAX)
		search->left += FOUND_WORK;
	flow->patches.work = search->left;
	return found;
}

void patch_candidates_clear(struct patch_candidates *candidates)
{
	candidates->count = candidates->asked = candidates->asked_in = 0;
}

void patch_candidates_free(struct patch_candidates *candidates)
{
	vec_free(&candidates->places);
}

/* NULL when memory is out. */
static struct patch_place *place_at(struct patch_candidates *candidates, uint64_t ip)
{
	for (size_t i = 0; i < candidates->places.count; i++)
		if (candidates->places.items[i].ip == ip)
			return &candidates->places.items[i];
	return vec_push(&candidates->places, (struct patch_place){ .ip = ip })
		       ? &candidates->places.items[candidates->places.count - 1]
		       : NULL;
}

static uint32_t segment_of(const struct pt_flow *flow)
{
	return flow->where.log ? flow->where.log->segment : 0;
}

/* Not about one place or time again and again: others may have other reasons, and while a kernel
 * changes its code nothing explains what runs. */
static bool may_ask(struct patch_candidates *candidates, const struct pt_flow *flow)
{
	uint32_t segment = segment_of(flow);
	struct patch_place *place;

	if (candidates->segment != segment)
		candidates->asked_in = 0;
	candidates->segment = segment;
	if (candidates->asked == PATCH_ASKED_MAX || candidates->asked_in == PATCH_ASKED_SEGMENT)
		return false;
	place = place_at(candidates, flow->gap_block->ip);
	if (!place || place->asked == PATCH_ASKED)
		return false;
	place->asked++;
	candidates->asked_in++;
	candidates->asked++;
	return true;
}

/* Add the single patches that reach further. */
static void note_candidates(struct search *search, const struct pt_flow *flow,
			    struct patch_candidates *candidates)
{
	search->work = ROUND_WORK;
	search->now.patches = flow->patches;
	search->known = flow->patches.count;
	if (!replay(search))
		return;
	try_from(search, &search->bases[0], 1);
	for (unsigned i = 0; i < search->found.count; i++) {
		const struct patch_attempt *attempt = &search->found.items[i];
		struct patch_candidate *candidate = &candidates->items[candidates->count++];

		candidate->patch = attempt->patches.items[flow->patches.count];
		candidate->patch.from = 0;
		candidate->unlikely = attempt->traits.unlikely;
		candidate->is_known = attempt->traits.is_known;
		candidate->segment = segment_of(flow);
	}
}

/* Whether the kernel's code is what disagrees. On the way to other code an address was told, so
 * that nothing before could be the reason. */
static bool is_in_kernel(const struct pt_flow *flow)
{
	return flow->gap_block && flow_patch_is_possible(flow->gap_block);
}

static bool may_search(const struct pt_flow *flow)
{
	return flow->patches.work && flow->patches.count < FLOW_PATCHES && is_in_kernel(flow) &&
	       (!flow->where.candidates || may_ask(flow->where.candidates, flow));
}

bool patch_search(struct flow_run *run, struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	struct patch_attempts *best = NULL;
	struct search *search = NULL;
	bool found = false;

	flow->disagrees = false;
	if (may_search(flow)) {
		search = search_new(flow, &mark->flow);
		best = calloc(1, sizeof(*best));
	}
	if (search && best && flow->where.candidates)
		note_candidates(search, flow, flow->where.candidates);
	else if (search && best)
		found = search_for(search, flow, best);
	if (found)
		flow_mark_return(run, mark, &best->items[0].patches);
	free(search);
	free(best);
	if (found)
		return true;
	flow->disagreements += is_in_kernel(flow);
	flow_mark_set(run, mark);
	return false;
}
