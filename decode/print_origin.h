/* How a line's instruction was come to: the calls that led there, the last branches. Not for others
 * than the printer's files. */
#pragma once

#include "decode/printer.h"

/** Append what lines of events other than branches begin with. */
void print_add_event_prefix(struct printer *printer);

/**
 * Append those that the fields and --itrace want of " ip" and its name, or one of each call that
 * led there, on lines of their own; and the last branches.
 */
void print_add_origin(struct printer *printer, const struct code_space *space, uint64_t ip);

/** Take note of a branch of the present thread; `flags` are its enum sample_flag. */
void print_origin_branch(struct printer *printer, const struct branch_entry *branch,
			 uint32_t flags);

/** Leave what led to the queue's samples up to a time, which is the next, for their lines. */
void print_origin_of_samples(struct printer *printer, uint64_t until_ns);

/** What comes next does not follow on what was before. */
void print_origin_lost(struct printer *printer);
