#include "host/record/recording_out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include "decode/base/vec.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/perf_feature.h"

enum {
	ATTR_ENTRY_SIZE = RECORDING_ATTR_SIZE + 16,
	FEATURE_WORDS = 4,
	MAX_PIECES = 4,
};

struct section {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size, attr_entry_size;
	struct section attrs, data, event_types;
	uint64_t features[FEATURE_WORDS];
};

struct record_header {
	uint32_t type;
	uint16_t misc, size;
};

struct trace_record {
	struct record_header header;
	uint64_t size, offset, reference;
	uint32_t queue, tid, cpu, reserved;
};

/* Bytes on their way to the end of the file. */
struct pieces {
	struct iovec items[MAX_PIECES];
	int count;
	uint64_t size;
};

static_assert(sizeof(struct file_header) == RECORDING_HEADER_SIZE, "as perf has it");
static_assert(sizeof(struct trace_record) == 48, "as perf has it");

static void pieces_add(struct pieces *pieces, const void *data, uint64_t size)
{
	assert(pieces->count < MAX_PIECES);
	pieces->items[pieces->count++] = (struct iovec){ (void *)(uintptr_t)data, size };
	pieces->size += size;
}

/* Step over `done` bytes that are written. */
static void pieces_skip(struct pieces *pieces, size_t done)
{
	struct iovec *item = pieces->items;

	for (; done; item++) {
		size_t size = done < item->iov_len ? done : item->iov_len;

		item->iov_base = (uint8_t *)item->iov_base + size;
		item->iov_len -= size;
		done -= size;
	}
}

static int write_pieces(const struct recording_out *out, struct pieces *pieces, uint64_t at,
			struct ptvm_error *error)
{
	const uint64_t end = at + pieces->size;
	ssize_t n;

	while (at < end) {
		n = pwritev(out->fd, pieces->items, pieces->count, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ptvm_fail_errno(error, "cannot write the recording");
		at += (uint64_t)n;
		pieces_skip(pieces, (size_t)n);
	}
	return 0;
}

/* Append all of it, or leave the file as it was. */
static int append(struct recording_out *out, struct pieces *pieces, struct ptvm_error *error)
{
	int r = write_pieces(out, pieces, out->end, error);

	if (!r)
		out->end += pieces->size;
	else
		(void)!ftruncate(out->fd, (off_t)out->end);
	return r;
}

static int append_locked(struct recording_out *out, struct pieces *pieces, struct ptvm_error *error)
{
	int r;

	(void)pthread_mutex_lock(&out->lock);
	r = append(out, pieces, error);
	(void)pthread_mutex_unlock(&out->lock);
	return r;
}

static int append_one(struct recording_out *out, const void *data, uint64_t size,
		      struct ptvm_error *error)
{
	struct pieces pieces = { .count = 0 };

	pieces_add(&pieces, data, size);
	return append(out, &pieces, error);
}

static struct file_header make_header(const struct recording_out *out, size_t event_count)
{
	const uint64_t attrs_size = event_count * ATTR_ENTRY_SIZE;

	return (struct file_header){
		.magic = "PERFILE2",
		.size = RECORDING_HEADER_SIZE,
		.attr_entry_size = ATTR_ENTRY_SIZE,
		.attrs = { out->start - attrs_size, attrs_size },
		.data = { out->start, 0 },
	};
}

/* Ids, and a hole with room for more. */
static int write_ids(struct recording_out *out, const struct recording_event *event,
		     struct recording_ids *ids, struct ptvm_error *error)
{
	int r;

	*ids = (struct recording_ids){ out->end, event->id_count,
				       event->id_count + event->id_spare };
	r = append_one(out, event->ids, event->id_count * sizeof(uint64_t), error);
	out->end += event->id_spare * sizeof(uint64_t);
	return r;
}

static int write_attr(struct recording_out *out, const struct recording_event *event,
		      const struct recording_ids *ids, struct ptvm_error *error)
{
	const struct section section = { ids->offset, ids->count * sizeof(uint64_t) };
	struct pieces pieces = { .count = 0 };

	pieces_add(&pieces, event->attr, RECORDING_ATTR_SIZE);
	pieces_add(&pieces, &section, sizeof(section));
	return append(out, &pieces, error);
}

/* The ids of all events, then their attrs, each of which says where its ids are. */
static int write_events(struct recording_out *out, const struct recording_event *events,
			size_t count, struct ptvm_error *error)
{
	int r = 0;

	out->ids = calloc(count ? count : 1, sizeof(*out->ids));
	if (!out->ids)
		return -PTVM_NO_MEMORY;
	out->event_count = count;
	for (size_t i = 0; i < count && !r; i++)
		r = write_ids(out, &events[i], &out->ids[i], error);
	for (size_t i = 0; i < count && !r; i++)
		r = write_attr(out, &events[i], &out->ids[i], error);
	return r;
}

int recording_out_create(struct recording_out *out, const char *path,
			 const struct recording_event *events, size_t count,
			 struct ptvm_error *error)
{
	struct file_header header;
	int r;

