#include "tests/fake_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int fake_read(void *context, uint64_t address, void *data, size_t size,
		     struct ptvm_error *error)
{
	const struct fake_memory *memory = context;

	if (memory->fails)
		return ptvm_fail(error, PTVM_SYSTEM, "no memory any more");
	if (address > memory->size || size > memory->size - address)
		return -PTVM_NOT_FOUND;
	memcpy(data, memory->data + address, size);
	return 0;
}

void fake_memory_init(struct fake_memory *memory, size_t size, bool is_5_level)
{
	*memory = (struct fake_memory){ .data = calloc(1, size), .size = size };
	assert_non_null(memory->data);
	memory->used = 2 * FAKE_MEMORY_PAGE; /* nothing is at 0, and bit 12 of CR3 is clear */
	memory->reader = (struct guest_memory){ fake_read, memory };
	memory->root = (struct page_root){ fake_memory_take(memory, FAKE_MEMORY_PAGE), is_5_level };
}

void fake_memory_deinit(struct fake_memory *memory)
{
	free(memory->data);
}

uint64_t fake_memory_take(struct fake_memory *memory, size_t size)
{
	uint64_t address = memory->used;

	size = (size + FAKE_MEMORY_PAGE - 1) & ~(size_t)(FAKE_MEMORY_PAGE - 1);
	assert_true(size <= memory->size - memory->used);
	memory->used += size;
	return address;
}

uint64_t *fake_memory_entry(struct fake_memory *memory, uint64_t address, unsigned level)
{
	uint64_t table = memory->root.cr3, *entry = NULL;

	for (unsigned at = memory->root.is_5_level ? 5 : 4; at >= level; at--) {
		entry = (uint64_t *)(memory->data + table) + (address >> (3 + 9 * at)) % 512;
		if (at > level && !*entry)
			*entry = fake_memory_take(memory, FAKE_MEMORY_PAGE) | 1 | FAKE_MEMORY_USER;
		table = *entry & 0x000ffffffffff000;
	}
	return entry;
}

void fake_memory_map(struct fake_memory *memory, uint64_t address, uint64_t physical, size_t size,
		     uint64_t rights)
{
	for (size_t at = 0; at < size; at += FAKE_MEMORY_PAGE)
		*fake_memory_entry(memory, address + at, 1) = (physical + at) | rights | 1;
}

uint8_t *fake_memory_put(struct fake_memory *memory, uint64_t address, const void *data,
			 size_t size, uint64_t rights)
{
	uint64_t physical = fake_memory_take(memory, size);

	fake_memory_map(memory, address, physical, size, rights);
	return memcpy(memory->data + physical, data, size);
}
