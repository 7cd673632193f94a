#include "decode/flow/flow_step.h"

#include <string.h>

#include "decode/base/error.h"
#include "decode/code/machines.h"
#include "decode/flow/flow_int3.h"
#include "decode/flow/flow_packet.h"
#include "decode/flow/flow_patch.h"
#include "decode/flow/flow_return.h"
#include "decode/flow/flow_thunk.h"
#include "decode/flow/flow_way_back.h"
#include "decode/flow/met_sites.h"
#include "decode/flow/mismatch_log.h"
#include "decode/flow/odd_branch.h"
#include "decode/flow/replaced_module.h"
#include "decode/flow/return_sites.h"

void flow_add_time(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;

	flow_add(run, FLOW_TIME, flow->clock.now)->count =
		(uint32_t)(flow->cycles - flow->told.cycles);
	flow->told.time = flow->clock.now;
	flow->told.cycles = flow->cycles;
}

void flow_commit_context(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;
	struct flow_batch *batch = run->batch;

	if (!memcmp(&flow->context, &flow->next_context, sizeof(flow->context)))
		return;
	flow->context = flow->next_context;
	batch->contexts[batch->context_count] = flow->context;
	flow_add(run, FLOW_CONTEXT, batch->context_count++);
}

/* Note in the flow's log, if it has one, that it was lost or found again; `from` as there. */
static void log_mismatch(struct pt_flow *flow, enum mismatch_kind kind, uint64_t from)
{
	if (flow->where.log)
		mismatch_log_add(flow->where.log,
				 (struct mismatch){
					 .kind = kind,
					 .position = pt_cursor_position(&flow->cursor),
					 .time = flow->clock.now,
					 .from = from,
					 .agreed = flow->agreed,
				 });
}

static inline void note_block(const struct pt_flow *flow, struct block *block)
{
	if (flow->where.sites)
		met_sites_note(flow->where.sites, block);
}

static void log_gap(struct pt_flow *flow, enum gap_kind kind)
{
	struct block *block = flow->gap_block;
	bool is_kernel = block && flow_patch_is_possible(block);

	log_mismatch(flow, MISMATCH_LOST, kind == GAP_MISMATCH && is_kernel ? block->ip : 0);
	if (block)
		note_block(flow, block);
}

/* The present packet told what the code says. */
static inline void agree(struct pt_flow *flow)
{
	if (flow->where.log)
		flow->agreed = pt_cursor_position(&flow->cursor);
}

void flow_gap(struct flow_run *run, enum gap_kind kind, uint64_t ip)
{
	struct pt_flow *flow = run->flow;

	flow_add_time(run);
	flow_add(run, FLOW_GAP, pt_cursor_position(&flow->cursor))->count = kind;
	flow_add(run, FLOW_AT, ip);
	if (kind == GAP_MISMATCH)
		replaced_module_note(flow);
	flow->state = FLOW_LOST;
	flow->gap_block = flow->block;
	flow->block = NULL;
	flow->tnt_count = 0;
	flow->announced.at_fup = false;
	return_stack_doubt(&flow->calls);
	flow->gaps++;
	log_gap(flow, kind);
	flow->disagrees |= kind == GAP_MISMATCH;
}

/* A gap that code which is not known may be the reason of. */
static void lose_way(struct flow_run *run, enum gap_kind kind)
{
	uint64_t tnt = run->flow->tnt;
	uint32_t count = run->flow->tnt_count;

	flow_gap(run, kind, run->flow->ip);
	flow_way_back_find(run, tnt, count);
}

void flow_say_switch(struct flow_run *run)
{
	const struct pt_flow *flow = run->flow;

	if (!flow->gaps_only || flow->trial || !flow->where.switch_count)
		return;
	flow_add_time(run);
	(void)flow_add(run, FLOW_SWITCH, 0);
}

void flow_begin_at(struct flow_run *run, uint64_t ip, uint8_t flags)
{
	struct pt_flow *flow = run->flow;

	flow_commit_context(run);
	if (!flow->gaps_only)
		flow_add(run, FLOW_BEGIN, ip)->flags = flags;
	flow_say_switch(run);
	log_mismatch(flow, MISMATCH_FOUND, 0);
	flow->state = FLOW_RUNNING;
	flow->ip = ip;
	flow->addresses++;
	flow->block = NULL;
	flow->announced.at_fup = false;
	flow->announced.overflowed = false;
}

