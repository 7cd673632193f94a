#include "host/record/recording_repair.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "decode/perf/perf_feature.h"
#include "decode/perf/perf_file.h"
#include "decode/perf/perf_header.h"
#include "decode/perf/perf_walk.h"
#include "host/record/recording_directory.h"
#include "host/record/recording_features.h"
#include "host/record/recording_out.h"

enum {
	SIZE_FIELD = 8,
	ATTRS_FIELD = 24,
	PAYLOADS = sizeof(((struct perf_features *)NULL)->payloads) / sizeof(struct bytes),
};

/* The last piece of trace, of which not all was written. */
struct cut_piece {
	uint64_t record, size; /* where it is, and how long it was meant to be; 0: none */
};

static int take_trace(const struct perf_item *item, struct recording_out *out,
		      struct cut_piece *cut)
{
	const uint64_t size = load_le(item->data + SIZE_FIELD, 8);
	const uint64_t whole = item->payload.size;
	const struct recording_trace_entry entry = { item->file_offset, item->size };

	if (size && !whole)
		return 0;
	if (whole < size)
		*cut = (struct cut_piece){ item->file_offset, whole };
	out->end = item->payload_offset + whole;
	return vec_push(&out->index, entry) ? 0 : -PTVM_NO_MEMORY;
}

/* Go through the records: `out` ends behind the last whole one. */
static int take_stock(const struct perf_data *data, struct recording_out *out,
		      struct cut_piece *cut)
{
	struct perf_walk walk = { 0 };
	struct perf_item item;
	struct arena arena = { .is_spooled = true };
	int r;

	perf_walk_init(&walk, data, &arena);
	while (!(r = perf_walk_next(&walk, &item))) {
		/* Unpacked records have the place of the record that they were packed into. */
		if (item.file_offset < out->end)
			continue;
		if (item.type == PERF_AUXTRACE)
			r = take_trace(&item, out, cut);
		else
			out->end = item.file_offset + item.size + item.payload.size;
		if (r)
			break;
	}
	perf_walk_deinit(&walk);
	arena_free(&arena);
	return r == -PTVM_END ? 0 : r;
}

/* The features that the recorder kept beside the recording when it began; none where that file is
 * gone. */
static void list_features(const struct perf_data *early, struct recording_features *ret)
{
	const struct bytes *payload;

	for (unsigned number = 1; number < PAYLOADS; number++) {
		payload = &early->features.payloads[number];
		if (payload->size && number != PERF_FEATURE_AUXTRACE &&
		    ret->count < RECORDING_MAX_FEATURES)
			ret->items[ret->count++] =
				(struct recording_feature){ number, payload->data, payload->size };
	}
}

static int finish(const struct perf_data *data, struct recording_out *out, struct ptvm_error *error)
{
	struct recording_features features = { 0 }; /* lie in the file */
	struct perf_data early = { 0 };
	char path[PATH_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "%s" RECORDING_EARLY_FEATURES, data->file_path);
	if (!perf_file_open(path, &early, NULL) && !perf_header_read(&early, NULL) &&
	    !early.bad_features)
		list_features(&early, &features);
	r = recording_out_finish(out, features.items, features.count, error);
	perf_data_close(&early);
	if (!r)
		(void)unlink(path);
	return r;
}

static int complete(const struct perf_data *data, struct recording_out *out,
		    struct ptvm_error *error)
{
	struct cut_piece cut = { 0 };
	int r = take_stock(data, out, &cut);

	if (r)
		return r;
	if (cut.record && pwrite(out->fd, &cut.size, sizeof(cut.size),
				 (off_t)(cut.record + SIZE_FIELD)) != sizeof(cut.size))
		return ptvm_fail_errno(error, "%s", data->file_path);
	if (ftruncate(out->fd, (off_t)out->end))
		return ptvm_fail_errno(error, "%s", data->file_path);
	return finish(data, out, error);
}

/* Is all that is to stay in front of the data? What is behind them is written anew. */
static bool is_in_order(const struct perf_data *data)
{
	uint64_t offset, size, attrs, attrs_size;

	if (!bytes_read(data->file, ATTRS_FIELD, 8, &attrs) ||
	    !bytes_read(data->file, ATTRS_FIELD + 8, 8, &attrs_size) ||
	    data->data_offset > data->file.size || data->data_offset < RECORDING_HEADER_SIZE ||
	    attrs > data->data_offset || attrs_size > data->data_offset - attrs)
		return false;
	for (size_t i = 0; i < data->events.count; i++) {
		const struct bytes attr = data->events.items[i].attr;

		offset = load_le(attr.data + attr.size, 8);
		size = load_le(attr.data + attr.size + 8, 8);
		if (offset > data->data_offset || size > data->data_offset - offset)
			return false;
	}
	return true;
}

static int repair(const struct perf_data *data, struct ptvm_error *error)
{
	struct recording_out out = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int r;

	if (data->data_size)
		return 0;
	if (!is_in_order(data))
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: the header points to places behind the data",
				 data->file_path);
	out.start = out.end = data->data_offset;
	out.fd = open(data->file_path, O_RDWR | O_CLOEXEC);
	if (out.fd < 0)
		return ptvm_fail_errno(error, "%s", data->file_path);
	r = complete(data, &out, error);
	recording_out_close(&out);
	return r;
}

/* Keep out whoever works on it: a recorder that is alive has the file complete when it ends.
 * Returns a descriptor that holds the lock. */
static int lock(const struct perf_data *data, struct ptvm_error *error)
{
	_cleanup_close_ int fd = open(data->file_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return ptvm_fail_errno(error, "%s", data->file_path);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return ptvm_fail(error, PTVM_SYSTEM, "%s: another ptvm is at work",
				 data->file_path);
	return take_fd(&fd);
}

int recording_repair(const char *path, struct ptvm_error *error)
{
	_cleanup_close_ int locked = -1;
	struct perf_data data = { 0 };
	int r = perf_file_open(path, &data, error);

	if (!r && (locked = lock(&data, error)) < 0)
		r = locked;
	if (!r)
		r = perf_header_read(&data, error);
	if (!r && data.is_pipe)
		r = ptvm_fail(error, PTVM_BAD_INPUT,
			      "%s: a recording from a pipe has no header to "
			      "complete",
			      path);
	if (!r)
		r = repair(&data, error);
	if (!r)
		recording_directory_drop_halves(path);
	perf_data_close(&data);
	return r;
}
