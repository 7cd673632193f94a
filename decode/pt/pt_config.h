/* How a trace was made: what a decoder must know beside its bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/time_conv.h"

/** Zero is a usable value: no time, no errata, return compression possible. */
struct pt_config {
	struct time_conv conv;
	bool tsc, mtc, cyc;    /* which timing packets were switched on */
	bool noretcomp;        /* every return has a TIP */
	bool no_branches;      /* packets tell of events only, and where they happened */
	bool no_tnt;           /* conditional branches have no packets */
	bool have_event_trace; /* the interrupt flag is known (D and t flags) */
	bool snapshot;         /* buffers or samples stand alone, and may repeat the former one */
	bool guest_tsc_raw;    /* take guest TSCs for the host's, */
	uint64_t only_vmcs;    /* and no others than those of this guest; 0: all */
	bool per_cpu;          /* one queue per CPU, otherwise one per thread */
	uint8_t have_sched_switch; /* 0 none, 1 sched_switch samples, 2 SWITCH, 3 SWITCH_CPU_WIDE */
	uint32_t cyc_least;        /* cycles before there is a CYC; 0: one with each packet */
	uint8_t mtc_shift;         /* an MTC every 2^mtc_shift crystal ticks */
	uint32_t ctc_n, ctc_d;     /* TSC ticks per crystal tick = n / d (CPUID 0x15 EBX / EAX) */
	uint32_t max_nonturbo;     /* P1 ratio, in 100 MHz; 0 unknown */
	uint64_t nominal_hz;       /* TSC frequency; 0 unknown */
	uint32_t cpu_family, cpu_model, cpu_stepping; /* 0 unknown; the key to errata */
	char filter[256]; /* of addresses, as far as it fits; "" none, "?" nobody knows */
};
