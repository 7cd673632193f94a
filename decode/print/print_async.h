/* Branches that no instruction of a block makes: interrupts, and where tracing begins and ends.
 * Internal to the printer. */
#pragma once

#include "decode/print/printer.h"

/** FLOW_IP: an instruction that no block is known of. If it is said to branch, its line waits for
 * that. */
void print_async_insn(struct printer *printer, const struct flow_item *item);

/** FLOW_ASYNC: an interrupt, a VM exit or the abort of a transaction leads to `ip`. */
void print_async_branch(struct printer *printer, uint64_t ip);

/** FLOW_BEGIN: tracing begins. */
void print_async_begin(struct printer *printer, const struct flow_item *item);

/** FLOW_END: tracing ends with the last instruction that ran, which leads to `ip`, 0 unknown. */
void print_async_end_by_insn(struct printer *printer, uint64_t ip);

/** FLOW_END_ASYNC: tracing ends with what leads to `ip` behind that instruction, 0 unknown. */
void print_async_end(struct printer *printer, uint64_t ip);
