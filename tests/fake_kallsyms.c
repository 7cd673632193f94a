#include "tests/fake_kallsyms.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 256, PREFIX_TOKEN = 1 };

static const char prefix[] = "fn_";

static void align(const struct fake_kallsyms *tables, struct text *image)
{
	while (image->size % (tables->layout == FAKE_FROM_7_0 ? 4 : 8))
		text_putc(image, '\0');
}

static void put(struct text *image, uint64_t value, unsigned size)
{
	text_add(image, (const char *)&value, size);
}

/* Token `i`: printable characters stand for themselves. */
static void token(unsigned i, char text[8])
{
	if (i == PREFIX_TOKEN)
		(void)strcpy(text, prefix);
	else
		(void)snprintf(text, 8, isgraph((int)i) ? "%c" : "~%02x", i);
}

static void put_tokens(const struct fake_kallsyms *tables, struct text *image)
{
	size_t offsets[TOKENS], start;
	char text[8];

	align(tables, image);
	start = image->size;
	for (unsigned i = 0; i < TOKENS; i++) {
		offsets[i] = image->size - start;
		token(i, text);
		text_add(image, text, strlen(text) + 1);
	}
	align(tables, image);
	for (unsigned i = 0; i < TOKENS; i++)
		put(image, offsets[i], 2);
}

static void put_name(struct text *image, const struct fake_symbol *symbol)
{
	bool has_prefix = !strncmp(symbol->name, prefix, strlen(prefix));
	const char *rest = symbol->name + (has_prefix ? strlen(prefix) : 0);
	size_t length = 1 + has_prefix + strlen(rest);

	put(image, length > 127 ? (length & 127) | 128 : length, 1);
	if (length > 127)
		put(image, length >> 7, 1);
	text_putc(image, symbol->type);
	if (has_prefix)
		text_putc(image, PREFIX_TOKEN);
	text_puts(image, rest);
}

static void put_names(const struct fake_kallsyms *tables, struct text *image)
{
	size_t start, marker_count = 0;
	uint32_t markers[1024];

	align(tables, image);
	put(image, tables->count, 4);
	align(tables, image);
	start = image->size;
	for (size_t i = 0; i < tables->count; i++) {
		if (i % 256 == 0)
			markers[marker_count++] = (uint32_t)(image->size - start);
		put_name(image, &tables->symbols[i]);
	}
	align(tables, image);
	text_add(image, (const char *)markers, marker_count * sizeof(*markers));
	align(tables, image);
	if (tables->layout == FAKE_6_2)
		for (size_t i = 0; i < tables->count; i++)
			put(image, i, 3);
}

static void put_values(const struct fake_kallsyms *tables, struct text *image)
{
	uint64_t address;

	align(tables, image);
	for (size_t i = 0; i < tables->count; i++) {
		address = tables->symbols[i].address;
		if (tables->kind == KALLSYMS_PLACES)
			put(image, address - tables->base - image->size, 4);
		else if (tables->kind == KALLSYMS_ADDRESSES)
			put(image, address, 8);
		else if (tables->kind == KALLSYMS_OFFSETS)
			put(image, address - tables->base, 4);
		else
			put(image, address < tables->base ? address : tables->base - 1 - address,
			    4);
	}
	align(tables, image);
	if (tables->kind == KALLSYMS_OFFSETS || tables->kind == KALLSYMS_PER_CPU)
		put(image, tables->base, 8);
}

void fake_kallsyms_put(const struct fake_kallsyms *tables, struct text *image)
{
	if (tables->layout < FAKE_FROM_6_4)
		put_values(tables, image);
	put_names(tables, image);
	put_tokens(tables, image);
	if (tables->layout >= FAKE_FROM_6_4)
		put_values(tables, image);
	assert_false(image->failed);
}

struct fake_symbol *fake_kallsyms_symbols(uint64_t base, size_t count)
{
	struct fake_symbol *symbols = calloc(count, sizeof(*symbols));

	assert_non_null(symbols);
	for (size_t i = 0; i < count; i++) {
		symbols[i].address = i < 2 ? i << 12 : base + 16 * (i - 2);
		symbols[i].type = i < 2 ? 'A' : i % 2 ? 't' : 'T';
		(void)snprintf(symbols[i].name, sizeof(symbols[i].name),
			       i < 2 ? "per_cpu_%zu" : "fn_%zu", i);
	}
	return symbols;
}
