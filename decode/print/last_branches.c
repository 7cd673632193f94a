#include "decode/print/last_branches.h"

/* Bits of an entry's flags, behind those of last_branches.h. */
enum { CYCLES_SHIFT = 4, CYCLES_MASK = 0xffff };

void last_branches_add(struct last_branches *branches, unsigned size, struct branch_entry entry)
{
	if (!branches->items)
		branches->items = calloc(size, sizeof(*branches->items));
	if (!branches->items)
		return;
	branches->size = size;
	branches->items[branches->next] = entry;
	branches->next = (branches->next + 1) % size;
	branches->count += branches->count < size;
}

static void add_end(struct text *text, uint64_t address, const char *const *dso)
{
	text_puts(text, "0x");
	text_hex(text, address, 0);
	if (dso) {
		text_putc(text, '(');
		text_name(text, *dso ? *dso : "[unknown]");
		text_putc(text, ')');
	}
	text_putc(text, '/');
}

void branch_entry_text(struct text *text, const struct branch_entry *entry,
		       const char *const dsos[2])
{
	text_putc(text, ' ');
	add_end(text, entry->from, dsos);
	add_end(text, entry->to, dsos ? dsos + 1 : NULL);
	text_putc(text, entry->flags & BRANCH_ENTRY_MISSED      ? 'M'
			: entry->flags & BRANCH_ENTRY_PREDICTED ? 'P'
								: '-');
	text_puts(text, entry->flags & BRANCH_ENTRY_IN_TX ? "/X" : "/-");
	text_puts(text, entry->flags & BRANCH_ENTRY_ABORT ? "/A/" : "/-/");
	text_dec(text, entry->flags >> CYCLES_SHIFT & CYCLES_MASK, 0, ' ');
	text_puts(text, "/ ");
}

void last_branches_free(struct last_branches *branches)
{
	free(branches->items);
	*branches = (struct last_branches){ 0 };
}
