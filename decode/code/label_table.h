/* The kernel's table of jump labels: which instructions may be a jump or a NOP, and where the jump
 * leads. It lies between the symbols __start___jump_table and __stop___jump_table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"

struct image;

struct label_entry {
	uint64_t site, target;
	uint64_t key;  /* address of what switches it, together with its other labels */
	uint32_t next; /* index of the next label of this key; of the last, the first */
	uint8_t size;  /* of the instruction, 2 or 5; 0: it is no label in the copy */
	bool is_jump;  /* there, else a NOP */
};

struct label_table {
	struct label_entry *items; /* by site */
	size_t count, room;
	uint64_t from, to; /* of the code that it covers, [from, to) */
};

enum {
	LABEL_TABLE_MAX = 1 << 18, /* entries; a distribution's kernel has some 6000 */
	LABEL_KEY_MAX = 1 << 10,   /* labels of one key; where it has more, each is by itself */
};

/**
 * Read a table as it is in memory since Linux 4.19: entries of 16 bytes, each with the distances of
 * code, target and key from where they stand (include/linux/jump_label.h, struct jump_entry).
 *
 * @bytes    of the table, which is at `address`
 * @from,to  the code that it is about; entries about other code, such as code that ran only at
 *           boot, are left out
 * @ret      release with label_table_free(), also after a failure
 *
 * Returns 0; -PTVM_BAD_INPUT when most entries make no sense, so that this is something else; or
 * -PTVM_NO_MEMORY.
 */
int label_table_read(struct bytes bytes, uint64_t address, uint64_t from, uint64_t to,
		     struct label_table *ret);

/** The entry of a site, or NULL. */
const struct label_entry *label_table_find(const struct label_table *table, uint64_t site);

/** See which form each label has in the copy of the code. */
void label_table_see(struct label_table *table, const struct image *image);

/** Free the entries; accepts zeroes. */
void label_table_free(struct label_table *table);
