/* Flow items -> lines of text, for one queue. What depends on time and thread is written anew when
 * it changes; the rest of a line is prepared text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/text.h"
#include "decode/code/machine.h"
#include "decode/flow/pt_flow.h"
#include "decode/print/call_stack.h"
#include "decode/print/chunk.h"
#include "decode/print/insn_period.h"
#include "decode/print/ipc.h"
#include "decode/print/print_config.h"

enum { BRANCH_LEADS = 16 }; /* of which a printer keeps the text */

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

/** The part of a branch's line before its address, which only its flags decide; see branch_text.h.
 */
struct branch_lead {
	uint32_t flags; /* 0: unused */
	struct text text;
};

struct printer {
	const struct print_config *config;
	const struct aux_queue *queue;
	struct flow_code where;

	/* what of `config` each item asks for */
	bool has_branches;    /* branches are followed: for their lines, or those of others */
	bool has_plain_insns; /* all instructions have lines, as they are prepared; only they do */
	bool has_plain_branches; /* all branches have lines, as they are prepared; only they do */

	/* where the flow is */
	struct pt_context context;
	struct pt_context branch_context; /* at the start of an unfinished branch */
	bool has_context;                 /* it was told, not made up */
	bool is_off;           /* tracing ended; cycles until it begins again are nobody's */
	bool is_aborting;      /* a transaction, by the branch to come */
	uint64_t tsc, told_ns; /* the time that the last packet told, */
	uint64_t time_ns;      /* and that of what is printed: behind it, or the same */
	uint64_t ip;
	struct code_space *space;
	struct call_stacks calls;
	struct ipc ipc;
	struct insn_period period;

	/* what is told of lines to come */
	struct waiting_branch waiting;
	struct branch_line line;
	bool has_ip_due; /* that of `ip`, an instruction without a block: the branch to come is by
			    it */
	struct {
		enum gap_kind kind;
		uint64_t position;
	} gap;                  /* of FLOW_GAP; its FLOW_AT is to come */
	struct flow_item event; /* a FLOW_EVENT; its FLOW_VALUE is to come */
	struct text event_data; /* words for the event to come */

	/* what lines begin with */
	struct printed_thread thread;
	struct line_prefix prefix;

	/* samples of the queue whose origin is wanted */
	const struct sample_list *samples; /* NULL: of none */
	size_t next_sample;                /* of the list */
	uint64_t sample_ns;                /* its time; UINT64_MAX: there is none */

	/* the lines */
	struct text out;
	struct print_runs runs;
	uint64_t run_ns;   /* the time of the last run, which has not ended */
	uint64_t lines;    /* how many */
	uint64_t skip;     /* events still to be left out (--itrace=s) */
	bool has_left_out; /* some that the options do not want */
	uint64_t gaps[GAP_KINDS];
	unsigned indent_width; /* columns that indented symbols take now */
	struct branch_lead leads[BRANCH_LEADS];
};

/** Begin to print a queue's items. Everything named must outlive the printer. */
void printer_init(struct printer *printer, const struct print_config *config,
		  const struct aux_queue *queue, const struct flow_code *where);

/** Release everything. */
void printer_free(struct printer *printer);

/** Append the lines of a batch to `out` and `runs`; all lines are then complete. */
void printer_print(struct printer *printer, const struct flow_batch *batch);