	*out = (struct recording_out){ .end = RECORDING_HEADER_SIZE,
				       .lock = PTHREAD_MUTEX_INITIALIZER };
	out->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out->fd < 0)
		return ptvm_fail_errno(error, "%s", path);
	/* ptvm correlate may read it meanwhile, but what it corrects in place must be all of it. A
	 * file system without locks has none. */
	(void)flock(out->fd, LOCK_SH | LOCK_NB);
	r = write_events(out, events, count, error);
	if (r)
		return r;
	out->start = out->end;
	header = make_header(out, count);
	if (pwrite(out->fd, &header, sizeof(header), 0) != sizeof(header))
		return ptvm_fail_errno(error, "%s", path);
	return 0;
}

/* The id before their count, so that a reader never finds one that is not there yet. */
int recording_out_add_id(struct recording_out *out, size_t event, uint64_t id,
			 struct ptvm_error *error)
{
	struct recording_ids *ids = &out->ids[event];
	const uint64_t size = (ids->count + 1) * sizeof(id);
	const uint64_t attr = out->start - (out->event_count - event) * ATTR_ENTRY_SIZE;
	const uint64_t size_at = attr + RECORDING_ATTR_SIZE + offsetof(struct section, size);

	if (ids->count == ids->room)
		return ptvm_fail(error, PTVM_NOT_FOUND, "no room for another thread");
	if (pwrite(out->fd, &id, sizeof(id), (off_t)(ids->offset + size - sizeof(id))) !=
		    sizeof(id) ||
	    pwrite(out->fd, &size, sizeof(size), (off_t)size_at) != sizeof(size))
		return ptvm_fail_errno(error, "cannot write the recording");
	ids->count++;
	return 0;
}

int recording_out_records(struct recording_out *out, const struct ring_bytes *bytes,
			  struct ptvm_error *error)
{
	struct pieces pieces = { .count = 0 };

	pieces_add(&pieces, bytes->first, bytes->first_size);
	pieces_add(&pieces, bytes->second, bytes->second_size);
	return append_locked(out, &pieces, error);
}

/* Reserve a place for trace, and write the record in front of it. */
static int begin_trace(struct recording_out *out, const struct trace_record *record,
		       struct ptvm_error *error)
{
	const struct recording_trace_entry entry = { out->end, sizeof(*record) };
	int r;

	if (!vec_push(&out->index, entry))
		return -PTVM_NO_MEMORY;
	r = append_one(out, record, sizeof(*record), error);
	if (r)
		out->index.count--;
	else
		out->end += record->size;
	return r;
}

/* A place at the end of the file is given back. */
static void give_up_trace(struct recording_out *out, uint64_t at, uint64_t size)
{
	(void)pthread_mutex_lock(&out->lock);
	if (out->end == at + size) {
		out->end = at - sizeof(struct trace_record);
		out->index.count--;
		(void)!ftruncate(out->fd, (off_t)out->end);
	}
	(void)pthread_mutex_unlock(&out->lock);
}

