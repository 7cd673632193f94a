/* The file is a row of 64-bit words (docs/recording-format.md): magic, identity, checksum of what
 * follows, queues, and for each queue the number of its points, and these. */
#include "decode/perf/trace_index.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/mapped_file.h"
#include "decode/base/vec.h"
#include "decode/base/write_all.h"

enum { MAGIC, IDENTITY, CHECKSUM, QUEUES, HEADER_WORDS, WORD = 8 };
enum { WORTH_KEEPING = 16 }; /* new points, hence 64 MB of trace */

static const char magic[WORD] = { 'p', 't', 'v', 'm', 'i', 'd', 'x', '2' };
static const uint64_t fnv_start = 0xcbf29ce484222325;

/* FNV-1a, by words. */
static uint64_t fnv(uint64_t sum, uint64_t word)
{
	return (sum ^ word) * 0x100000001b3;
}

/* What points depend on: the trace and how it was made. The bytes of the trace are too many to
 * read, so the time of their last change stands for them. */
static uint64_t identify(const struct perf_data *data, const struct stat *status)
{
	const struct pt_config *pt = &data->pt;
	const uint64_t words[] = {
		(uint64_t)status->st_size,
		(uint64_t)status->st_mtim.tv_sec,
		(uint64_t)status->st_mtim.tv_nsec,
		pt->conv.zero,
		pt->conv.mult,
		pt->conv.shift,
		pt->tsc | pt->mtc << 1 | pt->cyc << 2 | pt->snapshot << 3 | pt->guest_tsc_raw << 4,
		pt->mtc_shift,
		pt->ctc_n,
		pt->ctc_d,
		pt->max_nonturbo,
		pt->cpu_family << 16 | pt->cpu_model,
		TRACE_POINT_BYTES,
		TRACE_POINT_WORDS,
	};
	uint64_t sum = fnv_start;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum = fnv(sum, words[i]);
	for (size_t i = 0; i < data->queues.count; i++)
		for (size_t k = 0; k < data->queues.items[i].count; k++) {
			const struct aux_span *span = &data->queues.items[i].spans[k];

			sum = fnv(fnv(sum, span->file_offset), span->size);
			sum = fnv(fnv(sum, span->reference), span->lost_before);
		}
	return sum;
}

/* The words of a file that have not been taken yet. */
struct reader {
	const uint64_t *words;
	size_t count;
};

static uint64_t take(struct reader *reader)
{
	if (!reader->count)
		return 0;
	reader->count--;
	return *reader->words++;
}

static int take_points(struct reader *reader, struct trace_points *points)
{
	uint64_t count = take(reader);

	for (uint64_t i = 0; i < count; i++) {
		int r = trace_points_take(points, reader->words, reader->count);

		if (r < 0)
			return r;
		reader->words += r;
		reader->count -= (size_t)r;
	}
	return 0;
}

static uint64_t checksum(const uint64_t *words, size_t count)
{
	uint64_t sum = fnv_start;

	for (size_t i = 0; i < count; i++)
		sum = fnv(sum, words[i]);
	return sum;
}

/* NULL, or what is wrong with the file. */
static const char *complain(const struct reader *file)
{
	const uint64_t *words = file->words;

	if (file->count < HEADER_WORDS || memcmp(&words[MAGIC], magic, WORD))
		return "is not an index";
	if (checksum(words + QUEUES, file->count - QUEUES) != words[CHECKSUM])
		return "is damaged";
	return NULL;
}

static void forget(struct trace_index *index)
{
	for (size_t i = 0; i < index->queue_count; i++)
		trace_points_free(&index->queues[i]);
	index->known = 0;
}

int trace_index_read(struct trace_index *index, struct bytes file)
{
	struct reader reader = { (const uint64_t *)(const void *)file.data, file.size / WORD };
	int r = 0;

	index->complaint = complain(&reader);
	if (index->complaint || reader.words[IDENTITY] != index->identity ||
	    reader.words[QUEUES] != index->queue_count)
		return -PTVM_BAD_INPUT;
	reader.words += HEADER_WORDS;
	reader.count -= HEADER_WORDS;
	for (size_t i = 0; i < index->queue_count && !r; i++) {
		r = take_points(&reader, &index->queues[i]);
		index->known += index->queues[i].count;
	}
	if (!r)
		return 0;
	forget(index);
	index->complaint = "is damaged";
	return r;
}

