#include <stddef.h>
#include <stdint.h>

#include "guest/kallsyms_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The image of a kernel, up to the last of the symbols found in it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsyms_place place = { 0 };
	struct kallsyms_tables tables;
	struct kallsyms_symbol symbol;

	if (!kallsyms_tables_find((struct bytes){ data, size }, 0xffffffff96000000, &tables, NULL))
		while (kallsyms_tables_next(&tables, &place, &symbol))
			;
	return 0;
}