/* Trace is most of what is written: threads wait for each other only to reserve their places. */
int recording_out_trace(struct recording_out *out, const struct recording_trace *trace,
			const struct ring_bytes *bytes, struct ptvm_error *error)
{
	static const uint8_t padding[8]; /* zeroes are PAD packets */
	const uint64_t size = bytes->first_size + bytes->second_size;
	const uint64_t padded = (size + 7) & ~(uint64_t)7;
	const struct trace_record record = {
		.header = { PERF_AUXTRACE, 0, sizeof(record) },
		.size = padded,
		.offset = trace->offset,
		.reference = trace->reference,
		.queue = trace->queue,
		.tid = (uint32_t)trace->tid,
		.cpu = (uint32_t)trace->cpu,
	};
	struct pieces pieces = { .count = 0 };
	uint64_t at;
	int r;

	(void)pthread_mutex_lock(&out->lock);
	r = begin_trace(out, &record, error);
	at = out->end - padded;
	(void)pthread_mutex_unlock(&out->lock);
	if (r)
		return r;
	pieces_add(&pieces, bytes->first, bytes->first_size);
	pieces_add(&pieces, bytes->second, bytes->second_size);
	pieces_add(&pieces, padding, padded - size);
	r = write_pieces(out, &pieces, at, error);
	if (r)
		give_up_trace(out, at, padded);
	return r;
}

int recording_out_round(struct recording_out *out, struct ptvm_error *error)
{
	const struct record_header round = { PERF_FINISHED_ROUND, 0, sizeof(round) };
	struct pieces pieces = { .count = 0 };

	pieces_add(&pieces, &round, sizeof(round));
	return append_locked(out, &pieces, error);
}

/* How many pieces of trace there are, and where. */
static int append_index(struct recording_out *out, struct ptvm_error *error)
{
	const uint64_t count = out->index.count;
	struct pieces pieces = { .count = 0 };

	pieces_add(&pieces, &count, sizeof(count));
	pieces_add(&pieces, out->index.items, count * sizeof(out->index.items[0]));
	return append(out, &pieces, error);
}

static size_t count_below(const struct recording_feature *features, size_t count, unsigned number)
{
	size_t below = 0;

	while (below < count && features[below].number < number)
		below++;
	return below;
}

/* Where sections are, then the sections: the first `split` features, the index, the others. */
static int append_features(struct recording_out *out, const struct recording_feature *features,
			   size_t count, struct ptvm_error *error)
{
	const size_t split = count_below(features, count, PERF_FEATURE_AUXTRACE);
	struct section section = { out->end + (count + 1) * sizeof(section), 0 };
	const uint64_t index_size =
		sizeof(uint64_t) + out->index.count * sizeof(out->index.items[0]);
	int r = 0;

	for (size_t i = 0; i <= count && !r; i++) {
		section.size = i == split ? index_size : features[i - (i > split)].size;
		r = append_one(out, &section, sizeof(section), error);
		section.offset += section.size;
	}
	for (size_t i = 0; i <= count && !r; i++) {
		if (i == split)
			r = append_index(out, error);
		else
			r = append_one(out, features[i - (i > split)].data,
				       features[i - (i > split)].size, error);
	}
	return r;
}

static int complete_header(const struct recording_out *out, uint64_t data_end,
			   const struct recording_feature *features, size_t count,
			   struct ptvm_error *error)
{
	struct file_header header;

	if (pread(out->fd, &header, sizeof(header), 0) != sizeof(header))
		return ptvm_fail_errno(error, "cannot read the recording");
	header.data.size = data_end - out->start;
	/* A recorder that was killed may have announced features that it never wrote. */
	memset(header.features, 0, sizeof(header.features));
	header.features[0] = (uint64_t)1 << PERF_FEATURE_AUXTRACE;
	for (size_t i = 0; i < count; i++)
		header.features[features[i].number / 64] |= (uint64_t)1 << features[i].number % 64;
	if (pwrite(out->fd, &header, sizeof(header), 0) != sizeof(header))
		return ptvm_fail_errno(error, "cannot write the recording");
	return 0;
}

int recording_out_finish(struct recording_out *out, const struct recording_feature *features,
			 size_t count, struct ptvm_error *error)
{
	const uint64_t data_end = out->end;
	int r;

	r = append_features(out, features, count, error);
	if (!r)
		r = complete_header(out, data_end, features, count, error);
	if (r) {
		(void)!ftruncate(out->fd, (off_t)data_end);
		out->end = data_end;
	}
	return r;
}

uint64_t recording_out_size(struct recording_out *out)
{
	uint64_t size;

	(void)pthread_mutex_lock(&out->lock);
	size = out->end;
	(void)pthread_mutex_unlock(&out->lock);
	return size;
}

void recording_out_close(struct recording_out *out)
{
	if (out->end && out->fd >= 0)
		(void)close(out->fd);
	vec_free(&out->index);
	free(out->ids);
	*out = (struct recording_out){ .fd = -1 };
}
