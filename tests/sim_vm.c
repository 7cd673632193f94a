#include "tests/sim_vm.h"

#include <stdlib.h>

#include "decode/base/vec.h"

enum {
	DEEP = 100,  /* frames at which recursion turns back: more than the processor remembers */
	SHALLOW = 5, /* and at which it may begin again */
	NESTED_MAX = 2, /* interrupts in interrupts */
};

static const uint64_t kernel_bases[1 + SIM_GUESTS] = { 0xffffffff81000000, 0xffffffff81000000,
						       0xc1000000, 0x1000 };
static const uint8_t kernel_bits[1 + SIM_GUESTS] = { 64, 64, 32, 16 };
static const uint64_t user_base = 0x400000;

static bool once_in(struct sim_vm *vm, unsigned n)
{
	return sim_random_once_in(&vm->random, n);
}

static struct sim_machine *machine(struct sim_vm *vm)
{
	return &vm->machines[vm->current];
}

static const struct sim_code *code(struct sim_vm *vm)
{
	return machine(vm)->in_user ? &machine(vm)->user : &machine(vm)->kernel;
}

static const struct sim_insn *insn_at(struct sim_vm *vm)
{
	return &code(vm)->insns.items[machine(vm)->insn];
}

static void push_frame(struct sim_machine *m, bool user_stack, struct sim_frame frame)
{
	if (!vec_push(&m->stack[user_stack], frame))
		abort();
}

static bool is_traced(struct sim_vm *vm)
{
	uint64_t ip = insn_at(vm)->ip;

	if (vm->options.kernel_only && machine(vm)->in_user)
		return false;
	return !vm->options.range_filter ||
	       (ip >= kernel_bases[0] && ip < kernel_bases[0] + SIM_FAR_OFFSET);
}

/* The trace hardware sees the registers. */
static void update_state(struct sim_vm *vm)
{
	struct sim_pt_state *state = &vm->pt.state;

	state->ip = insn_at(vm)->ip;
	state->cr3 = machine(vm)->cr3;
	state->vmcs = vm->machines[vm->loaded].vmcs;
	state->nr = vm->current;
	state->bits = code(vm)->bits;
	state->tsc_offset = vm->current ? vm->options.tsc_offset[vm->current - 1] : 0;
	state->tsc_ratio = vm->current ? vm->options.tsc_ratio : 0;
	state->in_tx = vm->tx_nesting;
}

static void append_truth(struct sim_vm *vm)
{
	struct sim_truth truth = { insn_at(vm)->ip, vm->pt.tsc, (uint8_t)vm->current,
				   machine(vm)->in_user, vm->pt.losing ? SIM_LOST : SIM_KNOWN };

	if (!vm->pt.enabled)
		return;
	if (!vec_push(&vm->truth, truth))
		abort();
	vm->pt.retired = vm->truth.count;
}

/* How control went where it is now, for the packet that tells. */
enum transfer { BY_DIRECT, BY_COND, BY_INDIRECT, BY_RET, BY_FAR };

/* Control has moved: enable, disable, or tell where to. Branches out of the filter have a TIP.PGD
 * instead of whatever packet they have otherwise; its IP is left out where the privilege level, not
 * the address, is what is filtered. */
static void arrive(struct sim_vm *vm, enum transfer how, bool taken)
{
	struct sim_pt *pt = &vm->pt;
	bool traced = is_traced(vm);
	uint64_t ip;

	update_state(vm);
	ip = pt->state.ip;
	if (!pt->enabled && traced) {
		pt->return_count = 0;
		sim_pt_branch(pt, PT_TIP_PGE, ip, false);
	} else if (pt->enabled && !traced) {
		sim_pt_branch(pt, PT_TIP_PGD, ip, vm->options.kernel_only && machine(vm)->in_user);
	} else if (pt->enabled) {
		switch (how) {
		case BY_DIRECT: break;
		case BY_COND: sim_pt_cond(pt, taken); break;
		case BY_INDIRECT: sim_pt_indirect(pt, ip); break;
		case BY_RET: sim_pt_ret(pt, ip); break;
		case BY_FAR: sim_pt_branch(pt, PT_TIP, ip, false); break;
		}
	}
}

