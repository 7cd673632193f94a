#include "tests/fake_linux.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_kallsyms.h"
#include "tests/fake_modules.h"

static const uint64_t start = FAKE_LINUX_START, kernel_map = 0xffffffff80000000;
static const uint64_t direct_map[] = { 0xffff888000000000, 0xff11000000000000 }; /* levels 4, 5 */

enum {
	PAGE = FAKE_MEMORY_PAGE,
	TEXT_BYTES = 5 * PAGE, /* that are executable */
	NOTES_AT = 0x10000,
	ROOT_AT = 0x11000,
	POINTER_AT = 0x12000,
	HEAD_AT = 0x13010,
	BOOT_ID_AT = 0x13100, /* in the same page, as the next */
	CLOCK_AT = 0x13200,
	UTS_AT = 0x14ff0, /* in two pages */
	LARGE_PAGE = 2 << 20,
	TABLES_AT = 0x20000,
	ETEXT = 2 + FAKE_LINUX_TEXT_BYTES / 16, /* index of its symbol */
};

static const char uts[] = "Linux\0node\0006.1.0-fake";
/* a build id of two bytes */
static const uint8_t notes[] = "\4\0\0\0\2\0\0\0\3\0\0\0GNU\0\xab\xcd\0\0";

static void set(struct fake_symbol *symbol, uint64_t address, const char *name)
{
	symbol->address = address;
	symbol->type = 'D';
	(void)strcpy(symbol->name, name);
}

static void put_symbols(struct fake_linux *guest, size_t labels_size)
{
	struct fake_symbol *symbols = fake_kallsyms_symbols(start, FAKE_LINUX_SYMBOLS);
	struct fake_symbol *last = symbols + FAKE_LINUX_SYMBOLS;
	struct text image = { 0 };

	(void)strcpy(symbols[2].name, "_stext");
	(void)strcpy(symbols[ETEXT].name, "_etext");
	if (labels_size) {
		set(last - 8, start + FAKE_LINUX_LABELS, "__start___jump_table");
		set(last - 7, start + FAKE_LINUX_LABELS + labels_size, "__stop___jump_table");
	}
	set(last - 6, start + NOTES_AT, "__start_notes");
	set(last - 5, start + NOTES_AT + sizeof(notes) - 1, "__stop_notes");
	set(last - 4, start + ROOT_AT, "init_top_pgt");
	set(last - 3, start + POINTER_AT, "vmcoreinfo_data");
	set(last - 2, start + BOOT_ID_AT, "sysctl_bootid");
	set(last - 1, start + CLOCK_AT, "jiffies_64");
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

/* A second root, with the same tables below it, which maps a copy of one page of the kernel. */
static void put_user_root(struct fake_linux *guest)
{
	struct fake_memory *memory = &guest->memory;
	uint64_t whole = memory->root.cr3;

	guest->user_root = fake_memory_take(memory, PAGE);
	memory->root.cr3 = guest->user_root;
	(void)fake_memory_put(memory, start, "\xcc", 1, 0);
	memory->root.cr3 = whole;
}

/* VMCOREINFO, mapped where the direct map has it, and the direct map. */
static void put_vmcoreinfo(struct fake_linux *guest)
{
	struct fake_memory *memory = &guest->memory;
	const uint64_t base = direct_map[memory->root.is_5_level];
	uint64_t physical = fake_memory_take(memory, PAGE), address = base + physical;

	guest->vmcoreinfo = (char *)memory->data + physical;
	(void)snprintf(guest->vmcoreinfo, PAGE,
		       "OSRELEASE=6.1.0-fake\nPAGESIZE=4096\nSYMBOL(init_uts_ns)=%" PRIx64
		       "\nSYMBOL(swapper_pg_dir)=1000\nNUMBER(phys_base)=%" PRId64
		       "\nSYMBOL(init_top_pgt)=%" PRIx64
		       "\nNUMBER(pgtable_l5_enabled)=%d\nKERNELOFFSET=15000000\n",
		       start + UTS_AT, (int64_t)(memory->root.cr3 - (start + ROOT_AT - kernel_map)),
		       start + ROOT_AT, memory->root.is_5_level);
	(void)fake_memory_put(memory, start + POINTER_AT, &address, 8, FAKE_MEMORY_DATA);
	for (uint64_t at = 0; at < FAKE_LINUX_RAM_BYTES; at += LARGE_PAGE)
		*fake_memory_entry(memory, base + at, 2) = at | FAKE_MEMORY_LARGE | 1;
}

static void boot(struct fake_linux *guest)
{
	struct fake_memory *memory = &guest->memory;
	const uint64_t uts_page = start + (UTS_AT & ~(PAGE - 1));
	uint8_t *data, pages[2 * PAGE] = { 0 };

	put_user_root(guest);
	put_text(guest);
	(void)fake_memory_put(memory, start + NOTES_AT, notes, sizeof(notes), FAKE_MEMORY_DATA);
	fake_memory_map(memory, start + ROOT_AT, memory->root.cr3, PAGE, FAKE_MEMORY_DATA);
	memcpy(pages + UTS_AT % PAGE, uts, sizeof(uts));
	(void)fake_memory_put(memory, uts_page, pages, sizeof(pages), FAKE_MEMORY_DATA);
	put_vmcoreinfo(guest);
	data = fake_memory_put(memory, start + (HEAD_AT & ~(PAGE - 1)), "", 1, FAKE_MEMORY_DATA);
	guest->boot_id = data + BOOT_ID_AT % PAGE;
	guest->clock = data + CLOCK_AT % PAGE;
	put_symbols(guest, 0);
	(void)fake_modules_put(memory, start + HEAD_AT, FAKE_LINUX_MODULES, 2, FAKE_MODULE_5_2);
}

void fake_linux_init(struct fake_linux *guest, bool is_5_level)
{
	fake_memory_init(&guest->memory, 2 << 20, is_5_level);
	boot(guest);
}

void fake_linux_boot_again(struct fake_linux *guest)
{
	struct fake_memory *memory = &guest->memory;

	do {
		memory->root.cr3 = fake_memory_take(memory, PAGE);
	} while (memory->root.cr3 & PAGE);
	boot(guest);
}

void fake_linux_put_labels(struct fake_linux *guest, const void *labels, size_t size)
{
	(void)fake_memory_put(&guest->memory, start + FAKE_LINUX_LABELS, labels, size,
			      FAKE_MEMORY_DATA);
	put_symbols(guest, size);
}

uint8_t fake_linux_byte(uint64_t address)
{
	return (uint8_t)(address ^ address >> 8);
}

void fake_linux_deinit(struct fake_linux *guest)
{
	fake_memory_deinit(&guest->memory);
}
