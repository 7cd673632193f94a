#include "decode/flow/replaced_module.h"

#include <string.h>

#include "decode/base/search.h"
#include "decode/base/vec.h"
#include "decode/flow/code_visits.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/odd_branch.h"

int replaced_module_compare(const struct replaced_module *a, const struct replaced_module *b)
{
	return a->machine == b->machine  ? strcmp(a->name, b->name)
	       : a->machine < b->machine ? -1
					 : 1;
}

void module_doubts_init(struct module_doubts *doubts, const struct trace_sources *sources)
{
	*doubts = (struct module_doubts){ .sources = sources };
	(void)pthread_mutex_init(&doubts->lock, NULL);
}

void module_doubts_free(struct module_doubts *doubts)
{
	if (!doubts->sources)
		return;
	vec_free(&doubts->list);
	(void)pthread_mutex_destroy(&doubts->lock);
}

/* Since when a module is not to be believed, by what was found out. */
static uint64_t since(const struct module_doubts *doubts, const struct machine *machine,
		      const char *name)
{
	const struct replaced_module_list *list = &doubts->list;
	const struct replaced_module key = { machine, name, 0 };
	size_t at =
		search_sorted(list->count, i, replaced_module_compare(&list->items[i], &key) < 0);

	return at < list->count && !replaced_module_compare(&list->items[at], &key)
		       ? list->items[at].since_ns
		       : UINT64_MAX;
}

/* Returns whether any module was replaced. */
static bool ask(struct module_doubts *doubts)
{
	bool any = false;

	(void)pthread_mutex_lock(&doubts->lock);
	if (!doubts->is_done)
		code_visits_modules(doubts->sources, &doubts->list);
	doubts->is_done = true;
	(void)pthread_mutex_unlock(&doubts->lock);
	for (size_t i = 0; i < doubts->list.count; i++)
		any |= doubts->list.items[i].since_ns != UINT64_MAX;
	return any;
}

/* The module of an address in the machine of the present block; NULL where there are none that one
 * could doubt. */
static const char *module_at(const struct pt_flow *flow, uint64_t ip)
{
	if (!flow->block || flow->trial || !flow->where.doubts ||
	    !flow_patch_is_possible(flow->block))
		return NULL;
	return machine_module(flow->block->space->machine, ip, flow_ns(flow));
}

static void doubt(struct pt_flow *flow, const char *name)
{
	flow->learned.modules.doubt.machine = flow->block->space->machine;
	flow->learned.modules.doubt.name = name;
}

void replaced_module_note_astray(struct pt_flow *flow)
{
	const char *name = module_at(flow, flow->block->ip);

	if (name)
		doubt(flow, name);
}

/* An interrupt, too, may return into the middle of a function, and a jump label of a module that is
 * still there be what disagrees: that is no more than a reason to ask. */
void replaced_module_note(struct pt_flow *flow)
{
	const char *name = flow->block ? module_at(flow, flow->block->ip) : NULL;
	const char *told = name ? module_at(flow, flow->told_ip) : NULL;

	if (told && !strcmp(name, told) &&
	    odd_branch_needs_interrupt(flow->block->space->machine, flow->told_ip, flow_ns(flow)))
		doubt(flow, name);
}

bool replaced_module_apply(struct flow_run *run, const struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	struct replaced_modules *modules = &flow->learned.modules;
	const char *name = modules->doubt.name;
	struct flow_patches patches;

	modules->doubt.name = NULL;
	if (!name || modules->is_asked)
		return false;
	modules->is_asked = true;
	modules->any = ask(flow->where.doubts);
	if (flow_ns(flow) < since(flow->where.doubts, modules->doubt.machine, name))
		return false;
	flow->disagrees = false;
	patches = flow->patches;
	flow_mark_return(run, mark, &patches);
	return true;
}

bool replaced_module_has(const struct pt_flow *flow, const struct block *block)
{
	uint64_t time_ns = flow_ns(flow);
	const char *name;

	if (!flow->learned.modules.any || !flow_patch_is_possible(block))
		return false;
	name = machine_module(block->space->machine, block->ip, time_ns);
	return name && time_ns >= since(flow->where.doubts, block->space->machine, name);
}
