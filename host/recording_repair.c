#include "host/recording_repair.h"

#include <fcntl.h>
#include <unistd.h>

#include "decode/base/vec.h"
#include "decode/perf_file.h"
#include "decode/perf_header.h"
#include "decode/perf_walk.h"
#include "host/recording_out.h"

enum { SIZE_FIELD = 8, ALIGN = 8 };

/* The last piece of trace, of which not all was written. */
struct cut_piece {
	uint64_t record, size; /* where it is, and how long it was meant to be; 0: none */
};

static int take_trace(const struct perf_item *item, struct recording_out *out,
		      struct cut_piece *cut)
{
	const uint64_t size = load_le(item->data + SIZE_FIELD, 8);
	const uint64_t whole = item->payload.size & ~(uint64_t)(ALIGN - 1);
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
	struct arena arena = { 0 };
	int r;

	perf_walk_init(&walk, data, &arena);
	while (!(r = perf_walk_next(&walk, &item))) {
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
	return recording_out_finish(out, NULL, 0, error);
}

static int repair(const struct perf_data *data, struct ptvm_error *error)
{
	struct recording_out out = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int r;

	if (data->data_size)
		return 0;
	out.start = out.end = data->data_offset;
	out.fd = open(data->file_path, O_RDWR | O_CLOEXEC);
	if (out.fd < 0)
		return ptvm_fail_errno(error, "%s", data->file_path);
	r = complete(data, &out, error);
	recording_out_close(&out);
	return r;
}

int recording_repair(const char *path, struct ptvm_error *error)
{
	struct perf_data data = { 0 };
	int r = perf_file_open(path, &data, error);

	if (!r)
		r = perf_header_read(&data, error);
	if (!r && data.is_pipe)
		r = ptvm_fail(error, PTVM_BAD_INPUT,
			      "%s: a recording from a pipe has no header to "
			      "complete",
			      path);
	if (!r)
		r = repair(&data, error);
	perf_data_close(&data);
	return r;
}
