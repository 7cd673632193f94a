/* Packets as text, in the words of perf's dump. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "decode/base/text.h"
#include "decode/pt/aux_pages.h"
#include "decode/pt/pt_packet.h"

/** Append name and payload of a packet. */
void pt_packet_text(struct text *text, const struct pt_packet *packet);

/**
 * Print the packets of a buffer, a line each with offset and bytes. Bytes that are no packet have a
 * line each with "Bad packet!". The first line's offset is `from`. Pages of what was printed are
 * given back by `trail`.
 */
void pt_dump(const uint8_t *data, uint64_t size, uint64_t from, struct page_trail *trail,
	     FILE *out);
