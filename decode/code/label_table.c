#include "decode/code/label_table.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/code/image.h"
#include "decode/code/label_targets.h"

enum {
	ENTRY_SIZE = 16,
	TARGET_AT = 4,
	KEY_AT = 8,
	KEY_FLAGS = 3, /* bits that say more than where the key is */
	SENSIBLE = 2,  /* one in so many at least must be about the code */
};

static uint64_t distance(const uint8_t *data)
{
	return (uint64_t)(int64_t)(int32_t)load_le(data, 4);
}

SORT_BY(compare, struct label_entry, site)

/* The labels of a key are together. */
struct key_list {
	struct key {
		uint64_t key, label; /* the address of the one, the index of the other */
	} * items;
	size_t count, room;
};

SORT_BY_TWO(compare_keys, struct key, key, label)

/* Link each label in [first, end) to the next one; to itself where a kernel has not so many. */
static void link_key(struct label_table *table, const struct key *first, const struct key *end)
{
	for (const struct key *key = first; key < end; key++) {
		const struct key *next = key + 1 < end ? key + 1 : first;

		if (end - first > LABEL_KEY_MAX)
			next = key;
		table->items[key->label].next = (uint32_t)next->label;
	}
}

static bool link_labels(struct label_table *table)
{
	struct key_list keys = { 0 };
	bool fits = true;

	for (size_t i = 0; i < table->count && fits; i++)
		fits = vec_push(&keys, (struct key){ table->items[i].key, i });
	sort_vec(&keys, compare_keys);
	for (size_t first = 0, end = 0; first < keys.count; first = end) {
		while (end < keys.count && keys.items[end].key == keys.items[first].key)
			end++;
		link_key(table, keys.items + first, keys.items + end);
	}
	vec_free(&keys);
	return fits;
}

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
		struct label_entry entry = {
			.site = at + distance(data),
			.target = at + TARGET_AT + distance(data + TARGET_AT),
			.key = at + KEY_AT + (load_le(data + KEY_AT, 8) & ~(uint64_t)KEY_FLAGS),
		};

		if (entry.site < from || entry.site >= to || entry.target < from ||
		    entry.target >= to)
			continue;
		if (!vec_push(ret, entry))
			return -PTVM_NO_MEMORY;
	}
	if (!ret->count || ret->count < count / SENSIBLE)
		return -PTVM_BAD_INPUT;
	sort_vec(ret, compare);
	return link_labels(ret) ? 0 : -PTVM_NO_MEMORY;
}

const struct label_entry *label_table_find(const struct label_table *table, uint64_t site)
{
	struct label_entry key = { .site = site };

	return table->count ? bsearch(&key, table->items, table->count, sizeof(key), compare)
			    : NULL;
}

static void see(struct label_entry *entry, const uint8_t *data, size_t left)
{
	struct insn insn;

	if (insn_read(data, left, entry->site, 64, &insn) || !label_targets_is_label(&insn))
		return;
	entry->is_jump = insn.class == INSN_JMP;
	if (!entry->is_jump || insn.target == entry->target)
		entry->size = insn.length;
}

void label_table_see(struct label_table *table, const struct image *image)
{
	for (size_t i = 0; i < table->count; i++) {
		size_t left = 0;
		const uint8_t *data = image_find(image, table->items[i].site, &left);

		if (data)
			see(&table->items[i], data, left);
	}
}

void label_table_free(struct label_table *table)
{
	vec_free(table);
}
