#include "correlate/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/mapped_file.h"

/* Header: magic, version, state, size of the recording, entries, checksum of them; all numbers are
 * little-endian. Entry: offset with the size in its top byte, bytes before, bytes after. */
enum { HEADER = 40, ENTRY = 24, STATE_AT = 12, VERSION = 1, BUFFER = 64 << 10 };
enum { SIZE_SHIFT = 56 };

static const char magic[8] = { 'p', 't', 'v', 'm', 'u', 'n', 'd', 'o' };
static const uint64_t checksum_start = 0xcbf29ce484222325;

/* FNV-1a: against damage, not against malice. */
static uint64_t checksum(uint64_t sum, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

int journal_begin(struct journal_writer *writer, const char *path, uint64_t file_size,
		  const struct file_io *io, struct ptvm_error *error)
{
	*writer = (struct journal_writer){ .io = io,
					   .fd = -1,
					   .written = HEADER,
					   .checksum = checksum_start,
					   .file_size = file_size };
	writer->path = strdup(path);
	writer->buffer = malloc(BUFFER);
	if (asprintf(&writer->draft, "%s.new", path) < 0)
		writer->draft = NULL;
	if (!writer->path || !writer->buffer || !writer->draft)
		return -PTVM_NO_MEMORY;
	writer->fd = open(writer->draft, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	return writer->fd < 0 ? ptvm_fail_errno(error, "%s", writer->draft) : 0;
}

static int flush(struct journal_writer *writer, struct ptvm_error *error)
{
	if (file_io_write(writer->io, writer->fd, writer->buffer, writer->used,
			  (off_t)writer->written))
		return ptvm_fail_errno(error, "%s", writer->draft);
	writer->checksum = checksum(writer->checksum, writer->buffer, writer->used);
	writer->written += writer->used;
	writer->used = 0;
	return 0;
}

int journal_add(struct journal_writer *writer, const struct journal_entry *entry,
		struct ptvm_error *error)
{
	uint64_t where = entry->offset | (uint64_t)entry->size << SIZE_SHIFT;
	uint8_t *p = writer->buffer + writer->used;

	memcpy(p, &where, 8);
	memcpy(p + 8, entry->before, 8);
	memcpy(p + 16, entry->after, 8);
	writer->used += ENTRY;
	writer->count++;
	return writer->used + ENTRY > BUFFER ? flush(writer, error) : 0;
}

static int write_header(struct journal_writer *writer, struct ptvm_error *error)
{
	uint32_t numbers[2] = { VERSION, JOURNAL_OPEN };
	uint64_t more[3] = { writer->file_size, writer->count, writer->checksum };
	uint8_t header[HEADER];

	memcpy(header, magic, sizeof(magic));
	memcpy(header + 8, numbers, sizeof(numbers));
	memcpy(header + 16, more, sizeof(more));
	if (file_io_write(writer->io, writer->fd, header, sizeof(header), 0) ||
	    writer->io->sync(writer->io, writer->fd))
		return ptvm_fail_errno(error, "%s", writer->draft);
	return 0;
}

int journal_commit(struct journal_writer *writer, struct ptvm_error *error)
{
	int r = flush(writer, error);

	if (!r)
		r = write_header(writer, error);
	if (r)
		return r;
	if (writer->io->rename(writer->io, writer->draft, writer->path))
		return ptvm_fail_errno(error, "%s", writer->path);
	free(take_ptr(writer->draft));
	if (file_io_sync_directory(writer->io, writer->path))
		return ptvm_fail_errno(error, "%s", writer->path);
	return 0;
}

void journal_end(struct journal_writer *writer)
{
	if (writer->draft && writer->fd >= 0)
		(void)writer->io->remove(writer->io, writer->draft);
	if (writer->fd >= 0)
		(void)close(writer->fd);
	free(writer->path);
	free(writer->draft);
	free(writer->buffer);
	*writer = (struct journal_writer){ .fd = -1 };
}

struct journal_entry journal_entry(const struct journal *journal, uint64_t index)
{
	const uint8_t *p = journal->file.data + HEADER + index * ENTRY;
	uint64_t where = load_le(p, 8);
	struct journal_entry entry = { .offset = where << 8 >> 8,
				       .size = (uint8_t)(where >> SIZE_SHIFT) };

	memcpy(entry.before, p + 8, 8);
	memcpy(entry.after, p + 16, 8);
	return entry;
}

static bool are_entries_good(const struct journal *journal)
{
	for (uint64_t i = 0; i < journal->count; i++) {
		struct journal_entry entry = journal_entry(journal, i);

		if (!entry.size || entry.size > 8 || entry.offset > journal->file_size ||
		    journal->file_size - entry.offset < entry.size)
			return false;
	}
	return true;
}

int journal_read(struct bytes file, struct journal *ret, struct ptvm_error *error)
{
	uint64_t version, state, sum;

	*ret = (struct journal){ .file = file };
	if (file.size < HEADER || memcmp(file.data, magic, sizeof(magic)))
		return ptvm_fail(error, PTVM_BAD_INPUT, "not an undo journal");
	version = load_le(file.data + 8, 4);
	state = load_le(file.data + STATE_AT, 4);
	ret->file_size = load_le(file.data + 16, 8);
	ret->count = load_le(file.data + 24, 8);
	sum = load_le(file.data + 32, 8);
	if (version != VERSION)
		return ptvm_fail(error, PTVM_BAD_INPUT, "undo journal of version %" PRIu64,
				 version);
	if ((state != JOURNAL_OPEN && state != JOURNAL_DONE) ||
	    ret->count > (file.size - HEADER) / ENTRY || file.size != HEADER + ret->count * ENTRY ||
	    checksum(checksum_start, file.data + HEADER, file.size - HEADER) != sum ||
	    !are_entries_good(ret))
		return ptvm_fail(error, PTVM_BAD_INPUT, "damaged undo journal");
	ret->state = (enum journal_state)state;
	return 0;
}

int journal_open(const char *path, struct journal *ret, struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	struct bytes file;
	int r;

	*ret = (struct journal){ .state = JOURNAL_NONE };
	if (access(path, F_OK))
		return 0;
	r = mapped_file_open(path, &file, error);
	if (r)
		return r;
	r = journal_read(file, ret, &why);
	if (!r)
		return 0;
	journal_close(ret);
	return ptvm_fail(error, PTVM_BAD_INPUT, "%s: %s", path, why.message);
}

int journal_mark(const char *path, enum journal_state state, const struct file_io *io,
		 struct ptvm_error *error)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	uint32_t number = state;

	if (fd < 0 || file_io_write(io, fd, &number, sizeof(number), STATE_AT) || io->sync(io, fd))
		return ptvm_fail_errno(error, "%s", path);
	return 0;
}

void journal_close(struct journal *journal)
{
	mapped_file_close(&journal->file);
	*journal = (struct journal){ .state = JOURNAL_NONE };
}
