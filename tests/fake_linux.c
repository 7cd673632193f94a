#include "tests/fake_linux.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fake_kallsyms.h"
#include "tests/fake_modules.h"

static const uint64_t start = FAKE_LINUX_START, crash_note = 0xffff888000100000;

enum {
	PAGE = FAKE_MEMORY_PAGE,
	TEXT_BYTES = 5 * PAGE, /* that are executable */
	NOTES_AT = 0x10000,
	ROOT_AT = 0x11000,
	POINTER_AT = 0x12000,
	HEAD_AT = 0x13010,
	BOOT_ID_AT = 0x13100, /* in the same page */
	TABLES_AT = 0x20000,
	ETEXT = 2 + FAKE_LINUX_TEXT_BYTES / 16, /* its index */
};

static const char vmcoreinfo[] = "OSRELEASE=6.1.0-fake\nPAGESIZE=4096\nKERNELOFFSET=15000000\n";
/* a build id of two bytes */
static const uint8_t notes[] = "\4\0\0\0\2\0\0\0\3\0\0\0GNU\0\xab\xcd\0\0";

static void set(struct fake_symbol *symbol, uint64_t address, const char *name)
{
	symbol->address = address;
	symbol->type = 'D';
	(void)strcpy(symbol->name, name);
}

static void put_symbols(struct fake_linux *guest)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(start, FAKE_LINUX_SYMBOLS);
	struct fake_symbol *last = symbols + FAKE_LINUX_SYMBOLS;
	struct text image = { 0 };

	(void)strcpy(symbols[2].name, "_stext");
	(void)strcpy(symbols[ETEXT].name, "_etext");
	set(last - 5, start + NOTES_AT, "__start_notes");
	set(last - 4, start + NOTES_AT + sizeof(notes) - 1, "__stop_notes");
	set(last - 3, start + ROOT_AT, "init_top_pgt");
	set(last - 2, start + POINTER_AT, "vmcoreinfo_data");
	set(last - 1, start + BOOT_ID_AT, "sysctl_bootid");
	fake_kallsyms_put(&(struct fake_kallsyms){ FAKE_TO_6_1, KALLSYMS_PER_CPU, start, symbols,
						   FAKE_LINUX_SYMBOLS },
			  &image);
	(void)fake_memory_put(&guest->memory, start + TABLES_AT, image.data, image.size,
			      FAKE_MEMORY_DATA);
	text_free(&image);
	free(symbols);
}

static void put_text(struct fake_linux *guest)
{
	uint8_t text[TEXT_BYTES];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = fake_linux_byte(start + i);
	guest->text = fake_memory_put(&guest->memory, start, text, sizeof(text), 0);
}

/* A second table of the same tables below, whose only page of the kernel is a copy of its own. */
static void put_user_root(struct fake_linux *guest)
{
	struct fake_memory *memory = &guest->memory;
	uint64_t whole = memory->root.cr3;

	guest->user_root = fake_memory_take(memory, PAGE);
	memory->root.cr3 = guest->user_root;
	(void)fake_memory_put(memory, start, "\xcc", 1, 0);
	memory->root.cr3 = whole;
}

void fake_linux_init(struct fake_linux *guest, bool is_5_level)
{
	struct fake_memory *memory = &guest->memory;
	uint8_t *data;

	fake_memory_init(memory, 1 << 20, is_5_level);
	put_user_root(guest);
	put_text(guest);
	(void)fake_memory_put(memory, start + NOTES_AT, notes, sizeof(notes), FAKE_MEMORY_DATA);
	fake_memory_map(memory, start + ROOT_AT, memory->root.cr3, PAGE, FAKE_MEMORY_DATA);
	(void)fake_memory_put(memory, start + POINTER_AT, &crash_note, 8, FAKE_MEMORY_DATA);
	(void)fake_memory_put(memory, crash_note, vmcoreinfo, sizeof(vmcoreinfo), FAKE_MEMORY_DATA);
	data = fake_memory_put(memory, start + (HEAD_AT & ~(PAGE - 1)), "", 1, FAKE_MEMORY_DATA);
	guest->boot_id = data + BOOT_ID_AT % PAGE;
	put_symbols(guest);
	(void)fake_modules_put(memory, start + HEAD_AT, FAKE_LINUX_MODULES, 2, FAKE_MODULE_5_2);
}

uint8_t fake_linux_byte(uint64_t address)
{
	return (uint8_t)(address ^ address >> 8);
}

void fake_linux_deinit(struct fake_linux *guest)
{
	fake_memory_deinit(&guest->memory);
}
