#include <stddef.h>
#include <stdint.h>

#include "decode/label_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t text = 0xffffffff81000000, address = 0xffffffff82000000;
	struct label_table table;

	if (!label_table_read((struct bytes){ data, size }, address, text, address, &table))
		for (size_t i = 0; i < table.count; i++)
			if (!label_table_find(&table, table.items[i].site))
				__builtin_trap();
	label_table_free(&table);
	return 0;
}
