/* The host or one guest: what code it had in memory when, and what that code is called. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"
#include "decode/code/image.h"
#include "decode/code/later_code.h"
#include "decode/code/symbols.h"

struct machine;

/** Bytes of code, and when they were there. */
struct code_view {
	const uint8_t *data;
	size_t left;       /* readable from data; > 0 */
	uint64_t from, to; /* ns of perf's clock: the bytes, and the symbol that the address is in,
			    * hold in [from, to); 0 and UINT64_MAX when they never change in this
			    * recording */
};

/** What an address is called. */
struct symbol_view {
	const char *name; /* NULL unknown */
	uint64_t offset;  /* of the address in it */
	const char *dso;  /* as perf prints it between parentheses; NULL unknown */
};

/** Make an empty machine, for code given by hand (--elf, --raw). NULL when memory is out. */
struct machine *machine_new(int32_t pid, bool is_guest);

/** Release everything; accepts NULL. */
void machine_free(struct machine *machine);

/**
 * Add an ELF file's segments and symbols at their addresses plus `base`, for every process and the
 * kernel alike (as ptxed's --elf). Symbols are read when they are first asked for.
 * Returns 0, -PTVM_SYSTEM, -PTVM_BAD_INPUT or -PTVM_NO_MEMORY.
 */
int machine_add_elf(struct machine *machine, const char *path, uint64_t base,
		    struct ptvm_error *error);

/** Add `[from, to)` of a flat file at `address` (as ptxed's --raw); to 0 means to its end. Returns
 * as machine_add_elf(). */
int machine_add_raw(struct machine *machine, const char *path, uint64_t from, uint64_t to,
		    uint64_t address, struct ptvm_error *error);

/**
 * Code at `address` of process `pid` (ignored for kernel addresses, bit 63 set) at `time_ns`.
 * Returns 0, or -PTVM_NO_CODE, where ret->from and ret->to say from when to when that is so.
 */
int machine_code(struct machine *machine, int32_t pid, uint64_t address, uint64_t time_ns,
		 struct code_view *ret);

/** Name of `address` as perf prints it; never fails. `ret`'s strings live as long as machines. */
void machine_symbol(struct machine *machine, int32_t pid, uint64_t address, uint64_t time_ns,
		    struct symbol_view *ret);

/** The offset in its file of what is mapped at `address` of process `pid`; the address itself in
 * the kernel, and where no file is mapped. */
uint64_t machine_file_address(const struct machine *machine, int32_t pid, uint64_t address,
			      uint64_t time_ns);

/** Where the kernel's handler of INT3 begins; 0 if unknown. */
uint64_t machine_int3_handler(struct machine *machine);

/** Where the kernel switches to another process (__switch_to); 0 if unknown, and for code given by
 * hand, which is the same in all processes. */
uint64_t machine_switch_to(struct machine *machine);

/** The kernel address of a symbol, 0 if unknown. Linear. */
uint64_t machine_symbol_address(struct machine *machine, const char *name);

/** Whether there is a later copy of the kernel's memory whose code differs anywhere. */
bool machine_has_later_code(const struct machine *machine);

/**
 * The bytes at `address` in a later copy of the kernel's memory, if some of the first `size` differ
 * from what machine_code() gives at `time_ns`, and no record says when they changed. No bytes
 * otherwise. They live as long as the machine.
 */
struct bytes machine_later_code(const struct machine *machine, uint64_t address, size_t size,
				uint64_t time_ns);

/** The ranges in which the code of a kernel was replaced by what a later copy has, by address.
 * Their `since` is for the caller to find out and set; see machine_replaced_settle(). */
struct later_range *machine_replaced(struct machine *machine, size_t *ret_count);

/** The range of machine_replaced() that an address is in; NULL: none. */
struct later_range *machine_replaced_at(struct machine *machine, uint64_t address);

/**
 * Set a function that finds out when code was replaced (machine_replaced()), so that this is only
 * done if it matters.
 *
 * @settle  called with `context` each time that somebody asks for code or symbols in such a range;
 *          in any thread, which waits for it. NULL: there is nothing more to find out
 */
void machine_replaced_settle(struct machine *machine, void (*settle)(void *context), void *context);

/** Use the code of one copy in all these ranges, whatever the time is; or, with LATER_SINCE, by
 * their time. */
void machine_replaced_assume(struct machine *machine, enum later_version version);

/** The module that a kernel's address belongs to, as "[kvm]"; NULL: none that is known. */
const char *machine_module(struct machine *machine, uint64_t address, uint64_t time_ns);

/** Where the symbol begins that a module's address belongs to. Returns false, and sets nothing,
 * where it is of no module that is known. */
bool machine_module_start(struct machine *machine, uint64_t address, uint64_t time_ns,
			  uint64_t *ret);

struct label_table;

/** The kernel's own table of jump labels; NULL where it is not among what is known of its memory.
 */
const struct label_table *machine_labels(struct machine *machine);

struct caller_table;

/** Where functions of the kernel are called in its code; NULL where that is not known. */
const struct caller_table *machine_callers(struct machine *machine);

struct probe_table;

/** Which functions tracepoints of the kernel may call; NULL where its symbols tell of none. */
const struct probe_table *machine_probes(struct machine *machine);

struct tracepoint_table;

struct ftrace_table;

/** Where in the kernel's code ftrace is told that functions begin; NULL where that is not known. */
const struct ftrace_table *machine_ftrace(struct machine *machine);

/** Where in the kernel's code its tracepoints are; NULL where none are known. */
const struct tracepoint_table *machine_tracepoints(struct machine *machine);
