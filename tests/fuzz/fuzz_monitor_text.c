#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/page_walk.h"
#include "host/vm/monitor_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes as output of QEMU's monitor, for each of its readers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct monitor_range ranges[4];
	struct page_root roots[4];
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	(void)monitor_text_roots(text, roots, 4);
	(void)monitor_text_ram(text, ranges, 4);
	(void)monitor_text_address(text);
	free(text);
	return 0;
}
