/* Any bytes as a kernel's table of jump labels, and as its code: every label is found, and each key
 * has an end. */
#include <stddef.h>
#include <stdint.h>

#include "decode/code/image.h"
#include "decode/code/label_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_through(const struct label_key *key)
{
	unsigned labels = 0;

	for (uint32_t at = key->first; at != LABEL_KEY_END; at = label_key_next(key, at))
		if (++labels > LABEL_KEY_MAX || key->table->items[at].key != key->address)
			__builtin_trap();
}

static void look_at(const struct label_table *table, uint64_t site)
{
	struct patched_insn insn;
	struct label_key key;

	if (!label_table_find(table, site))
		__builtin_trap();
	if (!label_key_find(table, site, &key))
		return;
	if (!label_key_insn(&key, site, &insn) || insn.site != site)
		__builtin_trap();
	look_through(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t text = 0xffffffff81000000, address = 0xffffffff82000000;
	struct image image = { 0 };
	struct label_table table;

	if (size && image_add(&image, text, data, size))
		__builtin_trap();
	if (!label_table_read((struct bytes){ data, size }, address, text, address, &table)) {
		label_table_see(&table, &image);
		for (size_t i = 0; i < table.count; i++)
			look_at(&table, table.items[i].site);
	}
	label_table_free(&table);
	image_free(&image);
	return 0;
}
