#include "tests/sim_vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>
#include <cmocka.h>

/* Checks the simulator with a walker that shares no code with encoder or decoder: it knows how long
 * packets are, and counts them. */

enum { SEEDS = 40 };

struct counts {
	size_t psb, psbend, fup, tip, pge, pgd, ovf, pip, tnt_bits, bytes;
};

static unsigned ip_size(uint8_t byte)
{
	static const int8_t sizes[8] = { 1, 3, 5, 7, 7, -1, 9, -1 };

	assert_true(sizes[byte >> 5] > 0);
	return (unsigned)sizes[byte >> 5];
}

static unsigned tnt_bits(uint64_t value)
{
	unsigned bits = 0;

	for (; value > 1; value >>= 1)
		bits++;
	return bits;
}

static unsigned extended(const uint8_t *p, struct counts *c, unsigned *block)
{
	uint64_t bits = 0;

	switch (p[1]) {
	case 0x82: c->psb++; return 16;
	case 0x23: c->psbend++; return 2;
	case 0xf3: c->ovf++; return 2;
	case 0x43: c->pip++; return 8;
	case 0xa3:
		memcpy(&bits, p + 2, 6);
		c->tnt_bits += tnt_bits(bits);
		return 8;
	case 0x63: *block = p[2] & 0x80 ? 5 : 9; return 3;
	case 0x33:
	case 0xb3: *block = 0; return 2;
	case 0x62:
	case 0xe2: return 2;
	case 0x03:
	case 0x13: return 4;
	case 0x73: assert_int_equal(p[4], 0); return 7;
	case 0xa2:
	case 0xc8: return 7;
	case 0x32:
	case 0xb2: return 10;
	case 0x53:
	case 0xc3: return 11;
	default: fail_msg("02 %02x was not to be emitted", p[1]); return 0;
	}
}

static unsigned packet(const uint8_t *p, struct counts *c, unsigned *block)
{
	unsigned size = 1;

	if (*block && (*p & 7) == 4)
		return *block;
	if (*p == 2)
		return extended(p, c, block);
	if (!(*p & 1)) {
		c->tnt_bits += tnt_bits(*p >> 1);
		return 1;
	}
	if ((*p & 3) == 3) {
		for (bool more = *p & 4; more; size++)
			more = p[size] & 1;
		return size;
	}
	switch (*p) {
	case 0x19: return 8;
	case 0x59:
	case 0x99: return 2;
	default: break;
	}
	switch (*p & 0x1f) {
	case 0x0d: c->tip++; break;
	case 0x11: c->pge++; break;
	case 0x01: c->pgd++; break;
	case 0x1d: c->fup++; break;
	default: fail_msg("%02x was not to be emitted", *p);
	}
	return ip_size(*p);
}

static struct counts walk(const struct pt_bytes *trace)
{
	struct counts counts = { 0 };
	unsigned block = 0;
	size_t at = 0;

	while (at < trace->size)
		at += packet(trace->data + at, &counts, &block);
	assert_int_equal(at, trace->size);
	return counts;
}

static void every_stream_parses_to_its_end(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct counts counts;
		struct sim_vm vm;

		options.overflow = seed & 1;
		sim_vm_run(&options, &vm);
		counts = walk(&vm.pt.out);
		assert_int_equal(counts.psb, vm.pt.psbs.count);
		assert_int_equal(counts.psbend, counts.psb);
		if (!options.overflow) {
			assert_int_equal(counts.ovf, 0);
			assert_int_equal(counts.pge, counts.pgd);
		}
		sim_vm_free(&vm);
	}
}

static const struct sim_insn *find(const struct sim_code *code, uint64_t ip)
{
	for (size_t i = 0; i < code->insns.count; i++)
		if (code->insns.items[i].ip == ip)
			return &code->insns.items[i];
	return NULL;
}

/* Whether a retired instruction has a TNT bit or a TIP. */
static bool has_packet(const struct sim_vm *vm, size_t i)
{
	const struct sim_truth *truth = &vm->truth.items[i];
	const struct sim_machine *machine = &vm->machines[truth->machine];
	const struct sim_insn *insn =
		find(truth->user ? &machine->user : &machine->kernel, truth->ip);

	assert_non_null(insn);
	switch (insn->kind) {
	case SIM_COND:
	case SIM_RET:
	case SIM_JMP_INDIRECT:
	case SIM_CALL_INDIRECT:
	case SIM_INT3:
	case SIM_IRET:
	case SIM_SYSCALL:
	case SIM_SYSRET: return true;
	case SIM_VMRESUME: /* unless it failed, which goes on in the host */
		return i + 1 < vm->truth.count &&
		       (truth[1].machine ||
			truth[1].ip == machine->kernel.insns.items[machine->kernel.vmexit].ip);
	default: return false;
	}
}

/* Without filter and loss each FUP outside PSB+ but the last has its TIP, and all other branches
 * have one TNT bit or TIP each. */
