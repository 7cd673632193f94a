#include <stddef.h>
#include <stdint.h>

#include "correlate/offset_recorded.h"
#include "decode/base/vec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct time_conv conv = { .valid = true, .mult = 3, .shift = 2 };
	struct offsets_recorded recorded = { 0 };
	struct vmcs_offsets guest = { .vmcs = 1, .first_host = 1 };

	if (!offsets_recorded_parse((struct bytes){ data, size }, &recorded, NULL))
		for (size_t i = 0; i < recorded.entries.count; i++)
			(void)offsets_recorded_use(&recorded, recorded.entries.items[i].tid, i % 4,
						   &conv, 64, &guest);
	if (guest.segments.count)
		(void)tsc_offsets_host(&guest, 12345, 0, false);
	vec_free(&guest.segments);
	offsets_recorded_free(&recorded);
	return 0;
}
