#include "correlate/offset_apply.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "correlate/tsc_patch.h"
#include "decode/perf/perf_damage.h"
#include "decode/pt/pt_stream.h"

/* How often to ask whether to go on. */
enum { WATCH_EVERY = 4096 };

/* Writing the journal of all queues. */
struct drafting {
	const struct perf_data *data;
	const struct aux_queue *queue;
	const struct apply_target *target;
	struct journal_writer journal;
	size_t repeat; /* repeats before this one lie behind us */
	uint64_t until_watch;
};

/* An entry for `count` bytes of the patch from byte `from` on, at a place in the file. */
static int add(struct drafting *drafting, const struct tsc_patch *patch, unsigned from,
	       unsigned count, uint64_t offset, struct ptvm_error *error)
{
	struct bytes there = bytes_slice(drafting->data->file, offset, count);
	struct journal_entry entry = { .offset = offset, .size = (uint8_t)count };
	uint64_t value = patch->value >> from * 8;

	if (there.size < count)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: trace that lies in another file cannot be changed",
				 drafting->target->path);
	memcpy(entry.before, there.data, count);
	memcpy(entry.after, &value, count);
	return memcmp(entry.before, entry.after, count)
		       ? journal_add(&drafting->journal, &entry, error)
		       : 0;
}

/* The part of the patch that lies in one span. */
static int add_part(struct drafting *drafting, const struct tsc_patch *patch, unsigned from,
		    unsigned count, struct ptvm_error *error)
{
	uint64_t position = patch->position + from;
	const struct aux_span *span = pt_span_at(drafting->queue, position);
	uint64_t offset = pt_file_offset(drafting->queue, position);

	if (span->data + (position - span->position) != drafting->data->file.data + offset)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: the trace lies in compressed records and cannot be changed",
				 drafting->target->path);
	return add(drafting, patch, from, count, offset, error);
}

/* A snapshot may repeat the patched bytes, which must stay equal. */
static int add_repeats(struct drafting *drafting, const struct tsc_patch *patch,
		       struct ptvm_error *error)
{
	const struct aux_queue *queue = drafting->queue;
	uint64_t end = patch->position + patch->size;
	int r = 0;

	while (drafting->repeat < queue->repeat_count &&
	       queue->repeats[drafting->repeat].position + queue->repeats[drafting->repeat].size <=
		       patch->position)
		drafting->repeat++;
	for (size_t i = drafting->repeat; i < queue->repeat_count && !r; i++) {
		const struct aux_repeat *repeat = &queue->repeats[i];
		uint64_t from = patch->position, to = repeat->position + repeat->size;

		if (repeat->position >= end)
			break;
		from = from < repeat->position ? repeat->position : from;
		to = to < end ? to : end;
		if (from < to)
			r = add(drafting, patch, (unsigned)(from - patch->position),
				(unsigned)(to - from),
				repeat->file_offset + (from - repeat->position), error);
	}
	return r;
}

static int add_patch(struct drafting *drafting, const struct tsc_patch *patch,
		     struct ptvm_error *error)
{
	unsigned from = 0;
	int r = 0;

	while (from < patch->size && !r) {
		const struct aux_span *span = pt_span_at(drafting->queue, patch->position + from);
		uint64_t left = span->position + span->size - (patch->position + from);
		unsigned count = left < patch->size - from ? (unsigned)left : patch->size - from;

		r = add_part(drafting, patch, from, count, error);
		from += count;
	}
	return r ? r : add_repeats(drafting, patch, error);
}

static bool go_on(struct drafting *drafting)
{
	if (drafting->until_watch--)
		return true;
	drafting->until_watch = WATCH_EVERY;
	return watch_go_on(&drafting->target->watch);
}

static int draft_queue(struct drafting *drafting, const struct tsc_offsets *offsets,
		       const struct aux_queue *queue, struct apply_result *ret,
		       struct ptvm_error *error)
{
	struct tsc_patches patches;
	struct tsc_patch patch;
	int r = 0;

	drafting->queue = queue;
	drafting->repeat = 0;
	tsc_patches_init(&patches, offsets, queue, &drafting->data->pt, drafting->data->mapping);
	while (!r && !tsc_patches_next(&patches, &patch))
		r = go_on(drafting) ? add_patch(drafting, &patch, error) : -PTVM_END;
	ret->left += patches.left;
	return r;
}

