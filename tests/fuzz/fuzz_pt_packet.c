/* Any bytes as packets, one after the other: each has a size that makes progress and fits. */
#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/pt/pt_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum pt_block_context block = PT_NO_BLOCK;
	struct pt_last_ip last = { 0 };
	struct pt_packet packet;
	size_t at = 0;

	while (at < size) {
		int r = pt_packet_read(data + at, size - at, block, &packet);

		if (r == -PTVM_END)
			break;
		if (r) {
			at++;
			continue;
		}
		if (!packet.size || packet.size > size - at || packet.kind >= PT_PACKET_KINDS)
			abort();
		if (packet.kind >= PT_TIP && packet.kind <= PT_FUP)
			(void)pt_ip_update(&last, packet.count, packet.payload);
		block = pt_block_after(block, &packet);
		at += packet.size;
	}
	(void)pt_psb_find(data, data + size);
	return 0;
}
