#include "tests/sim_pt.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/vec.h"

static bool once_in(struct sim_pt *pt, unsigned n)
{
	return sim_random_once_in(&pt->random, n);
}

static uint64_t ctc_at(const struct sim_pt *pt, uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * pt->options.ctc_d / pt->options.ctc_n);
}

void sim_pt_init(struct sim_pt *pt, const struct sim_pt_options *options, uint64_t seed,
		 uint64_t tsc)
{
	*pt = (struct sim_pt){
		.options = *options,
		.random = { seed },
		.tsc = tsc,
		.tsc_at_start = tsc,
		.cbr = SIM_PT_P1,
		.mode_bits = 64,
		.state = { .bits = 64 },
	};
	pt->mtc_count = ctc_at(pt, tsc) >> options->mtc_shift;
}

/* Cycles go before packets that stand for something that happened. */
static void put_cyc(struct sim_pt *pt)
{
	uint64_t cycles = pt->cycles - pt->cycles_sent;

	if (!pt->options.cyc || cycles < pt->options.cyc_threshold || (!cycles && !once_in(pt, 8)))
		return;
	pt_put_value(&pt->out, PT_CYC, cycles);
	pt->cycles_sent = pt->cycles;
}

static void put_tnt(struct sim_pt *pt)
{
	struct pt_packet packet = { .kind = PT_TNT, .payload = pt->tnt };

	if (!pt->tnt_count)
		return;
	packet.count = (uint16_t)pt->tnt_count;
	packet.size = pt->options.long_tnt && once_in(pt, 4) ? 8 : 1;
	put_cyc(pt);
	pt_put(&pt->out, &packet);
	pt->tnt = pt->tnt_count = 0;
}

/* A TNT, then the TIPs of indirect branches that lie between its branches or after them. */
static void flush(struct sim_pt *pt)
{
	if (!pt->tnt_count && !pt->deferred_count)
		return;
	put_tnt(pt);
	for (unsigned i = 0; i < pt->deferred_count; i++) {
		put_cyc(pt);
		pt_put_ip(&pt->out, PT_TIP, pt->deferred[i], PT_IP_AUTO);
	}
	pt->deferred_count = 0;
	pt->witnessed = pt->tnt_retired;
}

static void put_tnt_bit(struct sim_pt *pt, bool bit)
{
	if (pt->losing || !pt->enabled)
		return;
	pt->tnt = pt->tnt << 1 | bit;
	pt->tnt_count++;
	pt->tnt_retired = pt->retired;
	if (pt->tnt_count == (pt->options.long_tnt ? 47 : 6))
		flush(pt);
}

void sim_pt_cond(struct sim_pt *pt, bool taken)
{
	put_tnt_bit(pt, taken);
}

void sim_pt_call(struct sim_pt *pt, uint64_t back)
{
	if (!pt->enabled)
		return;
	if (pt->return_count == SIM_PT_RETURNS) /* the oldest is forgotten */
		memmove(pt->returns, pt->returns + 1, --pt->return_count * sizeof(*pt->returns));
	pt->returns[pt->return_count++] = back;
}

void sim_pt_ret(struct sim_pt *pt, uint64_t target)
{
	bool match = pt->return_count && pt->returns[--pt->return_count] == target;

	if (match && pt->options.compress_returns)
		put_tnt_bit(pt, true);
	else
		sim_pt_branch(pt, PT_TIP, target, false);
}

void sim_pt_indirect(struct sim_pt *pt, uint64_t target)
{
	bool defer = pt->options.defer_tips && pt->deferred_count < SIM_PT_DEFERRED;

	if (pt->losing || !defer || once_in(pt, 2)) {
		sim_pt_branch(pt, PT_TIP, target, false);
		return;
	}
	pt->deferred[pt->deferred_count++] = target;
	pt->tnt_retired = pt->retired;
}

static uint64_t exec_mode(uint8_t bits)
{
	return bits == 64 ? 1 : bits == 32 ? 2 : 0;
}

