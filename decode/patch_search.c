/* From an address that a packet told, the search follows the code with sites in their other form,
 * and sees how far packets and code agree. To agree with the next few packets says little, since
 * every address that is told puts the flow right, whatever led there. What counts is how far it is
 * to the next disagreement (a patched site is passed again, by other ways), and that nothing else
 * explains as much: a patch is taken if all explanations have it that reach as far as the best one.
 */
#include "decode/patch_search.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/flow_packet.h"
#include "decode/flow_patch.h"
#include "decode/mismatch_log.h"
#include "decode/patch_forms.h"

enum {
	BASES = 4,   /* told addresses to go back to */
	SITES = 64,  /* tried from one of them */
	DEPTH = 2,   /* sites patched between two told addresses */
	ROUNDS = 16, /* further disagreements that are explained by more patches */
	KEPT = 16,   /* the best attempts */
	PARENTS = 2, /* those of them that more patches are added to */
	TOLD = 12,   /* addresses that packets must tell before the next disagreement, if any; */
	MET = 32,    /* or, with usual patches, so many returns to calls that were followed */
	VISITS = 3,  /* to sites for each form that is not the likeliest, all of which must agree */
	ROW = 32,    /* bytes of code in which labels are in a row */
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
	unsigned count;
};

/* Sites in other forms, and what came of it. */
struct attempt {
	struct flow_patches patches;
	uint64_t reach;  /* behind the packet that disagrees next; UINT64_MAX: none in the window */
	uint32_t told;   /* addresses from the disagreement up to there */
	uint32_t met;    /* returns to calls that were followed, as far */
	uint32_t visits; /* to sites that it patches */
	uint32_t odd;    /* branches that programs seldom make */
	uint32_t unlikely; /* targets that are not the likeliest */
	uint32_t unusual;  /* patches that kernels seldom make */
	uint32_t groups;   /* patches that are about many sites at once */
	bool is_known;     /* the last of them is as a later copy has it */
};

struct attempts {
	struct attempt items[KEPT];
	unsigned count;
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
	uint64_t position; /* behind the packet that disagrees, with `patches` up to `known` */
	uint64_t window;   /* the position where agreement is enough */
	struct flow_patches patches;
	uint32_t known;                     /* patches of the parent */
	uint32_t unlikely, unusual, groups; /* of all */
	bool is_known;                      /* the last patch is as a later copy has it */
	struct attempts found;
	struct patch_forms group_forms; /* of a site that a group has changed */
	uint64_t work, left;            /* instructions that may still be followed: now; in all */
	bool is_cut;                    /* not all was tried for the last disagreement */
	struct cached cache[CACHED];
	struct patch_forms forms[CACHED]; /* of the instructions in `cache`, the others undefined */
};

static struct search *search_new(void)
{
	struct search *search = malloc(sizeof(*search));

	if (search)
		memset(search, 0, offsetof(struct search, forms));
	return search;
}

/* The trial's flow begins at another's state. */
static void begin(struct search *search, const struct pt_flow *from)
{
	search->flow = *from;
	search->flow.block = NULL;
	search->flow.trial = FLOW_TRIES_PATCHES;
	search->flow.where.log = NULL;
	search->flow.where.sites = NULL;
	search->flow.gaps_only = false;
	search->flow.gap_block = NULL;
	search->flow.patches = search->patches;
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
		memmove(search->bases, search->bases + 1, (BASES - 1) * sizeof(*search->bases));
		search->base_count--;
	}
	search->bases[search->base_count++] = search->flow;
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
static void follow(struct search *search, struct attempt *ret)
{
	uint32_t gaps = search->flow.gaps, told = search->flow.addresses;
	uint32_t met = search->flow.returns_met;
	bool is_past = false;

	ret->reach = 0;
	for (unsigned steps = 0; steps < TRIAL_STEPS; steps++) {
		int r = step(search);
		uint64_t position = pt_cursor_position(&search->flow.cursor);

		if (!is_past) {
			told = search->flow.addresses;
			met = search->flow.returns_met;
		}
		is_past = position >= search->position;
		ret->told = search->flow.addresses - told;
		ret->met = search->flow.returns_met - met;
		ret->reach = position;
		if (search->flow.disagrees || !search->work)
			return;
		if (search->flow.gaps != gaps && !is_gap_of_trace(&search->batch))
			return;
		if (r || search->flow.gaps != gaps || position >= search->window)
			break;
	}
	if (is_past)
		ret->reach = UINT64_MAX;
}

static bool has_patch(const struct flow_patches *patches, uint32_t from,
		      const struct flow_patch *patch)
{
	for (uint32_t i = from; i < patches->count; i++)
		if (flow_patch_is_same(&patches->items[i], patch))
			return true;
	return false;
}

