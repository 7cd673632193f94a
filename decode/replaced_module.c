#include "decode/replaced_module.h"

#include <string.h>

#include "decode/flow_patch.h"
#include "decode/odd_branch.h"

void module_doubts_init(struct module_doubts *doubts, const struct patch_inference *sources)
{
	doubts->sources = sources;
	doubts->is_done = false;
	(void)pthread_mutex_init(&doubts->lock, NULL);
}

void module_doubts_free(struct module_doubts *doubts)
{
	if (!doubts->sources)
		return;
	(void)pthread_mutex_destroy(&doubts->lock);
}

static const struct replaced_module *find(const struct replaced_module *items, size_t count,
					  const struct machine *machine, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (items[i].machine == machine && !strcmp(items[i].name, name))
			return &items[i];
	return NULL;
}

/* Since when a module is not to be believed. */
static uint64_t ask(struct module_doubts *doubts, const struct replaced_module *module)
{
	const struct replaced_module *found;

	(void)pthread_mutex_lock(&doubts->lock);
	if (!doubts->is_done)
		doubts->count = code_visits_modules(doubts->sources, doubts->items);
	doubts->is_done = true;
	(void)pthread_mutex_unlock(&doubts->lock);
	found = find(doubts->items, doubts->count, module->machine, module->name);
	return found ? found->since_ns : UINT64_MAX;
}

/* The module of an address in the machine of the present block; NULL where there are none that one
 * could doubt. */
static const char *module_at(const struct pt_flow *flow, uint64_t ip)
{
	if (!flow->block || flow->is_trial || !flow->where.doubts ||
	    !flow_patch_is_possible(flow->block))
		return NULL;
	return machine_module(flow->block->space->machine, ip, flow_ns(flow));
}

void replaced_module_note_astray(struct pt_flow *flow)
{
	const char *name = module_at(flow, flow->block->ip);

	if (name)
		flow->replaced.doubt =
			(struct replaced_module){ flow->block->space->machine, name, UINT64_MAX };
}

/* An interrupt, too, may return into the middle of a function, and a jump label of a module that is
 * still there be what disagrees: that is no more than a reason to ask. */
void replaced_module_note(struct pt_flow *flow)
{
	const char *name = flow->block ? module_at(flow, flow->block->ip) : NULL;
	const char *told = name ? module_at(flow, flow->told_ip) : NULL;
	struct machine *machine;

	if (!told || strcmp(name, told))
		return;
	machine = flow->block->space->machine;
	if (odd_branch_needs_interrupt(machine, flow->told_ip, flow_ns(flow)))
		flow->replaced.doubt = (struct replaced_module){ machine, name, UINT64_MAX };
}

bool replaced_module_apply(struct flow_run *run, const struct flow_mark *mark)
{
	struct pt_flow *flow = run->flow;
	struct replaced_module module = flow->replaced.doubt;
	struct replaced_modules *modules = &flow->replaced;
	struct flow_patches patches;

	modules->doubt.name = NULL;
	if (!module.name || modules->count == REPLACED_MODULES ||
	    find(modules->items, modules->count, module.machine, module.name))
		return false;
	module.since_ns = ask(flow->where.doubts, &module);
	modules->items[modules->count++] = module;
	modules->any |= module.since_ns != UINT64_MAX;
	if (flow_ns(flow) < module.since_ns)
		return false;
	flow->disagrees = false;
	patches = flow->patches;
	flow_mark_return(run, mark, &patches);
	return true;
}

bool replaced_module_has(const struct pt_flow *flow, const struct block *block)
{
	uint64_t time_ns = flow_ns(flow);
	const struct replaced_modules *modules = &flow->replaced;
	const struct replaced_module *module;
	const char *name;

	if (!modules->any || !flow_patch_is_possible(block))
		return false;
	name = machine_module(block->space->machine, block->ip, time_ns);
	module = name ? find(modules->items, modules->count, block->space->machine, name) : NULL;
	return module && time_ns >= module->since_ns;
}
