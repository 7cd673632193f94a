/* Modules of a kernel that are not what was copied any more: they were unloaded, and others came to
 * where they were, of which there is no copy. Packets tell it where a branch leads into the middle
 * of an instruction, or of a function if what follows disagrees. Then all queues are asked since
 * when (code_visits.h), and from there on a flow has no code for such a module: better a gap than
 * instructions that never ran. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/flow_mark.h"

/** A module of which there is no later copy. */
struct replaced_module {
	const struct machine *machine;
	const char *name;  /* as machine_module() has it */
	uint64_t since_ns; /* from then on it is not to be believed; UINT64_MAX: it is */
};

struct replaced_module_list {
	struct replaced_module *items; /* by machine and name */
	size_t count, room;
};

/** Before, at or behind another one, by machine and name: < 0, 0, > 0. */
int replaced_module_compare(const struct replaced_module *a, const struct replaced_module *b);

/** What all queues say of modules; they are asked when it is first needed. */
struct module_doubts {
	const struct trace_sources *sources;
	pthread_mutex_t lock;
	bool is_done;
	struct replaced_module_list list;
};

/** Begin; `sources` is borrowed. */
void module_doubts_init(struct module_doubts *doubts, const struct trace_sources *sources);

/** Free everything; accepts zeroes. */
void module_doubts_free(struct module_doubts *doubts);

/** flow->block begins inside of an instruction: its module may have been replaced. */
void replaced_module_note_astray(struct pt_flow *flow);

/** Packets and code disagree in flow->block: may its module have been replaced? */
void replaced_module_note(struct pt_flow *flow);

/**
 * What was noted is asked: if the module was replaced, go back to the mark and do not believe it
 * any more. Returns false, and does nothing, otherwise.
 */
bool replaced_module_apply(struct flow_run *run, const struct flow_mark *mark);

/** Whether the code of a block is not to be believed now. */
bool replaced_module_has(const struct pt_flow *flow, const struct block *block);