static void put_event(struct sim_vm *vm, uint64_t type, uint16_t vector)
{
	if (vm->options.event_trace && vm->pt.enabled)
		sim_pt_packet(&vm->pt, &(struct pt_packet){
					       .kind = PT_CFE, .payload = type, .count = vector });
}

/* The source of an asynchronous branch. */
static void depart(struct sim_vm *vm)
{
	if (vm->pt.enabled)
		sim_pt_fup(&vm->pt, insn_at(vm)->ip);
}

static void enter_handler(struct sim_vm *vm)
{
	struct sim_machine *m = machine(vm);

	push_frame(m, false, (struct sim_frame){ m->insn, true, m->in_user });
	m->interrupts++;
	m->in_user = false;
	m->insn = m->kernel.functions[SIM_HANDLER];
}

/* Another processor rewrites some labels of a machine. */
static void flip_labels(struct sim_vm *vm, struct sim_machine *m, unsigned one_in)
{
	for (size_t i = 0; i < m->kernel.insns.count; i++)
		if (m->kernel.insns.items[i].kind == SIM_LABEL && once_in(vm, one_in))
			m->kernel.insns.items[i].jumps ^= true;
}

static void interrupt(struct sim_vm *vm)
{
	put_event(vm, 1, 32);
	depart(vm);
	if (vm->options.label_flips && once_in(vm, vm->options.label_flips))
		flip_labels(vm, machine(vm), 8);
	enter_handler(vm);
	arrive(vm, BY_FAR, false);
}

static void vm_exit(struct sim_vm *vm)
{
	if (vm->options.event_trace && vm->pt.enabled)
		sim_pt_packet(&vm->pt,
			      &(struct pt_packet){ .kind = PT_EVD, .count = 2, .payload = 12 });
	put_event(vm, 8, 0);
	depart(vm);
	vm->current = 0;
	machine(vm)->insn = machine(vm)->kernel.vmexit;
	update_state(vm);
	sim_pt_pip(&vm->pt);
	arrive(vm, BY_FAR, false);
}

static bool can_interrupt(struct sim_vm *vm)
{
	return machine(vm)->interrupts < NESTED_MAX && !vm->tx_nesting;
}

/* An event injected at VM entry: delivered as if at the guest's IP, or as the entry's target. */
static void vm_enter(struct sim_vm *vm)
{
	bool injected, at_once;

	put_event(vm, 7, 0);
	machine(vm)->insn++;
	vm->current = vm->loaded;
	update_state(vm);
	sim_pt_pip(&vm->pt);
	injected = vm->options.injection && can_interrupt(vm) && once_in(vm, 3);
	at_once = once_in(vm, 2);
	if (injected && at_once)
		enter_handler(vm);
	arrive(vm, BY_FAR, false);
	if (injected && !at_once)
		interrupt(vm);
}

static void load_vmcs(struct sim_vm *vm)
{
	if (vm->options.guests)
		vm->loaded = 1 + sim_random_below(&vm->random, vm->options.guests);
	update_state(vm);
	sim_pt_packet(&vm->pt,
		      &(struct pt_packet){ .kind = PT_VMCS, .payload = vm->pt.state.vmcs });
}

static void put_tsx(struct sim_vm *vm, uint64_t payload)
{
	if (!vm->pt.enabled)
		return;
	sim_pt_packet(&vm->pt, &(struct pt_packet){ .kind = PT_MODE_TSX, .payload = payload });
	sim_pt_fup(&vm->pt, insn_at(vm)->ip);
}

static void begin_transaction(struct sim_vm *vm)
{
	struct sim_machine *m = machine(vm);

	if (vm->tx_nesting++)
		return;
	vm->tx_fallback = insn_at(vm)->index;
	vm->tx_depth = m->stack[m->in_user].count;
	put_tsx(vm, 1);
}

static void abort_transaction(struct sim_vm *vm)
{
	struct sim_machine *m = machine(vm);

	vm->tx_nesting = 0;
	put_tsx(vm, 2);
	m->stack[m->in_user].count = vm->tx_depth;
	m->insn = vm->tx_fallback;
	arrive(vm, BY_FAR, false);
}