/* Write and put in place the journal of what is to change; none where that is nothing. */
static int draft(const struct perf_data *data, const struct tsc_offsets *offsets,
		 const struct apply_target *target, struct apply_result *ret,
		 struct ptvm_error *error)
{
	struct drafting drafting = { .data = data, .target = target };
	int r = journal_begin(&drafting.journal, target->journal, data->file.size, target->io,
			      error);

	for (size_t i = 0; i < data->queues.count && !r; i++)
		r = draft_queue(&drafting, offsets, &data->queues.items[i], ret, error);
	if (!r)
		r = perf_damage_check_pages(data, error);
	if (!r && !watch_go_on(&target->watch))
		r = -PTVM_END;
	ret->changed = drafting.journal.count;
	if (!r && ret->changed)
		r = journal_commit(&drafting.journal, error);
	journal_end(&drafting.journal);
	return r;
}

/* Write the bytes before or after of all entries, and wait until they are on disk. */
static int write_entries(const struct apply_target *target, const struct journal *journal,
			 bool after, struct ptvm_error *error)
{
	for (uint64_t i = 0; i < journal->count; i++) {
		struct journal_entry entry = journal_entry(journal, i);

		if (after && !(i % WATCH_EVERY) && !watch_go_on(&target->watch))
			return -PTVM_END;
		if (file_io_write(target->io, target->fd, after ? entry.after : entry.before,
				  entry.size, (off_t)entry.offset))
			return ptvm_fail_errno(error, "%s", target->path);
	}
	return target->io->sync(target->io, target->fd) ? ptvm_fail_errno(error, "%s", target->path)
							: 0;
}

static int roll_back(const struct apply_target *target, const struct journal *journal,
		     struct ptvm_error *error)
{
	int r = 0;

	if (journal->state == JOURNAL_DONE)
		r = journal_mark(target->journal, JOURNAL_OPEN, target->io, error);
	if (!r)
		r = write_entries(target, journal, false, error);
	if (r)
		return r;
	if (target->io->remove(target->io, target->journal) ||
	    file_io_sync_directory(target->io, target->journal))
		return ptvm_fail_errno(error, "%s", target->journal);
	return 0;
}

int offset_apply(const struct perf_data *data, const struct tsc_offsets *offsets,
		 const struct apply_target *target, struct apply_result *ret,
		 struct ptvm_error *error)
{
	struct journal journal;
	int r;

	*ret = (struct apply_result){ 0 };
	/* Where the file system has no locks, what was read may be from before another run, or
	 * from the middle of it. */
	if (!access(target->journal, F_OK))
		return ptvm_fail(error, PTVM_INCONSISTENT, "%s: corrected by another run meanwhile",
				 target->path);
	r = draft(data, offsets, target, ret, error);
	if (r && r != -PTVM_END && !access(target->journal, F_OK))
		(void)target->io->remove(target->io, target->journal);
	if (r || !ret->changed)
		return r;
	r = journal_open(target->journal, &journal, error);
	if (r)
		return r;
	r = write_entries(target, &journal, true, error);
	if (!r)
		r = journal_mark(target->journal, JOURNAL_DONE, target->io, error);
	if (r)
		(void)roll_back(target, &journal, NULL);
	journal_close(&journal);
	return r;
}

static int check_entries(const struct apply_target *target, const struct journal *journal,
			 struct ptvm_error *error)
{
	for (uint64_t i = 0; i < journal->count; i++) {
		struct journal_entry entry = journal_entry(journal, i);
		uint8_t there[8];

		if (pread(target->fd, there, entry.size, (off_t)entry.offset) != entry.size)
			return ptvm_fail_errno(error, "%s", target->path);
		if (memcmp(there, entry.before, entry.size) &&
		    memcmp(there, entry.after, entry.size))
			return ptvm_fail(error, PTVM_INCONSISTENT,
					 "%s: changed since at offset %#" PRIx64
					 " (use -f to undo all the same)",
					 target->path, entry.offset);
	}
	return 0;
}

int offset_undo(const struct apply_target *target, const struct journal *journal, bool force,
		struct ptvm_error *error)
{
	off_t size = lseek(target->fd, 0, SEEK_END);
	int r = 0;

	if (size < 0 || (uint64_t)size != journal->file_size)
		return ptvm_fail(error, PTVM_INCONSISTENT,
				 "%s: not of the size that it had when it was corrected",
				 target->path);
	if (!force)
		r = check_entries(target, journal, error);
	return r ? r : roll_back(target, journal, error);
}
