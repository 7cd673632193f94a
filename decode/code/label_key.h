/* The jump labels of one key, which a kernel patches together: a feature is switched on or off
 * (include/linux/jump_label.h). In the copy each of them has one of its two forms; whoever finds
 * that one has the other form knows it of all of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/label_table.h"
#include "decode/code/patched_insn.h"

#define LABEL_KEY_END UINT32_MAX

/** The labels of one key, all of them in the other form than in the copy. */
struct label_key {
	const struct label_table *table; /* NULL: no key */
	uint64_t address;                /* of the key */
	uint32_t first;                  /* index of its first label */
	bool is_as_copied;               /* they are as in the copy, again */
};

/** The key of the label at `site`. False: there is none, or it has no other label. */
bool label_key_find(const struct label_table *table, uint64_t site, struct label_key *ret);

/** Whether a key changes the instruction at `site`. */
bool label_key_has(const struct label_key *key, uint64_t site);

/** What a key makes of the instruction at a site that it has. False: it is there as copied. */
bool label_key_insn(const struct label_key *key, uint64_t site, struct patched_insn *ret);

/** The index of the key's label behind that of index `at`, which begins with its first one;
 * LABEL_KEY_END behind the last. */
uint32_t label_key_next(const struct label_key *key, uint32_t at);

/** Whether two are the same. */
bool label_key_is_same(const struct label_key *a, const struct label_key *b);
