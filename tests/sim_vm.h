/* A simulated host with guests that knows the truth: it runs made-up programs at random, writes the
 * trace that hardware would write, and the list of instructions that a decoder must find in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim_code.h"
#include "tests/sim_pt.h"

enum { SIM_GUESTS = 3 }; /* of 64, 32 and 16 bits */

struct sim_options {
	uint64_t seed;
	uint32_t instructions; /* to run, traced or not */
	unsigned guests;       /* 0 to SIM_GUESTS */
	bool user;             /* host and 64-bit guest have user programs */
	bool kernel_only;      /* trace no user code (CPL filter) */
	bool range_filter;     /* trace only what lies near the kernels' base */
	bool overflow;         /* packets are lost now and then */
	bool injection;        /* VM entries may inject an event */
	bool failed_entries;   /* VM entries may fail: vmresume falls through */
	bool event_trace;      /* CFE and EVD packets */
	bool tsx, ptwrite;
	bool labels;          /* the kernels of 64 bits have jump labels */
	unsigned label_start; /* one in so many is changed before the trace begins; 0 none */
	unsigned label_flips; /* one in so many interrupts changes some; 0 none */
	uint64_t tsc_offset[SIM_GUESTS];
	uint64_t tsc_ratio;   /* of all guests, with 48 fraction bits; 0 is 1 */
	size_t tsc_change;    /* after so many steps the first guest's offset changes, 0 never, */
	uint64_t tsc_changed; /* to this */
	struct sim_pt_options pt;
};

enum sim_knowledge {
	SIM_KNOWN,  /* the packets tell: a decoder must find it */
	SIM_UNSURE, /* packets that would tell were lost: a decoder may find it by what came before
		     */
	SIM_LOST,   /* inside an overflow: nothing is known */
};

/** An instruction that retired while it was traced. */
struct sim_truth {
	uint64_t ip, tsc; /* host ticks when it retired */
	uint8_t machine;  /* 0 host, 1 to SIM_GUESTS */
	bool user;
	enum sim_knowledge known;
};

/** A point of the stack: where a return goes. */
struct sim_frame {
	size_t insn;
	bool interrupt, user; /* pushed by an interrupt; which came from user code */
};

struct sim_machine {
	struct sim_code kernel, user;
	struct {
		struct sim_frame *items;
		size_t count, room;
	} stack[2]; /* of the kernel and of user code */
	size_t insn, user_insn;
	bool in_user, unwinding;
	unsigned interrupts; /* handlers on the stack */
	uint64_t cr3, vmcs;
};

struct sim_vm {
	struct sim_options options;
	struct sim_random random;
	struct sim_machine machines[1 + SIM_GUESTS];
	unsigned current; /* whose code runs */
	unsigned loaded;  /* whose VMCS is loaded */
	struct sim_pt pt; /* pt.out is the trace, pt.psbs where it can be entered */
	struct {
		struct sim_truth *items;
		size_t count, room;
	} truth;
	size_t tx_fallback, tx_depth;
	unsigned tx_nesting;
	size_t loss_until; /* steps */
};

/** Options with everything simple: all packets on, one guest, no filter, nothing lost. */
struct sim_options sim_options_plain(uint64_t seed);

/** Options that `seed` chooses: any combination of features, nothing lost. */
struct sim_options sim_options_any(uint64_t seed);

/** Run; release with sim_vm_free(). Aborts when memory is out. */
void sim_vm_run(const struct sim_options *options, struct sim_vm *ret);

/** The machine whose VMCS this is (packet payload); 0 if none. */
unsigned sim_vm_machine(const struct sim_vm *vm, uint64_t vmcs);

/** Release everything. */
void sim_vm_free(struct sim_vm *vm);
