/* Flow items -> lines of text, for one queue. What depends on time and thread is written anew when
 * it changes; the rest of a line is prepared text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/call_stack.h"
#include "decode/chunk.h"
#include "decode/insn_period.h"
#include "decode/ipc.h"
#include "decode/machine.h"
#include "decode/print_config.h"
#include "decode/pt_flow.h"
#include "decode/text.h"

enum { BRANCH_LEADS = 16 };

struct branch_end;
struct branch_parts;

/** One end of a branch. */
struct branch_place {
	uint64_t ip;                  /* 0: outside of the trace, or unknown */
	struct code_space *space;     /* where to look for its name; NULL nowhere */
	const struct branch_end *end; /* its prepared text, in `text`; NULL: there is none */
	const char *text;
};

/** A branch whose line is open: its target is to come. */
struct branch_line {
	bool open, wanted;
	bool guest;     /* side of the source */
	uint32_t flags; /* enum sample_flag */
	struct branch_place from;
	const struct branch_parts
		*parts;          /* in `from.text`; NULL: not by an instruction of a block */
	const struct insn *insn; /* NULL: not by an instruction */
	const struct code_space *insn_space;
	uint64_t to_ip;
	struct ipc_count ipc;
};

/** The last instruction that ran, if it is a branch: its lines wait for what comes next, its
 * target, or that tracing ends with it. */
struct waiting_branch {
	struct block *block; /* NULL: none waits */
	unsigned index;      /* of the instruction in the block */
	uint64_t period;     /* of its line as an instruction; 0: it has none */
	bool has_ipc;        /* its lines have IPC */
};

/** The thread that lines are of. */
struct printed_thread {
	int32_t pid, tid;
	uint64_t until_ns;      /* when another one has the CPU, */
	size_t next_switch;     /* by this entry of where.switches */
	const char *comm;       /* NULL: unknown */
	uint64_t comm_until_ns; /* when it takes another name */
};

/** What lines begin with, see print_prefix.h. */
struct line_prefix {
	struct text text;         /* thread and place, `place_size` bytes of it, then the time */
	size_t place_size;        /* how much of it does not depend on the time */
	uint64_t shown_time;      /* the time that it has, in the unit that is shown */
	size_t comm_at, comm_pad; /* where the name of the thread is, and the blanks before it */
	bool is_stale;            /* the time has changed since it was made, */
	bool is_place_stale;      /* or the thread or the context */
	bool is_wanted;           /* lines of this time and place are wanted at all, */
	bool is_place_wanted;     /* or would be at another time */
};

struct printer {
	const struct print_config *config;
	const struct aux_queue *queue;
	struct flow_code where;
	struct text out;
	struct print_runs runs;

	/* where the flow is */
	struct printed_thread thread;
	struct line_prefix prefix;
	struct pt_context context;
	struct pt_context branch_context; /* at the start of an unfinished branch */
	uint64_t tsc, told_ns;            /* as the last packet told, and */
	uint64_t time_ns, ip;             /* of what is printed */
	struct code_space *space;
	struct waiting_branch waiting;
	struct branch_line line;
	struct call_stacks calls;
	unsigned indent_width; /* columns that indented symbols take now */

	struct branch_lead {
		uint32_t flags; /* 0: unused */
		struct text text;
	} leads[BRANCH_LEADS]; /* branch_text.h */
	bool branches;         /* are followed: for their lines, or those of others */
	bool plain; /* all instructions have lines, just as they are prepared, and no branches */
	bool plain_branches; /* the other way round */

	struct ipc ipc;
	struct insn_period period;
	uint64_t run_ns;
	bool aborting;
	bool ip_due;  /* the branch to come is from an instruction without a block, as yet untold */
	bool off;     /* tracing ended; cycles until it begins again are nobody's */
	int gap_kind; /* of the FLOW_GAP whose FLOW_AT is to come */
	uint64_t gap_position;
	struct flow_item event;
	struct text event_data; /* words for the event to come */
	bool have_context;      /* the context was told, not made up */
	uint64_t gaps[GAP_KINDS];
	uint64_t skip;      /* events still to be left out (--itrace=s) */
	size_t next_record; /* that may be a sample whose origin is wanted */
	uint64_t record_ns; /* its time, or before it; UINT64_MAX: none is wanted */
	uint64_t lines;
	bool left_out; /* there were some that the options do not want */
};

/** Begin to print a queue's items. Everything named must outlive the printer. */
void printer_init(struct printer *printer, const struct print_config *config,
		  const struct aux_queue *queue, const struct flow_code *where);

/** Release everything. */
void printer_free(struct printer *printer);

/** Append the lines of a batch to `out` and `runs`; all lines are then complete. */
void printer_print(struct printer *printer, const struct flow_batch *batch);