static const struct flow_patch *last_patch(const struct attempt *attempt)
{
	const struct flow_patches *patches = &attempt->patches;

	return patches->count ? &patches->items[patches->count - 1] : NULL;
}

static bool has_same_patches(const struct flow_patches *a, const struct flow_patches *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!has_patch(b, 0, &a->items[i]))
			return false;
	return true;
}

/* Labels in a row often lead to the same place, since it takes any of some features to go there.
 * The first is taken: if it is another that is on, nothing is told that did not run, only what lies
 * between them is left out. */
static int compare_sites(const struct attempt *a, const struct attempt *b)
{
	const struct flow_patch *left = last_patch(a), *right = last_patch(b);

	if (!left || !right || left->machine != right->machine || left->insn.to != right->insn.to ||
	    left->also.site != right->also.site || left->also.to != right->also.to ||
	    left->insn.site - right->insn.site + ROW > 2 * ROW)
		return 0;
	return (left->insn.site > right->insn.site) - (left->insn.site < right->insn.site);
}

/* Below 0: `a` explains more than `b`. */
static int compare(const struct attempt *a, const struct attempt *b)
{
	if (a->reach != b->reach)
		return a->reach > b->reach ? -1 : 1;
	if (a->odd != b->odd)
		return a->odd < b->odd ? -1 : 1;
	if (a->unlikely != b->unlikely)
		return a->unlikely < b->unlikely ? -1 : 1;
	if (a->patches.count != b->patches.count)
		return a->patches.count < b->patches.count ? -1 : 1;
	/* a group must be met in more than one place, or it is no more than one of its patches */
	if (a->groups != b->groups && a->visits != b->visits)
		return a->visits > b->visits ? -1 : 1;
	if (a->groups != b->groups)
		return a->groups < b->groups ? -1 : 1;
	return compare_sites(a, b);
}

/* Keep the best; what was tried from two bases counts once. */
static void keep(struct attempts *list, const struct attempt *attempt)
{
	unsigned at = list->count;

	for (unsigned i = 0; i < list->count; i++) {
		if (!has_same_patches(&list->items[i].patches, &attempt->patches))
			continue;
		if (compare(attempt, &list->items[i]) >= 0)
			return;
		at = i;
		break;
	}
	if (at == list->count) {
		if (at == KEPT && compare(attempt, &list->items[--at]) >= 0)
			return;
		list->count = at + 1;
	}
	for (; at > 0 && compare(attempt, &list->items[at - 1]) < 0; at--)
		list->items[at] = list->items[at - 1];
	list->items[at] = *attempt;
}

/* Whether a later base has shown already that the patches explain all. */
static bool is_known_good(const struct search *search, const struct flow_patches *patches)
{
	for (unsigned i = 0; i < search->found.count; i++)
		if (search->found.items[i].reach == UINT64_MAX &&
		    has_same_patches(&search->found.items[i].patches, patches))
			return true;
	return false;
}

static void try_patches(struct search *search, const struct pt_flow *base)
{
	struct attempt attempt;

	begin(search, base);
	if (is_known_good(search, &search->patches))
		return;
	follow(search, &attempt);
	if (search->patches.count == search->known || attempt.reach <= search->position)
		return;
	attempt.patches = search->patches;
	attempt.odd = search->flow.odd_branches - base->odd_branches;
	attempt.unlikely = search->unlikely;
	attempt.unusual = search->unusual;
	attempt.groups = search->groups;
	attempt.is_known = search->is_known;
	attempt.visits = search->flow.patch_visits.count - search->start.patch_visits.count;
	keep(&search->found, &attempt);
}

static uint64_t time_of(const struct pt_flow *flow)
{
	return time_conv_ns(&flow->config->conv, flow->clock.now);
}

/* It alone is as copied again, or all that changed with it. */
static const struct patch_forms *as_group_was(struct search *search, const struct flow_patch *patch)
{
	struct patch_forms *forms = &search->group_forms;

	*forms = (struct patch_forms){ .count = 2,
				       .items = { { .is_usual = true }, { .is_usual = true } } };
	forms->items[1].group = patch->group;
	forms->items[1].group.is_on = !patch->group.is_on;
	return forms;
}