static void packets_and_truth_agree_in_number(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		struct sim_options options = sim_options_plain(seed);
		size_t branches = 0;
		struct counts counts;
		struct sim_vm vm;

		options.instructions = 5000;
		options.user = seed & 1;
		options.guests = seed % (SIM_GUESTS + 1);
		options.pt.long_tnt = seed & 2;
		options.pt.defer_tips = seed & 4;
		sim_vm_run(&options, &vm);
		counts = walk(&vm.pt.out);
		for (size_t i = 0; i < vm.truth.count; i++)
			branches += has_packet(&vm, i);
		assert_int_equal(counts.pge, 1);
		assert_int_equal(counts.pgd, 1);
		assert_int_equal(counts.tnt_bits + counts.tip,
				 branches + counts.fup - (counts.psb - 1) - 1);
		sim_vm_free(&vm);
	}
}

static void the_same_seed_gives_the_same_trace(void **state)
{
	struct sim_options options = sim_options_any(7);
	struct sim_vm a, b;

	sim_vm_run(&options, &a);
	sim_vm_run(&options, &b);
	assert_int_equal(a.pt.out.size, b.pt.out.size);
	assert_memory_equal(a.pt.out.data, b.pt.out.data, a.pt.out.size);
	assert_int_equal(a.truth.count, b.truth.count);
	sim_vm_free(&a);
	sim_vm_free(&b);
}

static void time_never_runs_backwards(void **state)
{
	struct sim_options options = sim_options_any(3);
	struct sim_vm vm;

	sim_vm_run(&options, &vm);
	for (size_t i = 1; i < vm.truth.count; i++)
		assert_true(vm.truth.items[i].tsc > vm.truth.items[i - 1].tsc);
	sim_vm_free(&vm);
}

/* How a packet travels must not change what runs: property tests compare such runs. */
static void trace_options_do_not_change_the_truth(void **state)
{
	struct sim_options options = sim_options_plain(11);
	struct sim_vm a, b;

	options.user = true;
	options.guests = SIM_GUESTS;
	sim_vm_run(&options, &a);
	options.pt.compress_returns = false;
	options.pt.defer_tips = options.pt.long_tnt = true;
	sim_vm_run(&options, &b);
	assert_int_equal(a.truth.count, b.truth.count);
	for (size_t i = 0; i < a.truth.count; i++)
		assert_int_equal(a.truth.items[i].ip, b.truth.items[i].ip);
	assert_true(a.pt.out.size < b.pt.out.size);
	sim_vm_free(&a);
	sim_vm_free(&b);
}

static void check_lengths(const struct sim_code *code)
{
	ZydisDecoder decoder;
	ZydisMachineMode mode = code->bits == 64   ? ZYDIS_MACHINE_MODE_LONG_64
				: code->bits == 32 ? ZYDIS_MACHINE_MODE_LEGACY_32
						   : ZYDIS_MACHINE_MODE_LEGACY_16;
	ZydisStackWidth width = code->bits == 64   ? ZYDIS_STACK_WIDTH_64
				: code->bits == 32 ? ZYDIS_STACK_WIDTH_32
						   : ZYDIS_STACK_WIDTH_16;

	(void)ZydisDecoderInit(&decoder, mode, width);
	for (size_t i = 0; i < code->insns.count; i++) {
		const struct sim_insn *insn = &code->insns.items[i];
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction decoded;
		ZyanU64 target;

		assert_true(ZYAN_SUCCESS(
			ZydisDecoderDecodeFull(&decoder, code->bytes + (insn->ip - code->base),
					       insn->size, &decoded, operands)));
		assert_int_equal(decoded.length, insn->size);
		if (insn->kind != SIM_COND && insn->kind != SIM_JMP && insn->kind != SIM_CALL)
			continue;
		assert_true(ZYAN_SUCCESS(
			ZydisCalcAbsoluteAddress(&decoded, operands, insn->ip, &target)));
		assert_int_equal(target, insn->target);
	}
}

static void code_is_what_a_disassembler_sees(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_options options = sim_options_any(seed);
		struct sim_vm vm;

		options.instructions = 1;
		sim_vm_run(&options, &vm);
		for (unsigned i = 0; i <= options.guests; i++) {
			check_lengths(&vm.machines[i].kernel);
			check_lengths(&vm.machines[i].user);
		}
		sim_vm_free(&vm);
	}
}

static void an_overflow_loses_and_says_so(void **state)
{
	struct sim_options options = sim_options_plain(5);
	size_t seen[3] = { 0 };
	struct sim_vm vm;

	options.overflow = true;
	sim_vm_run(&options, &vm);
	for (size_t i = 0; i < vm.truth.count; i++)
		seen[vm.truth.items[i].known]++;
	assert_true(walk(&vm.pt.out).ovf > 0);
	assert_true(seen[SIM_LOST] > 0);
	assert_true(seen[SIM_KNOWN] > seen[SIM_LOST] + seen[SIM_UNSURE]);
	sim_vm_free(&vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stream_parses_to_its_end),
		cmocka_unit_test(packets_and_truth_agree_in_number),
		cmocka_unit_test(the_same_seed_gives_the_same_trace),
		cmocka_unit_test(time_never_runs_backwards),
		cmocka_unit_test(trace_options_do_not_change_the_truth),
		cmocka_unit_test(code_is_what_a_disassembler_sees),
		cmocka_unit_test(an_overflow_loses_and_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
