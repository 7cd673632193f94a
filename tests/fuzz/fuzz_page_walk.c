#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "decode/base/bytes.h"
#include "guest/guest_memory.h"
#include "guest/kernel_image.h"
#include "guest/page_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_memory(void *context, uint64_t address, void *data, size_t size,
		       struct ptvm_error *error)
{
	const struct bytes *memory = context;

	if (address > memory->size || size > memory->size - address)
		return -PTVM_NOT_FOUND;
	memcpy(data, memory->data + address, size);
	return 0;
}

/* Any bytes as a guest's memory, with the top table in the second page; the first byte gives the
 * number of levels. Small mappings are read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes memory = { data, size };
	const struct guest_memory reader = { read_memory, &memory };
	struct page_root root = { PAGE_WALK_BYTES, size && data[0] & 1 };
	static struct page_walk walk;
	struct page_run run;
	uint8_t part[3 * PAGE_WALK_BYTES];
	uint64_t at = kernel_image_first;

	page_walk_init(&walk, &reader, root);
	for (unsigned i = 0; i < 64 && page_walk_next(&walk, at, kernel_image_last, &run, NULL) > 0;
	     i++) {
		at = run.address + run.size;
		(void)page_walk_read(&walk, run.address - 1, part, sizeof(part), NULL);
	}
	return 0;
}
