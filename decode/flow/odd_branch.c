#include "decode/flow/odd_branch.h"

#include <string.h>

#include "decode/flow/flow_patch.h"
#include "decode/flow/mismatch_log.h"

enum { ENDBR_SIZE = 4 }; /* bytes; a function may also be entered behind its ENDBR */

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

/* Does the TIP of a return lead to where the return stack points? With compressed returns the CPU
 * sends no TIP then. */
static bool is_needless(const struct pt_flow *flow, uint64_t ip)
{
	return !flow->config->noretcomp && flow->calls.count &&
	       return_stack_last(&flow->calls) == ip;
}

static bool is_elsewhere(const struct pt_flow *flow, uint64_t ip)
{
	return flow->calls.count && return_stack_last(&flow->calls) != ip;
}

bool odd_branch_is_entry(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	struct symbol_view symbol;

	machine_symbol(machine, -1, ip, time_ns, &symbol);
	return symbol.name && symbol.offset <= ENDBR_SIZE;
}

static bool is_in_function(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	struct symbol_view symbol;

	machine_symbol(machine, -1, ip, time_ns, &symbol);
	return symbol.name && symbol.offset > ENDBR_SIZE;
}

/* A return goes behind a call; a call goes to where a function begins. */
static bool is_odd_target(const struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	uint64_t time_ns = flow_ns(flow);
	struct machine *machine = block->space->machine;

	if (block->end == BLOCK_RETURN)
		return !is_after_call(machine, ip, time_ns);
	return block->insns[block->count - 1].class == INSN_CALL_INDIRECT &&
	       is_in_function(machine, ip, time_ns);
}

bool odd_branch_needs_interrupt(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	return is_in_function(machine, ip, time_ns) && !is_after_call(machine, ip, time_ns);
}

/* The function graph tracer has functions return to its handler (kernel/trace/fgraph.c). */
static bool is_of_graph_tracer(struct machine *machine, uint64_t ip, uint64_t time_ns)
{
	struct symbol_view symbol;

	machine_symbol(machine, -1, ip, time_ns, &symbol);
	return symbol.name && !symbol.offset && !strcmp(symbol.name, "return_to_handler");
}

/* MOV of a register to (%rsp). */
static bool is_target_store(const struct insn *insn)
{
	const uint8_t *bytes = insn->bytes;

	return insn->length == 4 && (bytes[0] & 0xfb) == 0x48 && bytes[1] == 0x89 &&
	       (bytes[2] & 0xc7) == 4 && bytes[3] == 0x24;
}

/* Whether the return at the end of a block is a retpoline, which stands for an indirect call or
 * jump: it returns to what was just stored, maybe by way of the return thunk
 * (arch/x86/lib/retpoline.S). */
static bool is_retpoline(const struct block *block)
{
	const struct insn *insn = &block->insns[block->count - 1];

	do {
		if (insn == block->insns)
			return false;
		insn--;
	} while (insn->class == INSN_JMP);
	return is_target_store(insn);
}

void odd_branch_note(struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	struct machine *machine = block->space->machine;
	bool is_return = block->end == BLOCK_RETURN, is_odd;

	if (!flow_patch_is_possible(block) || !(ip >> 63) ||
	    (is_return && (is_retpoline(block) || is_of_graph_tracer(machine, ip, flow_ns(flow)))))
		return;
	/* Programs that switch stacks do so, too, but wrong turns do it more often. */
	flow->odd_branches += is_return && is_elsewhere(flow, ip);
	is_odd = is_odd_target(flow, block, ip) || (is_return && is_needless(flow, ip));
	flow->odd_branches += is_odd;
	if (is_odd && flow->where.log)
		mismatch_log_add(flow->where.log,
				 (struct mismatch){
					 .kind = MISMATCH_ODD,
					 .position = pt_cursor_position(&flow->cursor),
					 .time = flow->clock.now,
					 .from = block->ip,
					 .to = ip,
				 });
}
