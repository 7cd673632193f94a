/* Reads the packets of a queue one by one, across the ends of spans, and a PSB+ group at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/pt_clock.h"
#include "decode/pt/pt_packet.h"
#include "decode/pt/pt_stream.h"

struct pt_cursor {
	const struct aux_queue *queue;
	const struct pt_config *config;
	const uint8_t *p; /* the next packet, in the window */
	enum pt_block_context block;
	struct pt_last_ip last_ip; /* kept by pt_cursor_ip() */
	bool cyc_hides_ovf;        /* erratum SKD007: */
	const uint8_t *hidden;     /* none does before this, in the window; NULL not known */
	struct pt_window window;
};

/** Begin at a position of the stream. `queue` and `config` must outlive the cursor. */
void pt_cursor_init(struct pt_cursor *cursor, const struct aux_queue *queue,
		    const struct pt_config *config, uint64_t position);

/** Where the next packet begins in the stream. */
static inline uint64_t pt_cursor_position(const struct pt_cursor *cursor)
{
	return cursor->window.position + (uint64_t)(cursor->p - cursor->window.data);
}

/** The bytes of a cursor were copied: what points into its window, if that is stitched, points into
 * the copy's own. */
void pt_cursor_settle_copy(struct pt_cursor *copy, const struct pt_cursor *from);

/** Go to another position. */
void pt_cursor_seek(struct pt_cursor *cursor, uint64_t position);

/**
 * Read the next packet that is not a PAD and step over it.
 *
 * Returns 0; -PTVM_END at the end of the queue (also in a packet that the end cuts short);
 * -PTVM_INCONSISTENT where data was lost: the cursor stands behind the loss; or -PTVM_BAD_PACKET:
 * the cursor stands at the bad byte.
 */
int pt_cursor_next(struct pt_cursor *cursor, struct pt_packet *ret);

/**
 * After -PTVM_BAD_PACKET: go on to the PSB from which packets can be read again; or to where data
 * was lost before that, which pt_cursor_next() then tells.
 */
void pt_cursor_resync(struct pt_cursor *cursor);

/** The next CYC in the window that may hide an OVF, or its limit; with `cyc_hides_ovf` only. */
const uint8_t *pt_cursor_hidden_ovf(struct pt_cursor *cursor);

/** Up to where those who read packets of the window without pt_cursor_next() may do so. */
static inline const uint8_t *pt_cursor_limit(struct pt_cursor *cursor)
{
	return cursor->cyc_hides_ovf ? pt_cursor_hidden_ovf(cursor) : cursor->window.limit;
}

/** The IP of an IP packet that was just read, decompressed by the last IP, which it becomes. */
static inline uint64_t pt_cursor_ip(struct pt_cursor *cursor, const struct pt_packet *packet)
{
	return pt_ip_update(&cursor->last_ip, packet->count, packet->payload);
}

/** What a PSB+ group states. It reports the state of the processor; nothing of it happens now. */
struct pt_psb_state {
	uint64_t position;     /* of the PSB in the stream */
	uint64_t tsc_position; /* of the TSC packet */
	bool have_tsc, have_pip, have_vmcs, have_exec, have_tsx, have_ip, have_cbr;
	bool nr, in_tx;
	uint8_t exec; /* payload of MODE.Exec */
	uint8_t cbr;
	uint64_t cr3, vmcs, ip;
	struct pt_tsc_group tsc; /* but for `guest` and `vmcs`, which the caller knows */
};

/**
 * Read a PSB+ group; the PSB itself has just been read.
 *
 * `have_ip` is false where packets are disabled. With erratum BDM70 the group has a FUP all the
 * same; then a TIP.PGE follows it. Returns 0, or as pt_cursor_next(); also -PTVM_BAD_PACKET for a
 * packet that may not be in a group.
 */
int pt_cursor_psb(struct pt_cursor *cursor, struct pt_psb_state *ret);

/** After a TSC packet outside of PSB+: read its TMA into `group` if there is one. It is stepped
 * over if it comes right behind the TSC. */
void pt_cursor_tma(struct pt_cursor *cursor, struct pt_tsc_group *group);
