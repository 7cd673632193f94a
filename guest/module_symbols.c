#include "guest/module_symbols.h"

#include <ctype.h>
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/text.h"
#include "guest/kallsyms_tables.h"
#include "guest/module_list.h"
#include "guest/page_walk.h"

struct module_symbols {
	const struct listed_module *module;
	Elf64_Sym *symbols;
	char *names, *types;
};

static void release(const struct module_symbols *table)
{
	free(table->symbols);
	free(table->names);
	free(table->types);
}

/* The name of symbol `i`, which ends before the names do; empty where it has none. */
static const char *name_of(const struct module_symbols *table, size_t i)
{
	return table->names + table->symbols[i].st_name;
}

static int read_symbols(struct page_walk *walk, struct module_symbols *table)
{
	size_t count = table->module->symbol_count, last = 0;

	table->symbols = calloc(count, sizeof(*table->symbols));
	table->types = calloc(count, 1);
	if (!table->symbols || !table->types)
		return -PTVM_NO_MEMORY;
	(void)page_walk_read(walk, table->module->symbols, table->symbols,
			     count * sizeof(*table->symbols), NULL);
	(void)page_walk_read(walk, table->module->types, table->types, count, NULL);
	for (size_t i = 0; i < count; i++) {
		if (table->symbols[i].st_name >= MODULE_SYMBOLS_NAME_BYTES)
			table->symbols[i].st_name = 0;
		if (table->symbols[i].st_name > last)
			last = table->symbols[i].st_name;
	}
	table->names = calloc(last + KALLSYMS_NAME_BYTES + 1, 1);
	if (!table->names)
		return -PTVM_NO_MEMORY;
	(void)page_walk_read(walk, table->module->names, table->names, last + KALLSYMS_NAME_BYTES,
			     NULL);
	table->names[0] = '\0';
	return 0;
}

static void print_symbol(const struct module_symbols *table, size_t i, struct text *text)
{
	const char *name = name_of(table, i);
	char line[KALLSYMS_NAME_BYTES + MODULE_NAME_BYTES + 40];
	int type = (uint8_t)table->types[i];

	if (!name[0] || !isalpha(type))
		return;
	(void)snprintf(line, sizeof(line), "%016" PRIx64 " %c %.*s\t[%s]\n",
		       (uint64_t)table->symbols[i].st_value, tolower(type), KALLSYMS_NAME_BYTES - 1,
		       name, table->module->name);
	text_puts(text, line);
}

int module_symbols_print(struct page_walk *walk, const struct listed_module *module, size_t most,
			 struct text *text)
{
	_cleanup_(release) struct module_symbols table = { .module = module };
	int r;

	if (!module->symbol_count || module->symbol_count > MODULE_SYMBOLS)
		return 0;
	r = read_symbols(walk, &table);
	for (size_t i = 0; !r && i < module->symbol_count && text->size <= most; i++)
		print_symbol(&table, i, text);
	return r;
}