/* The other forms of an instruction; where it is patched already, that it is as copied again. */
static const struct patch_forms *forms_of(struct search *search, struct machine *machine,
					  const struct insn *insn, const struct pt_flow *base)
{
	/* one that was changed before has changed back */
	static const struct patch_forms as_copied = { .count = 1,
						      .items = { { .is_usual = true } } };
	size_t slot = (insn->ip ^ insn->ip >> 9) % CACHED;
	struct cached *cached = &search->cache[slot];
	struct patch_forms *forms = &search->forms[slot];
	const struct flow_patch *patch;
	struct patched_insn now;

	patch = flow_patch_find(&search->patches, machine, insn->ip, base, &now);
	if (patch && patch->group.table)
		return as_group_was(search, patch);
	if (patch)
		return &as_copied;
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
	for (uint32_t i = search->known; i < search->patches.count; i++)
		if (flow_patch_is_about(&search->patches.items[i], machine, ip))
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

static void collect_block(struct search *search, const struct pt_flow *base, struct block *block,
			  unsigned insns, struct sites *ret)
{
	struct machine *machine = block->space->machine;

	if (!flow_patch_is_possible(block))
		return;
	for (unsigned i = insns; i-- > 0 && ret->count < SITES;) {
		const struct insn *insn = &block->insns[i];

		if (patch_forms_may_be(machine, insn, time_of(base)) && !is_listed(ret, insn->ip) &&
		    !is_decided(search, machine, insn->ip) &&
		    forms_of(search, machine, insn, base)->count)
			ret->items[ret->count++] = (struct site){ block, i };
	}
}

/* The sites that the trial passed, the last first. */
static void collect(struct search *search, const struct pt_flow *base, struct sites *ret)
{
	struct block *last = search->flow.gap_block;

	ret->count = 0;
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
	struct patched_insn now;

	return form->also.site &&
	       flow_patch_find(&search->patches, machine, form->also.site, base, &now) &&
	       now.to == form->also.to;
}

static void try_from(struct search *search, const struct pt_flow *base, unsigned depth);

static void try_site(struct search *search, const struct site *site, const struct pt_flow *base,
		     unsigned depth)
{
	const struct insn *insn = &site->block->insns[site->index];
	struct machine *machine = site->block->space->machine;
	struct patch_forms forms = *forms_of(search, machine, insn, base);
	struct flow_patches *patches = &search->patches;

	for (unsigned i = 0; i < forms.count && search->work; i++) {
		const struct patch_form *form = &forms.items[i];
		struct flow_patch *patch;

		if (says_nothing_new(search, form, machine, base))
			continue;
		patch = &patches->items[patches->count++];
		*patch = (struct flow_patch){ .machine = machine,
					      .insn = form->insn,
					      .also = form->also,
					      .group = form->group,
					      .from = base->addresses,
					      .until = UINT64_MAX };
		if (!form->group.table)
			patch->insn.site = insn->ip;
		search->groups += form->group.table != NULL;
		search->unlikely += form->unlikely;
		search->unusual += !form->is_usual;
		search->is_known = form->is_known;
		try_from(search, base, depth - 1);
		search->groups -= form->group.table != NULL;
		search->unlikely -= form->unlikely;
		search->unusual -= !form->is_usual;
		patches->count--;
	}
}

/* Try what there is, with up to `depth` more patches. */
static void try_from(struct search *search, const struct pt_flow *base, unsigned depth)
{
	struct sites sites;

	if (!search->work)
		return;
	try_patches(search, base);
	if (!depth || search->patches.count == FLOW_PATCHES)
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

/* Whether the best explanation is a good one. */
static bool is_enough(const struct attempt *attempt)
{
	bool is_clear = attempt->visits >= VISITS * attempt->unlikely && !attempt->odd &&
			attempt->unlikely < PATCH_IMPROBABLE;

	if (attempt->unlikely && !is_clear)
		return false;
	return attempt->reach == UINT64_MAX || attempt->told >= TOLD ||
	       (attempt->met >= MET && !attempt->unusual);
}

static bool is_enough_found(const struct search *search)
{
	const struct attempts *found = &search->found;

	return found->count && (found->items[0].reach == UINT64_MAX || is_enough(&found->items[0]));
}

/* Explain the next disagreement with more patches; what reaches further comes to `found`. Few are
 * likelier than many: what is not tried of those is no loss, and nothing is where one will do. */
static void extend(struct search *search, const struct attempt *parent)
{
	search->patches = parent->patches;
	search->known = parent->patches.count;
	search->unlikely = parent->unlikely;
	search->unusual = parent->unusual;
	search->groups = parent->groups;
	if (!replay(search))
		return;
	try_all_from(search, 1);
	search->is_cut |= !search->work;
	for (unsigned depth = 2; depth <= DEPTH; depth++) {
		uint64_t saved = search->work / 2;

		if (is_enough_found(search))
			return;
		search->work -= saved;
		try_all_from(search, depth);
		search->work += saved;
	}
}

/* Drop what not all of the best attempts have. */
static void agree(struct attempts *list, uint32_t known)
{
	struct flow_patches *patches = &list->items[0].patches;
	uint32_t count = known;

	for (uint32_t k = known; k < patches->count; k++) {
		bool in_all = true;

		for (unsigned i = 1; i < list->count && !compare(&list->items[0], &list->items[i]);
		     i++)
			in_all &= has_patch(&list->items[i].patches, known, &patches->items[k]);
		if (in_all)
			patches->items[count++] = patches->items[k];
	}
	patches->count = count;
}

/* Explain one more disagreement: what is best then comes to `found`. Returns whether it reaches
 * further than before. */
static bool go_on(struct search *search, const struct attempts *best)
{
	uint64_t work = search->left < ROUND_WORK ? search->left : ROUND_WORK;

	search->found.count = 0;
	search->work = work;
	for (unsigned i = 0; i < best->count && i < PARENTS; i++)
		extend(search, &best->items[i]);
	search->left -= work - search->work;
	return !search->is_cut && search->found.count &&
	       search->found.items[0].reach > best->items[0].reach;
}

/* Go on with the best until what the last patches explain is enough. */
static bool find(struct search *search, uint32_t known, struct attempts *best)
{
	best->items[0] = (struct attempt){ .patches = search->patches };
	best->count = 1;
	for (unsigned round = 0; round < ROUNDS && best->items[0].reach != UINT64_MAX; round++) {
		if (!go_on(search, best))
			return false;
		*best = search->found;
		if (!is_enough(&best->items[0]))
			continue;
		agree(best, known);
		if (best->items[0].patches.count > known)
			return true;
		*best = search->found;
	}
	return false;
}

/* A segment may follow the more code, the more comes of it: one in which nothing is found, since
 * the copy is of another kernel, takes little time. */
static bool search_from(struct search *search, struct pt_flow *flow, struct flow_mark *mark,
			struct attempts *best)
{
	bool found;

	search->start = mark->flow;
	search->patches = flow->patches;
	search->window = pt_cursor_position(&flow->cursor) + WINDOW_BYTES;
	search->left = flow->patches.work;
	found = find(search, flow->patches.count, best);
	if (found && flow->patches.count < FOUND_MAX)
		search->left += FOUND_WORK;
	flow->patches.work = search->left;
	return found;
}

/* Not about one place again and again: others may have other reasons. */
static bool may_ask(struct patch_candidates *candidates, uint64_t ip)
{
	unsigned i = 0;

	if (candidates->asked == PATCH_ASKED_MAX)
		return false;
	while (i < candidates->place_count && candidates->places[i].ip != ip)
		i++;
	if (i == PATCH_PLACES)
		return false;
	candidates->place_count += i == candidates->place_count;
	candidates->places[i].ip = ip;
	if (candidates->places[i].asked++ >= PATCH_ASKED)
		return false;
	candidates->asked++;
	return true;
}

/* Add the single patches that reach further. */
static void note_candidates(struct search *search, struct pt_flow *flow, struct flow_mark *mark,
			    struct patch_candidates *candidates)
{
	search->start = mark->flow;
	search->window = pt_cursor_position(&flow->cursor) + WINDOW_BYTES;
	search->work = ROUND_WORK;
	search->patches = flow->patches;
	search->known = flow->patches.count;
	if (!replay(search))
		return;
	try_from(search, &search->bases[0], 1);
	for (unsigned i = 0; i < search->found.count && candidates->count < PATCH_CANDIDATES; i++) {
		const struct attempt *attempt = &search->found.items[i];
		struct patch_candidate *candidate = &candidates->items[candidates->count++];

		candidate->patch = attempt->patches.items[flow->patches.count];
		candidate->patch.from = 0;
		candidate->unlikely = attempt->unlikely;
		candidate->is_known = attempt->is_known;
		candidate->segment = flow->where.log ? flow->where.log->segment : 0;
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
	       (!flow->where.candidates || may_ask(flow->where.candidates, flow->gap_block->ip));
}

bool patch_search(struct flow_run *run, struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	struct attempts *best = NULL;
	struct search *search = NULL;
	bool found = false;

	flow->disagrees = false;
	if (may_search(flow)) {
		search = search_new();
		best = calloc(1, sizeof(*best));
	}
	if (search && best && flow->where.candidates)
		note_candidates(search, flow, mark, flow->where.candidates);
	else if (search && best)
		found = search_from(search, flow, mark, best);
	if (found)
		flow_mark_return(run, mark, &best->items[0].patches);
	free(search);
	free(best);
	if (!found)
		flow_mark_set(run, mark);
	return found;
}