static void write_value(struct sim_vm *vm)
{
	bool with_ip = once_in(vm, 2);

	if (!vm->pt.enabled)
		return;
	sim_pt_packet(&vm->pt,
		      &(struct pt_packet){
			      .kind = PT_PTW, .count = 8, .flag = with_ip, .payload = vm->pt.tsc });
	if (with_ip)
		sim_pt_fup(&vm->pt, insn_at(vm)->ip);
}

static bool decide(struct sim_vm *vm, const struct sim_insn *insn)
{
	struct sim_machine *m = machine(vm);
	size_t depth = m->stack[m->in_user].count;

	if (insn->guard) {
		if (depth >= DEEP)
			m->unwinding = true;
		else if (depth <= SHALLOW)
			m->unwinding = false;
		return m->unwinding || once_in(vm, 8);
	}
	if (insn->index <= m->insn)
		return !once_in(vm, 3);
	return once_in(vm, 2);
}

static void do_cond(struct sim_vm *vm, const struct sim_insn *insn)
{
	bool taken = decide(vm, insn);

	machine(vm)->insn = taken ? insn->index : machine(vm)->insn + 1;
	arrive(vm, BY_COND, taken);
}

static void do_call(struct sim_vm *vm, const struct sim_insn *insn)
{
	struct sim_machine *m = machine(vm);
	uint64_t back = insn->ip + insn->size;
	size_t target = insn->index;

	push_frame(m, m->in_user, (struct sim_frame){ m->insn + 1, false, m->in_user });
	if (insn->kind == SIM_CALL_INDIRECT) {
		unsigned function = sim_code_function(code(vm), m->insn);
		unsigned first = function < SIM_FIRST_LEAF ? SIM_FIRST_LEAF : function + 1;

		target = code(vm)->functions[first +
					     sim_random_below(&vm->random, SIM_FUNCTIONS - first)];
	}
	m->insn = target;
	if (insn_at(vm)->ip != back)
		sim_pt_call(&vm->pt, back);
	arrive(vm, insn->kind == SIM_CALL_INDIRECT ? BY_INDIRECT : BY_DIRECT, false);
}

/* Forward more often than not, so that functions end. */
static void do_jmp_indirect(struct sim_vm *vm)
{
	const struct sim_code *c = code(vm);
	struct sim_machine *m = machine(vm);
	unsigned function = sim_code_function(c, m->insn);
	size_t first = c->functions[function], end = c->functions[function + 1];
	size_t target;

	if (!once_in(vm, 4))
		first = m->insn + 1;
	do
		target = first + sim_random_below(&vm->random, (unsigned)(end - first));
	while (!c->insns.items[target].leader);
	m->insn = target;
	arrive(vm, BY_INDIRECT, false);
}

static void do_return(struct sim_vm *vm, bool from_interrupt)
{
	struct sim_machine *m = machine(vm);
	struct sim_frame frame = m->stack[m->in_user].items[--m->stack[m->in_user].count];

	if (frame.interrupt != from_interrupt)
		abort(); /* a program that returns wrongly is a mistake of sim_code */
	m->insn = frame.insn;
	m->interrupts -= from_interrupt;
	m->in_user = frame.user;
	arrive(vm, from_interrupt ? BY_FAR : BY_RET, false);
}

static void do_syscall(struct sim_vm *vm)
{
	struct sim_machine *m = machine(vm);

	m->user_insn = m->insn + 1;
	m->in_user = false;
	m->insn = m->kernel.functions[SIM_ENTRY];
	arrive(vm, BY_FAR, false);
}

static void do_sysret(struct sim_vm *vm)
{
	struct sim_machine *m = machine(vm);

	m->in_user = true;
	m->insn = m->user_insn;
	arrive(vm, BY_FAR, false);
}

static void do_mov_cr3(struct sim_vm *vm)
{
	machine(vm)->cr3 = (sim_random_next(&vm->random) & 0xffffff) << 12;
	machine(vm)->insn++;
	update_state(vm);
	sim_pt_pip(&vm->pt);
}

static void do_int3(struct sim_vm *vm)
{
	machine(vm)->insn++;
	enter_handler(vm);
	arrive(vm, BY_FAR, false);
}

static void do_vmresume(struct sim_vm *vm)
{
	if (vm->options.failed_entries && once_in(vm, 8))
		machine(vm)->insn++;
	else
		vm_enter(vm);
}

