#include "decode/perf/perf_header.h"

#include "decode/perf/perf_event.h"
#include "decode/perf/perf_feature.h"
#include "decode/pt/pt_packet.h"

enum { FILE_HEADER = 104, PIPE_HEADER = 16, ATTRS = 24, DATA = 40, FEATURES = 72 };

static const char magic[] = "PERFILE2", swapped_magic[] = "2ELIFREP", old_magic[] = "PERFFILE";

int perf_header_check(struct bytes start, const char *path, struct ptvm_error *error)
{
	if (start.size < PIPE_HEADER)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: too short for a perf.data file", path);
	if (!memcmp(start.data, swapped_magic, 8))
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: recorded on a big-endian machine, which has no Intel PT",
				 path);
	if (!memcmp(start.data, old_magic, 8))
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: version 1 of perf.data, from before Intel PT", path);
	if (pt_psb_find(start.data, start.data + PT_PSB_SIZE))
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: a raw trace, which 'ptvm script --pt' reads, not a recording",
				 path);
	if (memcmp(start.data, magic, 8))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not a perf.data file", path);
	return 0;
}

/* The bytes that a {offset, size} pair at `at` points to. */
static struct bytes section(const struct perf_data *data, uint64_t at)
{
	return bytes_slice(data->file, bytes_number(data->file, at, 8),
			   bytes_number(data->file, at + 8, 8));
}

/* Whether the pair, or part of what it points to, lies beyond the end of the file. */
static bool is_cut(const struct perf_data *data, uint64_t at, struct bytes payload)
{
	uint64_t size;

	return !bytes_read(data->file, at + 8, 8, &size) || payload.size != size;
}

/* Each attr says its own size. Where that is impossible, `entry_size` of the header leads to the
 * next. */
static int read_attrs(struct perf_data *data, uint64_t entry_size)
{
	struct bytes attrs = section(data, ATTRS);

	while (attrs.size) {
		uint32_t size = perf_event_attr_size(attrs);
		uint64_t step = size ? size + (uint64_t)16 : entry_size;

		if (!size)
			data->bad_features++;
		if (step < 64 + 16 || step > attrs.size)
			break;
		if (size) {
			uint64_t at = (uint64_t)(attrs.data - data->file.data) + size;
			int r = perf_event_add(data, attrs, section(data, at));

			if (r == -PTVM_NO_MEMORY)
				return r;
		}
		attrs = bytes_slice(attrs, step, attrs.size);
	}
	return 0;
}

/* The table of features follows the data; perf writes it when recording is done. */
static int read_features(struct perf_data *data)
{
	uint64_t at = data->data_offset + data->data_size;

	if (!data->data_size || at < data->data_offset)
		return 0;
	for (uint32_t feature = 0; feature < PERF_FEATURES; feature++) {
		if (!(data->features.bitmap[feature / 64] >> feature % 64 & 1))
			continue;

		struct bytes payload = section(data, at);
		int r = perf_feature_read(data, feature, payload);

		if (r == -PTVM_NO_MEMORY)
			return r;
		data->bad_features += r < 0 || is_cut(data, at, payload);
		at += 16;
	}
	return 0;
}

static int read_file_header(struct perf_data *data, struct ptvm_error *error)
{
	int r;

	if (data->file.size < FILE_HEADER)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: cut off within its header",
				 data->file_path ? data->file_path : "recording");
	data->data_offset = bytes_number(data->file, DATA, 8);
	data->data_size = bytes_number(data->file, DATA + 8, 8);
	memcpy(data->features.bitmap, data->file.data + FEATURES, sizeof(data->features.bitmap));
	if (data->data_offset < FILE_HEADER || data->data_offset > data->file.size)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: its data lie outside of the file",
				 data->file_path ? data->file_path : "recording");
	r = read_attrs(data, bytes_number(data->file, 16, 8));
	return r < 0 ? r : read_features(data);
}

int perf_header_read(struct perf_data *data, struct ptvm_error *error)
{
	int r = perf_header_check(data->file, data->file_path ? data->file_path : "recording",
				  error);

	if (r < 0)
		return r;
	if (bytes_number(data->file, 8, 8) != PIPE_HEADER)
		return read_file_header(data, error);
	data->is_pipe = true;
	data->data_offset = PIPE_HEADER;
	return 0;
}
