#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "guest/code_ranges.h"
#include "guest/kcore_copy.h"
#include "guest/kcore_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes as the headers of a guest's kcore, up to the plan of what to copy. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_range everything = { 0, 0xfffffffffffff000 };
	const struct code_ranges ranges = { &everything, 1, 1, 0xffffffff81000000 };
	struct kcore_copy copy = { .file = -1 };
	struct kcore_head head;

	if (size > KCORE_HEAD_BYTES)
		size = KCORE_HEAD_BYTES;
	if (!kcore_head_read((struct bytes){ data, size }, &head, NULL))
		(void)kcore_copy_plan(&head, &ranges, &copy, NULL);
	kcore_head_free(&head);
	kcore_copy_free(&copy);
	return 0;
}