/* Who can write the index decides what is printed: it must be somebody who can write the recording.
 */
static bool is_trusted(const struct stat *status, uid_t owner)
{
	return (status->st_uid == owner || status->st_uid == geteuid() || !status->st_uid) &&
	       !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static int read_file(struct trace_index *index, uid_t owner)
{
	struct ptvm_error error = { 0 };
	struct stat status;
	struct bytes file;
	int r;

	if (stat(index->path, &status))
		return 0;
	if (!is_trusted(&status, owner)) {
		index->complaint = "is of somebody else";
		return 0;
	}
	if (mapped_file_open(index->path, &file, &error)) {
		index->complaint = "cannot be read";
		return 0;
	}
	r = trace_index_read(index, file);
	mapped_file_close(&file);
	return r == -PTVM_NO_MEMORY ? r : 0;
}

int trace_index_open(const struct perf_data *data, struct trace_index *ret)
{
	struct stat status;

	*ret = (struct trace_index){ .queue_count = data->queues.count };
	ret->queues = calloc(data->queues.count + 1, sizeof(*ret->queues));
	if (!ret->queues)
		return -PTVM_NO_MEMORY;
	/* With files of several threads, perf takes every file data.* for one of records. */
	if (data->parts.count || !data->mapping.size)
		return 0;
	if (stat(data->file_path, &status) || !S_ISREG(status.st_mode))
		return 0;
	ret->identity = identify(data, &status);
	if (asprintf(&ret->path, "%s.ptvm-index", data->file_path) < 0) {
		ret->path = NULL;
		return -PTVM_NO_MEMORY;
	}
	return read_file(ret, status.st_uid);
}

static bool is_worth_keeping(const struct trace_index *index)
{
	size_t known = index->known, now = 0;

	for (size_t i = 0; i < index->queue_count; i++) {
		now += index->queues[i].count;
		if (index->queues[i].bad)
			known = 0;
	}
	return index->path && now >= known + WORTH_KEEPING;
}

struct words {
	uint64_t *items;
	size_t count, room;
};

static int collect(const struct trace_index *index, struct words *ret)
{
	bool ok = true;

	for (size_t i = 0; i < HEADER_WORDS; i++)
		ok = ok && vec_push(ret, 0);
	for (size_t i = 0; i < index->queue_count; i++) {
		const struct trace_points *points = &index->queues[i];

		ok = ok && vec_push(ret, points->count);
		for (size_t k = 0; k < points->words.count; k++)
			ok = ok && vec_push(ret, points->words.items[k]);
	}
	if (!ok)
		return -PTVM_NO_MEMORY;
	memcpy(&ret->items[MAGIC], magic, WORD);
	ret->items[IDENTITY] = index->identity;
	ret->items[QUEUES] = index->queue_count;
	ret->items[CHECKSUM] = checksum(ret->items + QUEUES, ret->count - QUEUES);
	return 0;
}

/* Into a draft beside it, then over the old one. What a crash leaves of it has a wrong checksum. */
static int replace(const char *path, const struct words *words, struct ptvm_error *error)
{
	_cleanup_free_ char *draft = NULL;
	bool ok;
	int fd;

	if (asprintf(&draft, "%s.XXXXXX", path) < 0) {
		draft = NULL;
		return -PTVM_NO_MEMORY;
	}
	fd = mkostemp(draft, O_CLOEXEC);
	if (fd < 0)
		return ptvm_fail_errno(error, "%s", draft);
	ok = !write_all(fd, words->items, WORD * words->count) && !fchmod(fd, 0644);
	ok = !close(fd) && ok;
	if (ok && !rename(draft, path))
		return 0;
	(void)ptvm_fail_errno(error, "%s", draft);
	(void)unlink(draft);
	return -PTVM_SYSTEM;
}

int trace_index_save(const struct trace_index *index, struct ptvm_error *error)
{
	struct words words = { 0 };
	int r;

	if (!is_worth_keeping(index))
		return 0;
	r = collect(index, &words);
	if (!r)
		r = replace(index->path, &words, error);
	vec_free(&words);
	return r;
}

void trace_index_free(struct trace_index *index)
{
	for (size_t i = 0; index->queues && i < index->queue_count; i++)
		trace_points_free(&index->queues[i]);
	free(index->queues);
	free(index->path);
	*index = (struct trace_index){ .path = NULL };
}