/* The process on the CPU now, for user addresses and guests; -1 unknown. Without MTC and CYC the
 * time may stand still where tracing was switched on, in the middle of a switch. */
static int32_t present_pid(const struct pt_flow *flow)
{
	const struct flow_code *where = &flow->where;
	size_t begun;

	if (where->pid >= 0 || !where->switch_count)
		return where->pid;
	begun = switches_begun(where->switches, where->switch_count, flow_ns(flow));
	return begun ? where->switches[begun - 1].pid : -1;
}

struct code_space *flow_space(struct pt_flow *flow, uint64_t ip)
{
	const struct machines *machines = flow->where.code->machines;
	struct machine *machine = machines->host;
	int32_t pid = -1;

	if (flow->context.nr || !(ip >> 63))
		pid = present_pid(flow);
	if (flow->context.nr)
		machine = machines_guest(machines, pid);
	if (!machine)
		machines_miss_guest(machines);
	return code_space_get(flow->where.code, machine, pid, ip, flow->context.bits);
}

bool flow_knows_block(struct pt_flow *flow)
{
	struct code_space *space;

	if (flow->block || flow->state != FLOW_RUNNING)
		return flow->block;
	if (flow_meets_kernel(flow))
		return false;
	space = flow_space(flow, flow->ip);
	flow->block = space ? block_known(space, flow->ip) : NULL;
	return flow->block;
}

struct block *flow_block_at(struct pt_flow *flow, uint64_t ip)
{
	struct code_space *space = flow_space(flow, ip);
	struct block *block = space ? block_get(flow->where.code, space, ip, flow_ns(flow)) : NULL;

	if (block && flow->patches.count && (block->patched || flow->trial == FLOW_TRIES_PATCHES))
		return flow_patch_block(flow, block);
	return block;
}

/* The block at flow->ip; false, with the gap reported, when there is no code. */
static bool look_up(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;

	flow->block = flow_block_at(flow, flow->ip);
	if (!flow->block) {
		flow_gap(run, GAP_NO_MEMORY, flow->ip);
		return false;
	}
	if (flow->block->astray)
		replaced_module_note_astray(flow);
	if (!flow->block->count || replaced_module_has(flow, flow->block)) {
		lose_way(run, GAP_NO_CODE);
		return false;
	}
	return true;
}

static inline bool have_block(struct flow_run *run)
{
	return run->flow->block || look_up(run);
}

/* Remember the return addresses of the calls among the first `count` instructions of a block. */
static void push_calls(struct pt_flow *flow, const struct block *block, unsigned count)
{
	const uint64_t *pushes = block_pushes(block);

	if (count == block->count) {
		for (unsigned k = 0; k < block->push_count; k++)
			return_stack_push(&flow->calls, pushes[k]);
		return;
	}
	for (unsigned i = 0, k = 0; i < count && k < block->push_count; i++)
		if (insn_next(&block->insns[i]) == pushes[k])
			return_stack_push(&flow->calls, pushes[k++]);
}

static bool stands_in(const struct pt_flow *flow, const struct block *block)
{
	return (block->patched || flow->trial == FLOW_TRIES_PATCHES) &&
	       flow_patch_stands_in(flow, block->space->machine, block->ip);
}

/* The block runs, but elsewhere: that is not known, and it is not told. */
static void leave_out(struct flow_run *run, struct block *block)
{
	note_block(run->flow, block);
	flow_add(run, FLOW_GAP, pt_cursor_position(&run->flow->cursor))->count = GAP_THUNK;
	flow_add(run, FLOW_AT, block->ip);
}

/* The first `count` instructions of the block run; the calls among them are remembered. */
static inline void emit_block(struct flow_run *run, struct block *block, unsigned count, bool taken)
{
	run->flow->insns += count;
	if (block->push_count)
		push_calls(run->flow, block, count);
	if (stands_in(run->flow, block)) {
		leave_out(run, block);
		return;
	}
	if (run->flow->gaps_only) {
		note_block(run->flow, block);
		if (block->ip == run->flow->where.code->switch_ip && !run->flow->context.nr)
			flow_say_switch(run);
		return;
	}
	run->batch->items[run->batch->count++] = (struct flow_item){
		.kind = FLOW_BLOCK, .flags = taken ? FLOW_TAKEN : 0, .count = count, .block = block
	};
}

