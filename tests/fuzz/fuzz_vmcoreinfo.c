#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "guest/direct_map.h"
#include "guest/vmcoreinfo.h"
#include "tests/fake_linux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes as a page of the guest that pretends to be VMCOREINFO, and the kernel that it leads to.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[VMCOREINFO_BYTES + 1] = "", value[64];
	struct direct_map map;
	struct vmcoreinfo info;
	struct fake_linux guest;

	if (size > VMCOREINFO_BYTES)
		size = VMCOREINFO_BYTES;
	memcpy(text, data, size);
	(void)vmcoreinfo_begins(text);
	(void)vmcoreinfo_value(text, "KERNELOFFSET", value, sizeof(value));
	if (!vmcoreinfo_read(text, &info))
		return 0;
	fake_linux_init(&guest, info.root.is_5_level);
	(void)direct_map_read(&guest.memory.reader, &info, &map, NULL);
	fake_linux_deinit(&guest);
	return 0;
}
