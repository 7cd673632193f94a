/* One Intel PT packet -> bytes: the opposite of decode/pt/pt_packet.h, written from the SDM's
 * tables on its own, so that encoding and decoding check each other. For tests only: aborts without
 * memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/pt_packet.h"

/** Trace bytes that grow; zero-initialise before use, free with pt_bytes_free(). */
struct pt_bytes {
	uint8_t *data;
	size_t size, room;
	uint64_t last_ip; /* against which pt_put_ip() compresses; zero at a PSB */
};

/** What pt_put_ip() takes for `ipbytes` to choose the shortest form. */
enum { PT_IP_AUTO = -1 };

/** Append any bytes. */
void pt_put_bytes(struct pt_bytes *out, const void *data, size_t size);

/**
 * Append `packet`, whose fields mean what pt_packet_read() gives. Its size is looked at only where
 * there is a choice: a TNT of 6 or fewer branches becomes a long one when it is 8, a BIP has an
 * item of 8 bytes when it is 9. IP packets are written as they are and do not change last_ip.
 */
void pt_put(struct pt_bytes *out, const struct pt_packet *packet);

/** Append a packet that has no payload, or `payload` alone. */
void pt_put_value(struct pt_bytes *out, enum pt_packet_kind kind, uint64_t payload);

/** Append TIP, TIP.PGE, TIP.PGD or FUP with `ip`, and remember it as the last IP. `ipbytes` 0 to 7
 * forces a form that must be able to express it (0: suppressed). */
void pt_put_ip(struct pt_bytes *out, enum pt_packet_kind kind, uint64_t ip, int ipbytes);

/** Append a PSB; the last IP is zero after it. */
void pt_put_psb(struct pt_bytes *out);

/** Append a TMA. */
void pt_put_tma(struct pt_bytes *out, uint16_t ctc, uint16_t fast);

/** What a PSB+ says of time, and of whose it is. */
struct pt_psb_plus {
	bool nr, no_tma;
	uint64_t vmcs, tsc;
	uint16_t ctc, fast; /* of the TMA */
};

/** Append a PSB+ with TSC, TMA, PIP and VMCS. */
void pt_put_psb_plus(struct pt_bytes *out, const struct pt_psb_plus *group);

/** Append a CYC of exactly `size` bytes, more than it needs if so. */
void pt_put_cyc_padded(struct pt_bytes *out, uint64_t cycles, unsigned size);

/** Release the bytes. */
void pt_bytes_free(struct pt_bytes *out);
