/* The undo journal of a corrected recording: each place that changes, with the bytes before and
 * after. It is on disk, whole, before the first byte of the recording changes; so that whatever
 * happens then, the recording can be brought back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "correlate/file_io.h"
#include "decode/base/bytes.h"
#include "decode/base/error.h"

enum journal_state {
	JOURNAL_NONE,
	JOURNAL_OPEN, /* the recording may be changed in part */
	JOURNAL_DONE, /* it is changed throughout */
};

/** Up to 8 bytes at one place of the file. */
struct journal_entry {
	uint64_t offset;
	uint8_t size;
	uint8_t before[8], after[8];
};

/** A journal being written. */
struct journal_writer {
	const struct file_io *io;
	char *path, *draft; /* where it will be, where it is until then */
	int fd;
	uint8_t *buffer;
	size_t used;
	uint64_t written; /* bytes, with the header */
	uint64_t count, checksum;
	uint64_t file_size; /* of the recording */
};

/** A journal that is there. */
struct journal {
	enum journal_state state;
	struct bytes file; /* mapped */
	uint64_t count, file_size;
};

/**
 * Begin a journal that will be at `path`, for a file of `file_size` bytes. Until it is committed it
 * is beside that.
 *
 * @io  borrowed until journal_end(), which is due in any case
 *
 * Returns 0, -PTVM_SYSTEM or -PTVM_NO_MEMORY.
 */
int journal_begin(struct journal_writer *writer, const char *path, uint64_t file_size,
		  const struct file_io *io, struct ptvm_error *error);

/** Append an entry. Returns 0 or -PTVM_SYSTEM. */
int journal_add(struct journal_writer *writer, const struct journal_entry *entry,
		struct ptvm_error *error);

/** Put the journal in place, on disk. Without this it is as if it had never been. Returns 0, or
 * -PTVM_SYSTEM: it may be in place all the same. */
int journal_commit(struct journal_writer *writer, struct ptvm_error *error);

/** Release the writer and what it did not commit. */
void journal_end(struct journal_writer *writer);

/**
 * Check a journal's bytes. Returns 0, or -PTVM_BAD_INPUT for one that is damaged.
 * An entry lies within the file and has 1 to 8 bytes.
 */
int journal_read(struct bytes file, struct journal *ret, struct ptvm_error *error);

/** Open the journal at `path`; state JOURNAL_NONE when there is none. Returns 0, -PTVM_SYSTEM or
 * -PTVM_BAD_INPUT; there is nothing to close then. */
int journal_open(const char *path, struct journal *ret, struct ptvm_error *error);

/** Entry `index`, less than count. */
struct journal_entry journal_entry(const struct journal *journal, uint64_t index);

/** Note, on disk, how far the changes of the journal at `path` are. Returns 0 or -PTVM_SYSTEM. */
int journal_mark(const char *path, enum journal_state state, const struct file_io *io,
		 struct ptvm_error *error);

/** Release the mapping. */
void journal_close(struct journal *journal);
