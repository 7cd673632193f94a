#include "tests/fake_modules.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guest/page_walk.h"

enum {
	PAGE = FAKE_MEMORY_PAGE,
	NOTE_AT = PAGE + 0x204, /* in the module's memory */
	STRUCT_AT = PAGE + 0x240,
	NAME_AT = 24,
	KOBJECT_AT = 0x90, /* points to the module, but is no part of its memory */
	KALLSYMS_AT = 0x100,
	PARTS_AT = 0x140,
	SYMBOLS_AT = 2 * PAGE,
	NAMES_AT = SYMBOLS_AT + 0x100,
	TYPES_AT = SYMBOLS_AT + 0x180,
};

static void put(uint8_t *to, uint64_t value, unsigned size)
{
	memcpy(to, &value, size);
}

static void put_part(uint8_t *part, uint64_t base, uint32_t size, uint64_t module,
		     enum fake_module_layout layout)
{
	/* where the size and the pointer to the module are */
	static const unsigned size_at[] = { 8, 8, 20, 12 }, module_at[] = { 24, 16, 24, 16 };

	put(part, base, 8);
	if (layout == FAKE_MODULE_5_2)
		memset(part + 12, 1, 12); /* sizes of what is read-only */
	if (layout == FAKE_MODULE_6_13)
		part[16] = 1; /* its memory is */
	if (layout == FAKE_MODULE_6_14)
		part[8] = 1;
	put(part + size_at[layout], size, 4);
	put(part + module_at[layout], module, 8);
}

static void put_parts(uint8_t *to, uint64_t address, enum fake_module_layout layout)
{
	static const unsigned bytes[] = { 80, 72, 80, 72 };
	unsigned count = layout == FAKE_MODULE_5_2 ? 2 : 7;

	/* All is in the first, or code is there and in the third what is read-only. */
	for (unsigned i = 0; i < count; i++)
		put_part(to + i * bytes[layout], i ? 0 : address,
			 i ? 0 : (count == 2 ? 3 : 1) * PAGE, address + STRUCT_AT, layout);
	if (count > 2)
		put_part(to + 2 * bytes[layout], address + PAGE, 2 * PAGE, address + STRUCT_AT,
			 layout);
}

/* A build id of which each byte is `id`. */
static void put_note(uint8_t *to, uint8_t id)
{
	memcpy(to, "\4\0\0\0\x14\0\0\0\3\0\0\0GNU", 16);
	memset(to + 16, id, 20);
}

static void put_symbols(uint8_t *module, uint64_t address)
{
	const Elf64_Sym symbols[] = { { 0 },
				      { .st_name = 1, .st_value = address },
				      { .st_name = 7, .st_value = address + 0x30 } };

	memcpy(module + SYMBOLS_AT - PAGE, symbols, sizeof(symbols));
	memcpy(module + NAMES_AT - PAGE, "\0start\0stop", 12);
	memcpy(module + TYPES_AT - PAGE, "?Tt", 3);
}

static void put_struct(uint8_t *module, uint64_t address, unsigned index,
		       enum fake_module_layout layout)
{
	uint64_t at = address + STRUCT_AT, kallsyms = at + KALLSYMS_AT + 8;

	(void)snprintf((char *)module + NAME_AT, 32, "module_%u", index);
	put(module + KOBJECT_AT, at, 8);
	put(module + KALLSYMS_AT, kallsyms, 8);
	put(module + KALLSYMS_AT + 8, address + SYMBOLS_AT, 8);
	put(module + KALLSYMS_AT + 16, 3, 4);
	put(module + KALLSYMS_AT + 24, address + NAMES_AT, 8);
	put(module + KALLSYMS_AT + 32, address + TYPES_AT, 8);
	put_parts(module + PARTS_AT, address, layout);
}

/* The word at a virtual address that is mapped. */
static uint8_t *word(const struct fake_memory *memory, uint64_t address)
{
	static struct page_walk walk;
	struct page_run run;

	page_walk_init(&walk, &memory->reader, memory->root);
	assert_int_equal(page_walk_next(&walk, address, address + 8, &run, NULL), 1);
	return memory->data + run.physical;
}

static void join(const struct fake_memory *memory, uint64_t before, uint64_t after)
{
	put(word(memory, before), after, 8);
	put(word(memory, after + 8), before, 8);
}

uint8_t *fake_modules_put(struct fake_memory *memory, uint64_t head, uint64_t address, size_t count,
			  enum fake_module_layout layout)
{
	uint8_t *data = NULL, *first = NULL;
	uint64_t last = head, node;

	join(memory, head, head);
	for (unsigned i = 0; i < count; i++, address += FAKE_MODULE_BYTES) {
		(void)fake_memory_put(memory, address, "\xcc", 1, 0);
		data = fake_memory_put(memory, address + PAGE, "", 1, FAKE_MEMORY_DATA);
		(void)fake_memory_put(memory, address + SYMBOLS_AT, "", 1, FAKE_MEMORY_DATA);
		put_symbols(data, address);
		put_note(data + NOTE_AT - PAGE, (uint8_t)(FAKE_MODULE_ID + i));
		put_struct(data + STRUCT_AT - PAGE, address, i, layout);
		if (!first)
			first = data + STRUCT_AT - PAGE;
		node = address + STRUCT_AT + 8;
		/* newest first */
		join(memory, node, last == head ? head : last);
		join(memory, head, node);
		last = node;
	}
	return first;
}
