/* Any bytes as names, one a line: they end, in time, as strings that are not too long. */
#include <stdlib.h>
#include <string.h>

#include "decode/code/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_TEXT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *rest = text, *name;
	struct symbols symbols = { 0 };

	while (text && (name = strsep(&rest, "\n"))) {
		const struct symbol symbol = { .start = symbols.count, .name = name };

		if (symbols_add(&symbols, &symbol))
			abort();
	}
	demangle_symbols(&symbols);
	for (size_t i = 0; i < symbols.count; i++)
		if (strlen(symbols.items[i].name) > MOST_TEXT + size)
			abort();
	symbols_free(&symbols);
	free(text);
	return 0;
}
