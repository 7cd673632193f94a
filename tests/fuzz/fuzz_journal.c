#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "correlate/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every entry of a journal that is accepted lies within the file that it is for. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptvm_error error = { 0 };
	struct journal journal;

	if (journal_read((struct bytes){ data, size }, &journal, &error))
		return 0;
	for (uint64_t i = 0; i < journal.count; i++) {
		struct journal_entry entry = journal_entry(&journal, i);

		if (!entry.size || entry.size > 8 || entry.offset + entry.size > journal.file_size)
			abort();
	}
	return 0;
}