/* The instruction retires, and control goes on. */
static void execute(struct sim_vm *vm)
{
	const struct sim_insn *insn = insn_at(vm);
	struct sim_machine *m = machine(vm);

	if (insn->kind == SIM_XBEGIN)
		begin_transaction(vm);
	if (insn->kind == SIM_XEND && !--vm->tx_nesting)
		put_tsx(vm, 0);
	if (insn->kind == SIM_PTWRITE)
		write_value(vm);
	append_truth(vm);
	switch (insn->kind) {
	case SIM_COND: do_cond(vm, insn); return;
	case SIM_JMP:
		m->insn = insn->index;
		arrive(vm, BY_DIRECT, false);
		return;
	case SIM_LABEL:
		m->insn = insn->jumps ? insn->index : m->insn + 1;
		arrive(vm, BY_DIRECT, false);
		return;
	case SIM_CALL:
	case SIM_CALL_INDIRECT: do_call(vm, insn); return;
	case SIM_JMP_INDIRECT: do_jmp_indirect(vm); return;
	case SIM_RET: do_return(vm, false); return;
	case SIM_IRET: do_return(vm, true); return;
	case SIM_INT3: do_int3(vm); return;
	case SIM_SYSCALL: do_syscall(vm); return;
	case SIM_SYSRET: do_sysret(vm); return;
	case SIM_MOV_CR3: do_mov_cr3(vm); return;
	case SIM_VMRESUME: do_vmresume(vm); return;
	case SIM_VMPTRLD: load_vmcs(vm); break;
	case SIM_POP: m->stack[m->in_user].count--; break;
	default: break;
	}
	m->insn++;
}

/* Instructions that abort a transaction. */
static bool aborts(enum sim_kind kind)
{
	return kind == SIM_INT3 || kind == SIM_MOV_CR3 || kind == SIM_EXITING ||
	       kind == SIM_SYSCALL;
}

/* What may happen instead of the next instruction; true if it did. */
static bool event(struct sim_vm *vm)
{
	enum sim_kind kind = insn_at(vm)->kind;

	if (vm->tx_nesting) {
		if (!aborts(kind) && !once_in(vm, 16))
			return false;
		abort_transaction(vm);
		return true;
	}
	if (vm->current && kind == SIM_EXITING) {
		vm_exit(vm); /* the host emulates it, or halts */
		vm->machines[vm->loaded].insn++;
		sim_pt_tick(&vm->pt, once_in(vm, 4) ? 20000 : 100);
		return true;
	}
	if (vm->current && once_in(vm, 150)) {
		vm_exit(vm);
		return true;
	}
	if (can_interrupt(vm) && (kind == SIM_INT3 ? !machine(vm)->in_user : once_in(vm, 200))) {
		if (kind == SIM_INT3)
			return false;
		interrupt(vm);
		return true;
	}
	return false;
}

/* Begin or end a loss of packets. What was traced but not told yet becomes unsure. */
static void overflow(struct sim_vm *vm, size_t step)
{
	if (!vm->pt.losing && once_in(vm, 1500)) {
		vm->loss_until = step + 1 + sim_random_below(&vm->random, 300);
		for (size_t i = vm->pt.witnessed; i < vm->truth.count; i++)
			vm->truth.items[i].known = SIM_UNSURE;
		sim_pt_lose(&vm->pt);
	} else if (vm->pt.losing && step >= vm->loss_until) {
		sim_pt_recover(&vm->pt);
	}
}

static void make_programs(struct sim_vm *vm)
{
	const struct sim_options *o = &vm->options;

	for (unsigned i = 0; i <= o->guests; i++) {
		struct sim_machine *m = &vm->machines[i];
		bool has_user = o->user && kernel_bits[i] == 64;
		struct sim_code_options options = {
			.seed = sim_random_next(&vm->random),
			.base = kernel_bases[i],
			.bits = kernel_bits[i],
			.has_user = has_user,
			.host = !i,
			.runs_guests = !i && o->guests,
			.tsx = o->tsx,
			.ptwrite = o->ptwrite,
			.labels = o->labels && kernel_bits[i] == 64,
		};

		sim_code_make(&options, &m->kernel);
		options.seed++;
		options.base = user_base;
		options.user = true;
		options.has_user = options.runs_guests = options.labels = false;
		if (has_user)
			sim_code_make(&options, &m->user);
		if (o->label_start)
			flip_labels(vm, m, o->label_start);
		m->cr3 = (uint64_t)(i + 1) << 20;
		m->vmcs = i ? 0x1000 + i : 0xffffffffff;
	}
}

