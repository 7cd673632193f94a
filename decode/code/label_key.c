#include "decode/code/label_key.h"

bool label_key_find(const struct label_table *table, uint64_t site, struct label_key *ret)
{
	const struct label_entry *entry = label_table_find(table, site);
	uint32_t at;

	if (!entry || !entry->size || table->items + entry->next == entry)
		return false;
	at = (uint32_t)(entry - table->items);
	while (table->items[at].next > at)
		at = table->items[at].next;
	*ret = (struct label_key){ table, entry->key, table->items[at].next, false };
	return true;
}

static const struct label_entry *entry_of(const struct label_key *key, uint64_t site)
{
	const struct label_entry *entry = label_table_find(key->table, site);

	return entry && entry->key == key->address && entry->size ? entry : NULL;
}

bool label_key_has(const struct label_key *key, uint64_t site)
{
	return entry_of(key, site);
}

bool label_key_insn(const struct label_key *key, uint64_t site, struct patched_insn *ret)
{
	const struct label_entry *entry = entry_of(key, site);

	if (!entry || key->is_as_copied)
		return false;
	*ret = patched_insn_label(site, entry->size,
				  entry->is_jump ? site + entry->size : entry->target);
	return true;
}

uint32_t label_key_next(const struct label_key *key, uint32_t at)
{
	uint32_t next = key->table->items[at].next;

	return next > at ? next : LABEL_KEY_END;
}

bool label_key_is_same(const struct label_key *a, const struct label_key *b)
{
	return a->table == b->table && a->address == b->address &&
	       a->is_as_copied == b->is_as_copied;
}
