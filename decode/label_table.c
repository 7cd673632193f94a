#include "decode/label_table.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

enum {
	ENTRY_SIZE = 16,
	TARGET_AT = 4,
	SENSIBLE = 2, /* one in so many at least must be about the code */
};

static uint64_t distance(const uint8_t *data)
{
	return (uint64_t)(int64_t)(int32_t)load_le(data, 4);
}

SORT_BY(compare, struct label_entry, site)

int label_table_read(struct bytes bytes, uint64_t address, uint64_t from, uint64_t to,
		     struct label_table *ret)
{
	size_t count = bytes.size / ENTRY_SIZE;

	*ret = (struct label_table){ .from = from, .to = to };
	if (count > LABEL_TABLE_MAX)
		return -PTVM_BAD_INPUT;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *data = bytes.data + i * ENTRY_SIZE;
		uint64_t at = address + i * ENTRY_SIZE;
		struct label_entry entry = { at + distance(data),
					     at + TARGET_AT + distance(data + TARGET_AT) };

		if (entry.site < from || entry.site >= to || entry.target < from ||
		    entry.target >= to)
			continue;
		if (!vec_push(ret, entry))
			return -PTVM_NO_MEMORY;
	}
	if (!ret->count || ret->count < count / SENSIBLE)
		return -PTVM_BAD_INPUT;
	sort_vec(ret, compare);
	return 0;
}

const struct label_entry *label_table_find(const struct label_table *table, uint64_t site)
{
	struct label_entry key = { .site = site };

	return table->count ? bsearch(&key, table->items, table->count, sizeof(key), compare)
			    : NULL;
}

void label_table_free(struct label_table *table)
{
	vec_free(table);
}