/* Go on at `ip`, where `from` leads by its successor `way`; link the blocks if neither can change.
 */
static inline void go(struct flow_run *run, struct block *from, unsigned way, uint64_t ip)
{
	struct pt_flow *flow = run->flow;
	struct block *to = from->successor[way];

	flow->ip = ip;
	if (to && to->ip == ip && flow->trial != FLOW_TRIES_PATCHES && !flow->learned.modules.any) {
		flow->block = to;
		return;
	}
	flow->block = NULL;
	if (!look_up(run))
		return;
	to = flow->block;
	if (!from->timed && !to->timed && !from->patched && !to->patched &&
	    flow->trial != FLOW_TRIES_PATCHES && from->space == to->space)
		from->successor[way] = to;
}

/* A branch of the block goes to `ip`. Where that is left out, nobody knows where it went; but where
 * what is left out leads is where the branch did that led there. */
static void say_target(struct flow_run *run, const struct block *block, uint64_t ip)
{
	const struct pt_flow *flow = run->flow;

	if (!flow->gaps_only)
		(void)flow_add(run, FLOW_TO,
			       flow_patch_stands_in(flow, block->space->machine, ip) ? 0 : ip);
}

/* The same where the instruction says it, so that it is told only if it is not so. */
static void go_direct(struct flow_run *run, struct block *block, unsigned way, uint64_t ip)
{
	const struct pt_flow *flow = run->flow;

	if (block->patched &&
	    stands_in(flow, block) != flow_patch_stands_in(flow, block->space->machine, ip))
		say_target(run, block, ip);
	go(run, block, way, ip);
}

/* Whether the flow has come back to a block without a packet in between, and so would go round for
 * ever. The block to compare with is renewed at powers of two, so that a cycle of any length is
 * found (Brent's algorithm). Nor does any real code run INSNS_MOST instructions without a packet:
 * these are no code. */
static bool is_idle_loop(struct flow_run *run)
{
	enum { INSNS_MOST = 32768, BLOCKS_MOST = INSNS_MOST / BLOCK_MAX_INSNS };
	struct pt_flow *flow = run->flow;

	static_assert(BLOCKS_MOST < FLOW_MARGIN / 3, "a packet may lead through as many");
	if (!flow->idle_blocks)
		flow->idle_items = run->batch->count;
	else if (flow->block == flow->idle_mark)
		return true;
	if (flow->idle_blocks >= BLOCKS_MOST)
		return true;
	if (!(flow->idle_blocks & (flow->idle_blocks - 1)))
		flow->idle_mark = flow->block;
	flow->idle_blocks++;
	return false;
}

/* A direct call of the kernel leads to where no code is. There may have been some that was called
 * when it was copied, as by ftrace (patch_forms.c), but the call itself is in doubt. */
static bool is_call_to_nowhere(const struct block *block)
{
	return block->end == BLOCK_NO_CODE && block->count && flow_patch_is_possible(block) &&
	       block->next >> 63 && block->insns[block->count - 1].class == INSN_CALL;
}

/* Code that never ends and needs no packet. Nothing tells that it ran, so it is not told; a kernel
 * has such code only where the CPU never comes, behind the calls of retpolines, so that the flow
 * has taken a wrong turn. */
static void lose_in_loop(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;

	run->batch->count = flow->idle_items;
	flow->disagrees |= flow_patch_is_possible(flow->block);
	flow_gap(run, GAP_LOOP, flow->ip);
}

/* The block ends without needing a packet. False when sync is lost. */
static bool pass(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;
	struct block *block = flow->block;

	if (is_idle_loop(run)) {
		lose_in_loop(run);
		return false;
	}
	emit_block(run, block, block->count, false);
	go_direct(run, block, 0, block->next);
	flow->disagrees |= flow->state == FLOW_LOST && is_call_to_nowhere(block);
	return flow->state == FLOW_RUNNING;
}

/* Take note of where a return goes, if that is of interest. */
static void note_return(const struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	if (flow->where.returns && !flow->trial)
		return_sites_note(flow->where.returns, block, ip);
}