void sim_pt_branch(struct sim_pt *pt, enum pt_packet_kind kind, uint64_t target, bool suppressed)
{
	bool mode = pt->mode_bits != pt->state.bits && kind != PT_TIP_PGD;

	if (kind != PT_TIP)
		pt->enabled = kind == PT_TIP_PGE;
	if (pt->losing)
		return;
	flush(pt);
	if (mode) {
		put_cyc(pt);
		pt_put_value(&pt->out, PT_MODE_EXEC, exec_mode(pt->state.bits));
		pt->mode_bits = pt->state.bits;
	}
	put_cyc(pt);
	pt_put_ip(&pt->out, kind, target, suppressed ? 0 : PT_IP_AUTO);
	pt->witnessed = pt->retired;
}

void sim_pt_fup(struct sim_pt *pt, uint64_t ip)
{
	if (pt->losing)
		return;
	flush(pt);
	pt_put_ip(&pt->out, PT_FUP, ip, PT_IP_AUTO);
	pt->witnessed = pt->retired;
}

void sim_pt_packet(struct sim_pt *pt, const struct pt_packet *packet)
{
	if (pt->losing)
		return;
	flush(pt);
	put_cyc(pt);
	pt_put(&pt->out, packet);
}

void sim_pt_pip(struct sim_pt *pt)
{
	sim_pt_packet(pt, &(struct pt_packet){
				  .kind = PT_PIP, .flag = pt->state.nr, .payload = pt->state.cr3 });
}

static void put_mtc(struct sim_pt *pt)
{
	if (!pt->options.mtc || pt->losing)
		return;
	if (once_in(pt, 2)) /* branches may wait for their TNT across an MTC */
		flush(pt);
	put_cyc(pt);
	pt_put_value(&pt->out, PT_MTC, pt->mtc_count & 0xff);
}

static void advance(struct sim_pt *pt, uint64_t ticks)
{
	pt->tsc += ticks;
	pt->cycle_parts += ticks * pt->cbr;
	pt->cycles += pt->cycle_parts / SIM_PT_P1;
	pt->cycle_parts %= SIM_PT_P1;
	while (pt->mtc_count < ctc_at(pt, pt->tsc) >> pt->options.mtc_shift) {
		pt->mtc_count++;
		put_mtc(pt);
	}
}

/* In small steps, so that cycles and MTCs of a long sleep go together. */
void sim_pt_tick(struct sim_pt *pt, uint64_t ticks)
{
	enum { STEP = 16 };

	for (; ticks > STEP; ticks -= STEP)
		advance(pt, STEP);
	advance(pt, ticks);
}

static uint64_t shown_tsc(const struct sim_pt *pt)
{
	uint64_t ratio = pt->state.tsc_ratio ? pt->state.tsc_ratio : (uint64_t)1 << 48;

	return (uint64_t)(((unsigned __int128)pt->tsc * ratio) >> 48) + pt->state.tsc_offset;
}

static void put_time(struct sim_pt *pt)
{
	uint64_t ctc = ctc_at(pt, pt->tsc);
	uint64_t edge =
		(uint64_t)(((unsigned __int128)ctc * pt->options.ctc_n + pt->options.ctc_d - 1) /
			   pt->options.ctc_d);

	if (!pt->options.tsc)
		return;
	pt_put_value(&pt->out, PT_TSC, shown_tsc(pt) << 8 >> 8);
	if (pt->options.mtc)
		pt_put(&pt->out, &(struct pt_packet){ .kind = PT_TMA,
						      .payload = ctc & 0xffff,
						      .count = (uint16_t)(pt->tsc - edge) });
}

/* The group that lets a decoder start here; the order of its packets is the processor's affair. */
static void put_psb_plus(struct sim_pt *pt)
{
	bool time_first = once_in(pt, 2);
	struct sim_psb psb = { pt->out.size, pt->retired, pt->enabled, pt->state.nr };

	if (!vec_push(&pt->psbs, psb))
		abort();
	pt_put_psb(&pt->out);
	if (time_first)
		put_time(pt);
	pt_put_value(&pt->out, PT_CBR, pt->cbr);
	pt_put(&pt->out, &(struct pt_packet){
				 .kind = PT_PIP, .flag = pt->state.nr, .payload = pt->state.cr3 });
	pt_put_value(&pt->out, PT_VMCS, pt->state.vmcs);
	if (!time_first)
		put_time(pt);
	if (pt->enabled) {
		pt_put_value(&pt->out, PT_MODE_TSX, pt->state.in_tx);
		pt_put_value(&pt->out, PT_MODE_EXEC, exec_mode(pt->state.bits));
		pt_put_ip(&pt->out, PT_FUP, pt->state.ip, PT_IP_AUTO);
		pt->mode_bits = pt->state.bits;
	} else {
		pt->mode_bits = 0; /* who starts here must be told at TIP.PGE */
	}
	pt_put_value(&pt->out, PT_PSBEND, 0);
	pt->return_count = 0;
	pt->witnessed = pt->retired;
	pt->last_psb = pt->out.size;
}

