#include "decode/code/x86_insn.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>

#include "decode/base/error.h"
#include "decode/code/x86_common.h"

static int init_decoder(ZydisDecoder *decoder, unsigned bits)
{
	ZydisMachineMode mode = ZYDIS_MACHINE_MODE_LONG_64;
	ZydisStackWidth width = ZYDIS_STACK_WIDTH_64;

	if (bits == 32) {
		mode = ZYDIS_MACHINE_MODE_LEGACY_32;
		width = ZYDIS_STACK_WIDTH_32;
	} else if (bits == 16) {
		mode = ZYDIS_MACHINE_MODE_LEGACY_16;
		width = ZYDIS_STACK_WIDTH_16;
	}
	return ZYAN_SUCCESS(ZydisDecoderInit(decoder, mode, width)) ? 0 : -PTVM_BAD_INPUT;
}

static enum insn_class classify(const ZydisDecodedInstruction *insn)
{
	bool direct = insn->raw.imm[0].is_relative;
	bool far = insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		if (far)
			return INSN_FAR_CALL;
		return direct ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_JMP:
		if (far)
			return INSN_FAR_JMP;
		return direct ? INSN_JMP : INSN_JMP_INDIRECT;
	case ZYDIS_MNEMONIC_RET: return far ? INSN_FAR_RET : INSN_RET;
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_RSM: return INSN_FAR_RET;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO: return INSN_INT;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ: return INSN_IRET;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER: return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT: return INSN_SYSRET;
	case ZYDIS_MNEMONIC_VMLAUNCH:
	case ZYDIS_MNEMONIC_VMRESUME: return INSN_VMENTRY;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2: return INSN_UD;
	/* named a branch by the disassembler, but the flow goes on behind it */
	case ZYDIS_MNEMONIC_XBEGIN: return INSN_PLAIN;
	default: break;
	}
	if (insn->meta.category == ZYDIS_CATEGORY_COND_BR && direct)
		return INSN_JCC;
	return INSN_PLAIN;
}

/* mov cr3 (0f 22 /3) and wrmsr (0f 30): tracing can end right behind them. */
static bool may_stop_trace(const ZydisDecodedInstruction *insn)
{
	if (insn->opcode_map != ZYDIS_OPCODE_MAP_0F)
		return false;
	return insn->opcode == 0x30 || (insn->opcode == 0x22 && insn->raw.modrm.reg == 3);
}

static uint64_t branch_target(const ZydisDecodedInstruction *insn, uint64_t ip, unsigned bits)
{
	uint64_t target = ip + insn->length + (uint64_t)insn->raw.imm[0].value.s;

	if (bits == 64)
		return target;
	return insn->operand_width == 16 ? target & 0xffff : target & 0xffffffff;
}

int insn_disassemble(const uint8_t *bytes, size_t size, uint64_t ip, unsigned bits,
		     struct insn *ret)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	ZyanStatus status;

	if (init_decoder(&decoder, bits))
		return -PTVM_BAD_INPUT;
	if (size > INSN_MAX_SIZE)
		size = INSN_MAX_SIZE;
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &insn);
	if (status == ZYDIS_STATUS_NO_MORE_DATA && size < INSN_MAX_SIZE)
		return -PTVM_END;
	if (!ZYAN_SUCCESS(status))
		return -PTVM_BAD_INPUT;
	*ret = (struct insn){ .ip = ip,
			      .bytes = bytes,
			      .length = insn.length,
			      .class = (uint8_t)classify(&insn),
			      .stops_trace = may_stop_trace(&insn) };
	if (ret->class == INSN_JMP || ret->class == INSN_CALL || ret->class == INSN_JCC)
		ret->target = branch_target(&insn, ip, bits);
	return 0;
}

int insn_read(const uint8_t *bytes, size_t size, uint64_t ip, unsigned bits, struct insn *ret)
{
	if (bits == 64 && x86_common_read(bytes, size, ip, ret))
		return 0;
	return insn_disassemble(bytes, size, ip, bits, ret);
}