static void return_by_bit(struct flow_run *run, bool bit)
{
	struct pt_flow *flow = run->flow;
	struct block *block = flow->block;
	uint64_t ip;

	emit_block(run, block, block->count, true); /* its own calls are on the stack first */
	if (bit && !flow->calls.count && flow->trial == FLOW_TRIES_RETURN) {
		flow->state = FLOW_AT_RETURN;
		return;
	}
	if (!bit || (!return_stack_pop(&flow->calls, &ip) && !flow_return_find(run, &ip))) {
		lose_way(run, GAP_MISMATCH);
		return;
	}
	note_return(flow, block, ip);
	flow->returns_met++;
	agree(flow);
	say_target(run, block, ip);
	go(run, block, 1, ip);
}

/* An indirect branch while TNT bits are pending: its TIP comes behind that TNT packet, the bits
 * are for what comes after (SDM "Deferred TIPs"). */
static void branch_before_bit(struct flow_run *run)
{
	uint64_t ip;

	if (flow_fetch_tip(run, &ip))
		flow_gap(run, GAP_MISMATCH, run->flow->ip);
	else
		flow_take_branch(run, ip);
}

static bool is_vmentry(const struct block *block)
{
	return block->count && block->insns[block->count - 1].class == INSN_VMENTRY;
}

static bool needs_packet(const struct block *block)
{
	return block->end != BLOCK_GOES_ON && block->end != BLOCK_NO_CODE && !is_vmentry(block);
}

static void step_before_bit(struct flow_run *run)
{
	struct block *block = run->flow->block;

	if (block->end == BLOCK_INDIRECT)
		branch_before_bit(run);
	else if (needs_packet(block))
		flow_gap(run, GAP_MISMATCH, run->flow->ip);
	else
		(void)pass(run);
}

static void take_bit(struct flow_run *run, bool bit)
{
	struct block *block = run->flow->block;

	if (block->end == BLOCK_RETURN) {
		return_by_bit(run, bit);
		return;
	}
	emit_block(run, block, block->count, bit);
	go_direct(run, block, bit, bit ? block->target : block->next);
}

void flow_run_tnt(struct flow_run *run)
{
	struct pt_flow *flow = run->flow;
	const uint32_t ways_found = flow->ways_found;

	flow->idle_blocks = 0;
	do {
		struct block *block;

		if (flow->state != FLOW_RUNNING || !have_block(run))
			return;
		block = flow->block;
		if (block->end == BLOCK_CONDITIONAL || block->end == BLOCK_RETURN) {
			flow->idle_blocks = 0;
			take_bit(run, flow->tnt >> --flow->tnt_count & 1);
		} else {
			step_before_bit(run);
		}
	} while (flow->tnt_count && flow->ways_found == ways_found &&
		 run->batch->count < FLOW_BATCH - 64 && !flow_should_forget_code(flow));
}

static int find_insn(const struct block *block, uint64_t ip)
{
	for (int i = 0; i < block->count; i++)
		if (block->insns[i].ip == ip)
			return i;
	return -1;
}

/* On Goldmont a FUP of an event at an indirect branch may tell where the instruction behind it is
 * (perf's decoder knows of it, for this model alone). */
static bool is_behind_indirect(const struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	enum { GOLDMONT = 0x5c };
	const struct pt_config *config = flow->config;

	return config->cpu_family == 6 && config->cpu_model == GOLDMONT && block->next == ip &&
	       (block->end == BLOCK_INDIRECT || block->end == BLOCK_RETURN ||
		block->end == BLOCK_FAR);
}

static int walk_to(struct flow_run *run, uint64_t ip)
{
	struct pt_flow *flow = run->flow;

	if (flow->quick) {
		flow->ip = ip;
		return 0;
	}
	flow->idle_blocks = 0;
	while (flow->ip != ip) {
		struct block *block;
		int index;

		if (!have_block(run))
			return -PTVM_INCONSISTENT;
		block = flow->block;
		index = find_insn(block, ip);
		if (index < 0 && is_behind_indirect(flow, block, ip))
			index = block->count - 1;
		if (index >= 0) {
			emit_block(run, block, (unsigned)index, false);
			flow->ip = block->insns[index].ip;
			flow->block = NULL;
			return 0;
		}
		if (needs_packet(block)) {
			flow_gap(run, GAP_MISMATCH, flow->ip);
			return -PTVM_INCONSISTENT;
		}
		if (!pass(run))
			return -PTVM_INCONSISTENT;
	}
	return 0;
}

int flow_walk_to(struct flow_run *run, uint64_t ip)
{
	int r = walk_to(run, ip);

	if (!r)
		agree(run->flow);
	return r;
}

