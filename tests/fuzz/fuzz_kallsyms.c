#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/code/kallsyms.h"
#include "decode/code/modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is sorted, has ends and is found again. */
static void check(const struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->items[i];

		if (i && symbol[-1].start >= symbol->start)
			abort();
		if (symbols_find(symbols, symbol->start) != symbol)
			abort();
		if (i < 16)
			(void)symbols_address(symbols, symbol->name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t code[0x10000];
	struct symbols symbols = { 0 };
	struct modules modules = { 0 };
	struct image image = { 0 };
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	if (kallsyms_parse(text, size, &symbols) >= 0 && !symbols_finish(&symbols, true)) {
		check(&symbols);
		if (symbols.count)
			(void)image_add(&image, symbols.items[0].start, code, sizeof(code));
		symbols_clip(&symbols, &image);
		check(&symbols);
	}
	(void)modules_parse((const char *)data, size, &modules);
	free(text);
	image_free(&image);
	symbols_free(&symbols);
	modules_free(&modules);
	return 0;
}
