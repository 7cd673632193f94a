/* Pieces of any bytes as a guest's kallsyms and modules: what is to be copied of its kcore is whole
 * pages, in order and apart. */
#include <string.h>

#include "decode/code/kallsyms.h"
#include "decode/code/modules.h"
#include "guest/code_ranges.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAGE = 4096 };

static void check(const struct code_ranges *ranges)
{
	if (!ranges->count)
		abort();
	for (size_t i = 0; i < ranges->count; i++) {
		const struct code_range *range = &ranges->items[i];

		if (range->start % PAGE || range->end % PAGE || range->start >= range->end ||
		    (i && range[-1].end >= range->start))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes rest = { data, size }, names = fuzz_piece(&rest), text = fuzz_piece(&rest);
	struct symbols symbols = { 0 };
	struct modules modules = { 0 };
	struct code_ranges ranges = { 0 };
	char *copy = malloc(names.size + 1);

	if (!copy)
		return 0;
	if (names.size)
		memcpy(copy, names.data, names.size);
	if (kallsyms_parse(copy, names.size, &symbols) >= 0 && !symbols_finish(&symbols, true) &&
	    !modules_parse(text.size ? (const char *)text.data : "", text.size, &modules) &&
	    !code_ranges_find(&symbols, &modules, &ranges, NULL))
		check(&ranges);
	code_ranges_free(&ranges);
	modules_free(&modules);
	symbols_free(&symbols);
	free(copy);
	return 0;
}