static void put_block(struct sim_pt *pt)
{
	bool with_ip = pt->enabled && once_in(pt, 2);
	uint16_t item = once_in(pt, 2) ? 4 : 8;

	sim_pt_packet(pt, &(struct pt_packet){ .kind = PT_BBP, .payload = 4, .count = item });
	for (uint16_t id = 0; id < 3; id++)
		pt_put(&pt->out, &(struct pt_packet){ .kind = PT_BIP,
						      .size = item == 8 ? 9 : 5,
						      .payload = 0x82028202,
						      .count = id });
	pt_put(&pt->out, &(struct pt_packet){ .kind = PT_BEP, .flag = with_ip });
	if (with_ip)
		sim_pt_fup(pt, pt->state.ip);
}

static void put_noise(struct sim_pt *pt)
{
	switch (sim_random_below(&pt->random, 7)) {
	case 0: pt_put_value(&pt->out, PT_PAD, 0); break;
	case 1:
		pt->cbr = (uint8_t)(SIM_PT_P1 / 2 + sim_random_below(&pt->random, SIM_PT_P1));
		sim_pt_packet(pt, &(struct pt_packet){ .kind = PT_CBR, .payload = pt->cbr });
		break;
	case 2: put_block(pt); break;
	case 3: sim_pt_packet(pt, &(struct pt_packet){ .kind = PT_MNT, .payload = pt->tsc }); break;
	case 4: sim_pt_packet(pt, &(struct pt_packet){ .kind = PT_PWRX, .payload = 0x111 }); break;
	case 5: sim_pt_packet(pt, &(struct pt_packet){ .kind = PT_EXSTOP }); break;
	default:
		if (!pt->enabled)
			break;
		sim_pt_packet(pt, &(struct pt_packet){ .kind = PT_EXSTOP, .flag = true });
		sim_pt_fup(pt, pt->state.ip);
	}
}

void sim_pt_boundary(struct sim_pt *pt)
{
	if (pt->losing)
		return;
	if (pt->options.noise && once_in(pt, 64))
		put_noise(pt);
	if (!pt->psbs.count || pt->out.size - pt->last_psb >= pt->options.psb_bytes) {
		flush(pt);
		put_psb_plus(pt);
	}
}

void sim_pt_lose(struct sim_pt *pt)
{
	pt->losing = true;
	pt->tnt = pt->tnt_count = pt->deferred_count = 0;
	pt->at_loss = pt->state;
	pt->at_loss.bits = pt->mode_bits;
}

/* A decoder must not read on with a stale context: where it changed, a PSB+ tells the new one. */
static bool state_changed(const struct sim_pt *pt)
{
	const struct sim_pt_state *then = &pt->at_loss, *now = &pt->state;

	return then->nr != now->nr || then->cr3 != now->cr3 || then->vmcs != now->vmcs ||
	       then->bits != now->bits || then->in_tx != now->in_tx;
}

void sim_pt_recover(struct sim_pt *pt)
{
	pt->losing = false;
	pt->return_count = 0;
	put_cyc(pt);
	pt_put_value(&pt->out, PT_OVF, 0);
	pt->out.last_ip = 0;
	if (state_changed(pt) || once_in(pt, 4)) {
		put_psb_plus(pt);
		return;
	}
	if (once_in(pt, 2))
		put_time(pt);
	if (pt->enabled) {
		pt_put_ip(&pt->out, PT_FUP, pt->state.ip, 6);
		pt->witnessed = pt->retired;
	}
}

void sim_pt_free(struct sim_pt *pt)
{
	pt_bytes_free(&pt->out);
	vec_free(&pt->psbs);
}
