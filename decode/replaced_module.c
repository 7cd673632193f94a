#include "decode/replaced_module.h"

#include <string.h>

#include "decode/flow_patch.h"
#include "decode/machine_parts.h"
#include "decode/odd_branch.h"

/* An interrupt, too, may return into the middle of a function, and a jump label of a module that is
 * still there be what disagrees: hardly ever that often. */
enum { PROOFS = 2 };

/* The name of the module at `ip`; NULL: it is in none. */
static const char *module_at(const struct machine *machine, uint64_t ip)
{
	const struct symbol *symbol = symbols_find(&machine->symbols, ip);

	return symbol ? symbol->module : NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* Whether what disagrees follows from an address in the same module that is none to go to. */
static bool is_proof(const struct pt_flow *flow, struct machine *machine, const char *module)
{
	uint64_t time_ns = time_conv_ns(&flow->config->conv, flow->clock.now);

	return is_same(module_at(machine, flow->told_ip), module) &&
	       odd_branch_needs_interrupt(machine, flow->told_ip, time_ns);
}

void replaced_module_note(struct pt_flow *flow)
{
	struct replaced_modules *modules = &flow->replaced;
	struct machine *machine;
	const char *module;
	unsigned i = 0;

	if (!flow->block || flow->is_trial || flow->where.log || flow->where.candidates ||
	    !flow_patch_is_possible(flow->block))
		return;
	machine = flow->block->space->machine;
	module = module_at(machine, flow->block->ip);
	if (!module || !is_proof(flow, machine, module))
		return;
	while (i < modules->count &&
	       (modules->items[i].machine != machine || !is_same(modules->items[i].name, module)))
		i++;
	if (i == REPLACED_MODULES)
		return;
	if (i == modules->count)
		modules->items[modules->count++] =
			(struct replaced_module){ .machine = machine, .name = module };
	modules->any |= ++modules->items[i].proofs >= PROOFS;
}

bool replaced_module_has(const struct pt_flow *flow, const struct block *block)
{
	const struct replaced_modules *modules = &flow->replaced;
	const char *module;

	if (!modules->any || !flow_patch_is_possible(block))
		return false;
	module = module_at(block->space->machine, block->ip);
	for (unsigned i = 0; i < modules->count; i++)
		if (modules->items[i].machine == block->space->machine &&
		    is_same(modules->items[i].name, module))
			return modules->items[i].proofs >= PROOFS;
	return false;
}
