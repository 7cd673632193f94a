#include "decode/perf/perf_feature.h"

#include "decode/base/byte_reader.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"
#include "decode/perf/perf_event.h"

/* A copy of a text, which a NUL may end early. */
static char *copy_text(struct perf_data *data, struct bytes text)
{
	const char *chars = text.size ? (const char *)text.data : "";

	return arena_strndup(&data->arena, chars, strnlen(chars, text.size));
}

/* A length, then that many bytes, padded with zeroes. */
static int take_string(struct perf_data *data, struct byte_reader *payload, const char **ret)
{
	struct bytes text = byte_reader_sized(payload, 4);
	char *copy;

	if (payload->is_bad)
		return -PTVM_BAD_INPUT;
	copy = copy_text(data, text);
	if (!copy)
		return -PTVM_NO_MEMORY;
	*ret = copy;
	return 0;
}

static int read_string(struct perf_data *data, struct bytes payload, const char **ret)
{
	struct byte_reader reader = { .left = payload };

	return take_string(data, &reader, ret);
}

/* Arguments joined by blanks. The text is never longer than the payload. */
static int read_cmdline(struct perf_data *data, struct bytes payload)
{
	char *line = arena_alloc(&data->arena, payload.size + 1), *end = line;
	struct byte_reader reader = { .left = payload };
	uint64_t count = byte_reader_number(&reader, 4);

	if (!line)
		return -PTVM_NO_MEMORY;
	if (reader.is_bad)
		return -PTVM_BAD_INPUT;
	data->features.cmdline = line;
	for (uint64_t i = 0; i < count; i++) {
		struct bytes word = byte_reader_sized(&reader, 4);

		if (reader.is_bad)
			return -PTVM_BAD_INPUT;
		if (i)
			*end++ = ' ';
		for (size_t k = 0; k < word.size && word.data[k]; k++)
			*end++ = (char)word.data[k];
	}
	return 0;
}

static int read_cpus(struct perf_data *data, struct bytes payload)
{
	struct byte_reader reader = { .left = payload };

	data->features.cpus_available = (uint32_t)byte_reader_number(&reader, 4);
	data->features.cpus_online = (uint32_t)byte_reader_number(&reader, 4);
	return reader.is_bad ? -PTVM_BAD_INPUT : 0;
}

static int read_u64s(struct bytes payload, uint64_t *first, uint64_t *second)
{
	if (!bytes_read(payload, 0, 8, first) || (second && !bytes_read(payload, 8, 8, second)))
		return -PTVM_BAD_INPUT;
	return 0;
}

int perf_build_id_read(struct perf_data *data, struct bytes entry)
{
	enum { PID = 8, ID = 12, SIZE = 32, NAME = 36, HAS_SIZE = 1 << 15 };
	struct perf_build_id build_id = { 0 };
	uint64_t misc, size;

	if (!bytes_read(entry, 4, 2, &misc) || !bytes_read(entry, 6, 2, &size) || size <= NAME ||
	    size > entry.size)
		return -PTVM_BAD_INPUT;
	build_id.cpumode = misc & 7;
	build_id.pid = (int32_t)bytes_number(entry, PID, 4);
	build_id.id =
		build_id_make(entry.data + ID, misc & HAS_SIZE ? entry.data[SIZE] : BUILD_ID_BYTES);
	build_id.filename = copy_text(data, bytes_slice(entry, NAME, size - NAME));
	if (!build_id.filename || !vec_push(&data->build_ids, build_id))
		return -PTVM_NO_MEMORY;
	return (int)size;
}

static int read_build_ids(struct perf_data *data, struct bytes payload)
{
	while (payload.size) {
		int r = perf_build_id_read(data, payload);

		if (r < 0)
			return r;
		payload = bytes_slice(payload, (uint64_t)r, payload.size);
	}
	return 0;
}

/* One entry: attr, number of ids, name, ids. Gives event `index` its name; without an attr section
 * in the file (`is_only`) also the event itself. */
static int read_description(struct perf_data *data, struct byte_reader *payload, uint64_t attr_size,
			    size_t index, bool is_only)
{
	struct bytes attr = byte_reader_take(payload, attr_size), ids;
	uint64_t count = byte_reader_number(payload, 4);
	const char *name;
	int r = take_string(data, payload, &name);

	if (r < 0)
		return r;
	ids = byte_reader_take(payload, 8 * count);
	if (is_only) {
		r = perf_event_add(data, attr, ids);
		if (r < 0)
			return r;
	}
	if (index < data->events.count && perf_event_attr_size(attr) &&
	    load_le(attr.data, 4) == data->events.items[index].type)
		data->events.items[index].name = name;
	return 0;
}

static int read_descriptions(struct perf_data *data, struct bytes payload)
{
	struct byte_reader reader = { .left = payload };
	uint64_t count = byte_reader_number(&reader, 4);
	uint64_t attr_size = byte_reader_number(&reader, 4);
	bool is_only = !data->events.count;

	if (reader.is_bad)
		return -PTVM_BAD_INPUT;
	for (uint64_t i = 0; i < count; i++) {
		int r = read_description(data, &reader, attr_size, i, is_only);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Pairs of offset and size of the AUXTRACE records. */
static int read_aux_index(struct perf_data *data, struct bytes payload)
{
	uint64_t count, offset;

	if (!bytes_read(payload, 0, 8, &count))
		return -PTVM_BAD_INPUT;
	for (uint64_t i = 0; i < count && bytes_read(payload, 8 + 16 * i, 8, &offset); i++)
		if (!vec_push(&data->aux_index, offset))
			return -PTVM_NO_MEMORY;
	if (data->aux_index.count)
		qsort(data->aux_index.items, data->aux_index.count, 8, sort_numbers);
	return data->aux_index.count < count ? -PTVM_BAD_INPUT : 0;
}

int perf_feature_read(struct perf_data *data, uint32_t feature, struct bytes payload)
{
	struct perf_features *f = &data->features;

	if (feature < sizeof(f->payloads) / sizeof(*f->payloads))
		f->payloads[feature] = payload;
	switch (feature) {
	case PERF_FEATURE_BUILD_ID: return read_build_ids(data, payload);
	case PERF_FEATURE_HOSTNAME: return read_string(data, payload, &f->hostname);
	case PERF_FEATURE_OSRELEASE: return read_string(data, payload, &f->osrelease);
	case PERF_FEATURE_VERSION: return read_string(data, payload, &f->version);
	case PERF_FEATURE_ARCH: return read_string(data, payload, &f->arch);
	case PERF_FEATURE_NRCPUS: return read_cpus(data, payload);
	case PERF_FEATURE_CPUDESC: return read_string(data, payload, &f->cpudesc);
	case PERF_FEATURE_CPUID: return read_string(data, payload, &f->cpuid);
	case PERF_FEATURE_TOTAL_MEM: return read_u64s(payload, &f->total_mem_kb, NULL);
	case PERF_FEATURE_CMDLINE: return read_cmdline(data, payload);
	case PERF_FEATURE_EVENT_DESC: return read_descriptions(data, payload);
	case PERF_FEATURE_AUXTRACE: return read_aux_index(data, payload);
	case PERF_FEATURE_SAMPLE_TIME:
		return read_u64s(payload, &f->first_sample_ns, &f->last_sample_ns);
	default: return 0;
	}
}
