/* The trace hardware of a simulated processor: told what the processor does, it writes the packets
 * that Intel PT would (SDM vol. 3, "Intel Processor Trace"). Knows nothing of code or machines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/pt_encode.h"
#include "tests/sim_random.h"

enum { SIM_PT_RETURNS = 64, SIM_PT_DEFERRED = 16, SIM_PT_P1 = 20 };

struct sim_pt_options {
	uint32_t psb_bytes; /* a PSB+ after so many bytes */
	bool long_tnt, compress_returns, defer_tips;
	bool tsc, mtc, cyc;
	uint8_t mtc_shift;
	uint8_t cyc_threshold; /* cycles below which no CYC is sent */
	uint32_t ctc_n, ctc_d; /* TSC ticks per crystal tick = n / d */
	bool noise;            /* packets of no consequence: PAD, CBR, power, PEBS blocks */
};

/** What the processor is doing: what a PSB+ tells. The owner of the sim_pt keeps it current. */
struct sim_pt_state {
	uint64_t ip;         /* of the next instruction */
	uint64_t cr3, vmcs;  /* as in packets: CR3[51:5] in place, VMCS address >> 12 */
	uint64_t tsc_offset; /* guest TSC = host TSC * ratio + offset */
	uint64_t tsc_ratio;  /* with 48 fraction bits; 0 is 1 */
	bool nr, in_tx;
	uint8_t bits; /* 64, 32, 16 */
};

/** A PSB, and how many instructions of the truth come before it. */
struct sim_psb {
	uint64_t position;
	size_t retired;
	bool enabled, nr; /* a FUP is in it; where it was written */
};

struct sim_pt {
	struct sim_pt_options options;
	struct sim_pt_state state;
	struct sim_random random;
	struct pt_bytes out;
	struct {
		struct sim_psb *items;
		size_t count, room;
	} psbs;
	size_t retired;   /* instructions traced so far, counted by the owner */
	size_t witnessed; /* of which a decoder can know by the packets sent so far */
	bool enabled;     /* PacketEn */
	bool losing;      /* between the loss of a packet and OVF */
	uint64_t tsc, tsc_at_start;
	/* private */
	uint64_t tnt;
	unsigned tnt_count;
	size_t tnt_retired;
	uint64_t deferred[SIM_PT_DEFERRED];
	unsigned deferred_count;
	uint64_t returns[SIM_PT_RETURNS];
	unsigned return_count;
	uint64_t cycles, cycles_sent, cycle_parts, mtc_count, last_psb;
	uint8_t cbr, mode_bits;
	struct sim_pt_state at_loss;
};

/** Begin at host time `tsc`, tracing not yet enabled, nothing written. */
void sim_pt_init(struct sim_pt *pt, const struct sim_pt_options *options, uint64_t seed,
		 uint64_t tsc);

/** Time passes: `ticks` of the host's TSC; MTC packets appear. */
void sim_pt_tick(struct sim_pt *pt, uint64_t ticks);

/** Between two instructions: a PSB+ if it is due, sometimes noise. */
void sim_pt_boundary(struct sim_pt *pt);

/** A conditional branch retired. */
void sim_pt_cond(struct sim_pt *pt, bool taken);

/** A near call retired that returns to `back`; one to the next instruction is not given here. */
void sim_pt_call(struct sim_pt *pt, uint64_t back);

/** A near return went to `target`. */
void sim_pt_ret(struct sim_pt *pt, uint64_t target);

/** A near indirect call or jump went to `target`; its TIP may be deferred. */
void sim_pt_indirect(struct sim_pt *pt, uint64_t target);

/** TIP, TIP.PGE or TIP.PGD with `target`, after MODE.Exec where the width of code changed;
 * `suppressed` leaves the IP out. PGE and PGD enable and disable. */
void sim_pt_branch(struct sim_pt *pt, enum pt_packet_kind kind, uint64_t target, bool suppressed);

/** FUP with `ip`. */
void sim_pt_fup(struct sim_pt *pt, uint64_t ip);

/** Any other packet, after what is pending. */
void sim_pt_packet(struct sim_pt *pt, const struct pt_packet *packet);

/** PIP with the state's CR3 and NR. */
void sim_pt_pip(struct sim_pt *pt);

/** From now on packets are lost. */
void sim_pt_lose(struct sim_pt *pt);

/** No longer: OVF, then where tracing goes on (a FUP, or a PSB+ when the state changed). */
void sim_pt_recover(struct sim_pt *pt);

/** Release the bytes. */
void sim_pt_free(struct sim_pt *pt);