/* Go on to the block that ends with a branch that needs a packet, or leads to a thunk that jumps to
 * `ip`. False: sync is lost. A VM entry that was not announced by a PIP with NR set has failed, and
 * the flow goes on behind it. */
static bool reach_branch(struct flow_run *run, uint64_t ip)
{
	struct pt_flow *flow = run->flow;

	while (have_block(run)) {
		if (needs_packet(flow->block) || (is_vmentry(flow->block) && flow->next_context.nr))
			return true;
		if (flow_thunk_is_next(run, ip))
			return true;
		if (!pass(run))
			return false;
	}
	return false;
}

/* The block's last branch leads to a thunk: all that is not told is what ran of that. */
static void pass_thunk(struct flow_run *run, uint64_t ip)
{
	struct pt_flow *flow = run->flow;
	const struct block *thunk = flow->block;

	flow_say(run, FLOW_TO, ip);
	flow_add(run, FLOW_GAP, pt_cursor_position(&flow->cursor))->count = GAP_THUNK;
	flow_add(run, FLOW_AT, thunk->next);
	flow->ip = ip;
	flow->block = NULL;
}

void flow_take_branch(struct flow_run *run, uint64_t ip)
{
	struct pt_flow *flow = run->flow;
	struct block *block;
	uint64_t ignored;

	flow->idle_blocks = 0;
	if (flow_int3_find(run, ip) || !reach_branch(run, ip)) {
		flow_begin_at(run, ip, 0);
		return;
	}
	block = flow->block;
	if (block->end == BLOCK_CONDITIONAL || block->end == BLOCK_UD) {
		flow_gap(run, GAP_MISMATCH, flow->ip);
		flow_begin_at(run, ip, 0);
		return;
	}
	emit_block(run, block, block->count, true);
	flow->addresses++;
	agree(flow);
	if (block->end == BLOCK_NO_CODE) {
		pass_thunk(run, ip);
		return;
	}
	if (flow->trial || flow->where.log)
		odd_branch_note(flow, block, ip);
	if (block->end == BLOCK_RETURN) {
		(void)return_stack_pop(&flow->calls, &ignored);
		note_return(flow, block, ip);
	}
	if (block->end != BLOCK_FAR) {
		flow_say(run, FLOW_TO, ip);
		go(run, block, 1, ip);
		return;
	}
	flow_commit_context(run);
	flow_say(run, FLOW_TO, ip);
	flow->ip = ip;
	flow->block = NULL;
}

/* How many instructions of a block ran if one of them ended tracing; 0 if none did. `ip`: where it
 * went, then it is the branch that goes there; 0 unknown, then it is one that can change what is
 * traced. A far transfer at the end is likelier than those, as it changes the privilege level. */
static int find_end(const struct block *block, uint64_t ip)
{
	if (!ip && block->end == BLOCK_FAR)
		return block->count;
	for (int i = 0; i < block->count; i++) {
		const struct insn *insn = &block->insns[i];

		if (ip ? insn->target == ip && insn_is_branch(insn) : insn->stops_trace)
			return i + 1;
	}
	return 0;
}

/* Can the branch at the end of a block, if it is one, have ended tracing by going to `ip`? A
 * conditional one can only do so by leaving the addresses that a filter selects. The packet then
 * has its target, but for erratum SKL014. */
static bool ends_tracing(const struct pt_flow *flow, const struct block *block, uint64_t ip)
{
	if (block->end == BLOCK_UD)
		return false;
	return block->end != BLOCK_CONDITIONAL || ip == block->target || ip == block->next ||
	       (!ip && flow->config->filter[0]);
}

void flow_end_by_branch(struct flow_run *run, uint64_t ip)
{
	struct pt_flow *flow = run->flow;

	flow->idle_blocks = 0;
	while (have_block(run)) {
		struct block *block = flow->block;
		int count = find_end(block, ip);

		if (!count && block->end != BLOCK_GOES_ON && block->end != BLOCK_NO_CODE) {
			count = block->count;
			if (!ends_tracing(flow, block, ip)) {
				flow_gap(run, GAP_MISMATCH, flow->ip);
				return;
			}
		}
		if (count) {
			bool taken = block->end != BLOCK_CONDITIONAL || count < block->count ||
				     !ip || block->target == ip;

			emit_block(run, block, (unsigned)count, taken);
			flow_say(run, FLOW_END, ip);
			return;
		}
		if (!pass(run))
			return;
	}
}
