/* What led to the instruction of a line: its call chain and the last branches. Internal to the
 * printer. */
#pragma once

#include "decode/print/printer.h"

/** Settle for which samples of the queue the origin is wanted. */
void print_origin_init(struct printer *printer);

/** Append the prefix of lines of events other than branches. */
void print_add_event_prefix(struct printer *printer);

/**
 * Append what the fields and --itrace want: " ip" and its name, or the call chain, a line for each
 * call; and the last branches.
 */
void print_add_origin(struct printer *printer, const struct code_space *space, uint64_t ip);

/** Remember a branch of the present thread; `flags` are its enum sample_flag. */
void print_origin_branch(struct printer *printer, const struct branch_entry *branch,
			 uint32_t flags);

/** Leave what led to the queue's samples up to a time, which is the next, for their lines. */
void print_origin_of_samples(struct printer *printer, uint64_t until_ns);

/** The flow was lost: forget the calls and branches so far. */
void print_origin_lost(struct printer *printer);