/* Tracing ends as at an interrupt that is not traced: a FUP tells where. */
static void stop(struct sim_vm *vm)
{
	update_state(vm);
	if (vm->pt.losing)
		sim_pt_recover(&vm->pt);
	if (vm->pt.enabled) {
		sim_pt_fup(&vm->pt, vm->pt.state.ip);
		sim_pt_branch(&vm->pt, PT_TIP_PGD, 0, true);
	}
}

void sim_vm_run(const struct sim_options *options, struct sim_vm *ret)
{
	*ret = (struct sim_vm){ .options = *options,
				.random = { options->seed },
				.loaded = options->guests ? 1 : 0 };
	make_programs(ret);
	sim_pt_init(&ret->pt, &options->pt, sim_random_next(&ret->random),
		    (uint64_t)5000000000 + options->seed % 100000);
	update_state(ret);
	sim_pt_boundary(&ret->pt);
	arrive(ret, BY_FAR, false);
	for (size_t step = 0; step < options->instructions; step++) {
		if (options->tsc_change && step == options->tsc_change)
			ret->options.tsc_offset[0] = options->tsc_changed;
		sim_pt_tick(&ret->pt, 1 + sim_random_below(&ret->random, 4));
		update_state(ret);
		if (options->overflow)
			overflow(ret, step);
		sim_pt_boundary(&ret->pt);
		if (!event(ret))
			execute(ret);
	}
	stop(ret);
}

struct sim_options sim_options_plain(uint64_t seed)
{
	return (struct sim_options){
		.seed = seed,
		.instructions = 20000,
		.guests = 1,
		.tsc_offset = { (uint64_t)-3000000000, 1000000, (uint64_t)-7 },
		.pt = { .psb_bytes = 2048,
			.compress_returns = true,
			.tsc = true,
			.mtc = true,
			.cyc = true,
			.mtc_shift = 3,
			.ctc_n = 80,
			.ctc_d = 1 },
	};
}

struct sim_options sim_options_any(uint64_t seed)
{
	struct sim_random random = { ~seed };
	struct sim_options options = sim_options_plain(seed);
	uint64_t bits = sim_random_next(&random);

	options.guests = sim_random_below(&random, SIM_GUESTS + 1);
	options.user = bits & 1;
	options.kernel_only = bits & 2;
	options.range_filter = (bits & 0xc) == 0;
	options.injection = bits & 0x10;
	options.event_trace = bits & 0x20;
	options.tsx = bits & 0x40 && !options.range_filter;
	options.ptwrite = bits & 0x80;
	options.pt.long_tnt = bits & 0x100;
	options.pt.compress_returns = bits & 0x200;
	options.pt.defer_tips = bits & 0x400;
	options.pt.mtc = bits & 0x800;
	options.pt.cyc = bits & 0x1000;
	options.pt.tsc = options.pt.mtc || bits & 0x2000;
	options.pt.noise = bits & 0x4000;
	options.pt.cyc_threshold = bits & 0x8000 ? 16 : 0;
	options.pt.psb_bytes = 256u << sim_random_below(&random, 4);
	options.pt.mtc_shift = (uint8_t)sim_random_below(&random, 10);
	options.pt.ctc_d = bits & 0x10000 ? 2 : 1;
	options.pt.ctc_n = bits & 0x10000 ? 167 : 80;
	return options;
}

unsigned sim_vm_machine(const struct sim_vm *vm, uint64_t vmcs)
{
	for (unsigned i = 1; i <= vm->options.guests; i++)
		if (vm->machines[i].vmcs == vmcs)
			return i;
	return 0;
}

void sim_vm_free(struct sim_vm *vm)
{
	for (unsigned i = 0; i <= SIM_GUESTS; i++) {
		sim_code_free(&vm->machines[i].kernel);
		sim_code_free(&vm->machines[i].user);
		vec_free(&vm->machines[i].stack[0]);
		vec_free(&vm->machines[i].stack[1]);
	}
	vec_free(&vm->truth);
	sim_pt_free(&vm->pt);
}
