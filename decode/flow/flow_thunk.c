#include "decode/flow/flow_thunk.h"

#include "decode/flow/flow_guess.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/odd_branch.h"

/* Kernel code goes directly to where no code is known, and on to `ip` in the kernel. */
static bool leads_to_nowhere(const struct block *block, uint64_t ip)
{
	enum insn_class class;

	if (block->end != BLOCK_NO_CODE || !block->count || !flow_patch_is_possible(block))
		return false;
	class = block->insns[block->count - 1].class;
	return (class == INSN_CALL || class == INSN_JMP) && block->next >> 63 && ip >> 63;
}

/* Where functions begin it is ftrace that is called. */
static bool is_for_ftrace(const struct pt_flow *flow, const struct block *block)
{
	const struct insn *last = &block->insns[block->count - 1];

	return last->class == INSN_CALL &&
	       odd_branch_is_entry(block->space->machine, last->ip, flow_ns(flow));
}

/* How packets and code go together where the thunk jumped. */
static enum guess_verdict try(struct flow_run *run, uint64_t ip)
{
	struct pt_flow *flow = run->flow, trial;
	struct guess_outcome outcome;
	struct flow_guess *guess;

	guess = flow_guess_new(flow, &flow->return_steps, &trial);
	if (!guess)
		return GUESS_REFUTED;
	flow_take_branch(&(struct flow_run){ &trial, &guess->batch }, ip);
	outcome = flow_guess_follow(guess, &trial);
	(void)flow_guess_end(guess);
	return outcome.verdict;
}

/* What was found to be a thunk is one, and so is what there is no telling of. */
static bool is_agreed(struct flow_run *run, uint64_t thunk, uint64_t ip)
{
	struct pt_flow *flow = run->flow;
	uint64_t *known = &flow->thunks[block_slot(thunk, FLOW_THUNKS - 1)];
	enum guess_verdict verdict;

	if (flow->trial || !flow->return_steps || *known == thunk)
		return true;
	verdict = try(run, ip);
	if (verdict == GUESS_AGREES)
		*known = thunk;
	return verdict != GUESS_REFUTED;
}

bool flow_thunk_is_next(struct flow_run *run, uint64_t ip)
{
	const struct block *block = run->flow->block;

	return leads_to_nowhere(block, ip) && !is_for_ftrace(run->flow, block) &&
	       is_agreed(run, block->next, ip);
}
