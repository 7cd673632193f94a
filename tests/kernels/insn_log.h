/* What a kernel executed, instruction by instruction, as an emulator saw it: written by insn_log.c,
 * read by kernel_recording.c. PREFIX.insns-0 has all instructions that were ever translated,
 * and PREFIX.steps-N the steps of vCPU N: numbers of instructions, in the order in which they
 * began. */
#pragma once

#include <stdint.h>

/** An instruction as it was when it was translated: the same address may have several. */
struct log_insn {
	uint64_t ip;
	uint8_t size, bytes[15];
};

/** Steps that are no numbers of instructions (those count from 1). */
enum {
	LOG_USER = 0, /* code of user space, any amount */
	LOG_TIME =
		UINT32_MAX /* the next two steps are the ns since the beginning, low half first */
};

/** A guest's `nopl LOG_MARK + n(%rax)` in user space is for the emulator: */
enum log_mark {
	LOG_MARK = 0x50540000,
	LOG_OFF = 0,
	LOG_ON = 1,  /* steps are logged from here on */
	LOG_WAIT = 2 /* and more: stop until PREFIX.go-n is there, when PREFIX.at-n is */
};
