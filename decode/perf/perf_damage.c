#include "decode/perf/perf_damage.h"

#include <inttypes.h>

#include "decode/base/lost_pages.h"
#include "decode/base/plural.h"

/* The first damage that hides what follows it. */
static int check_records(const struct perf_data *data, struct ptvm_error *error)
{
	uint64_t offset = data->bad_offset;
	const char *path = perf_data_place(data, &offset);

	if (!data->bad_reason)
		return 0;
	if (!data->skipped_bytes)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: %s at offset %#" PRIx64, path,
				 data->bad_reason, offset);
	return ptvm_fail(error, PTVM_BAD_INPUT,
			 "%s: %s at offset %#" PRIx64 " (%" PRIu64 " byte%s left out)", path,
			 data->bad_reason, offset, data->skipped_bytes,
			 plural(data->skipped_bytes));
}

/* A recorder that was killed leaves the size 0: that is all that there was. */
static int check_end(const struct perf_data *data, struct ptvm_error *error)
{
	const uint64_t left = data->file.size - data->data_offset;
	const uint64_t missing = data->data_size - left;

	if (data->is_pipe || data->data_size <= left)
		return 0;
	return ptvm_fail(error, PTVM_BAD_INPUT,
			 "%s: cut off, %" PRIu64 " byte%s of its records %s missing",
			 data->file_path, missing, plural(missing), missing == 1 ? "is" : "are");
}

/* The sentence is the count, `noun` with its ending, and `after`. */
static int check_count(const struct perf_data *data, uint64_t count, const char *noun,
		       const char *after, struct ptvm_error *error)
{
	return count ? ptvm_fail(error, PTVM_BAD_INPUT, "%s: %" PRIu64 " %s%s%s", data->path, count,
				 noun, plural(count), after)
		     : 0;
}

int perf_damage_check(const struct perf_data *data, unsigned kind, struct ptvm_error *error)
{
	switch (kind) {
	case 0: return check_records(data, error);
	case 1: return check_end(data, error);
	case 2:
		return check_count(data, data->bad_features, "damaged feature", " of the header",
				   error);
	case 3: return check_count(data, data->bad_records, "damaged record", "", error);
	case 4: return check_count(data, data->lost_records, "lost record", "", error);
	case 5:
		return check_count(data, data->left_out_queues, "queue",
				   " of trace left out, of too many", error);
	default: return 0;
	}
}

int perf_damage_check_pages(const struct perf_data *data, struct ptvm_error *error)
{
	int r = data->mapping.size ? lost_pages_check(data->file, data->file_path, error) : 0;

	for (size_t i = 0; i < data->parts.count && !r; i++) {
		const struct perf_part *part = &data->parts.items[i];

		r = lost_pages_check(bytes_slice(data->mapping, part->offset, part->size),
				     part->path, error);
	}
	return r;
}
