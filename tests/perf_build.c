#include "tests/perf_build.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 104, ID_SIZE = 8 };

static void put(struct perf_build *build, const void *bytes, size_t size)
{
	if (build->size + size > build->room) {
		build->room = 2 * (build->size + size);
		build->bytes = realloc(build->bytes, build->room);
		if (!build->bytes)
			abort();
	}
	if (size)
		memcpy(build->bytes + build->size, bytes, size);
	build->size += size;
}

static void store(uint8_t *at, uint64_t value, size_t size)
{
	memcpy(at, &value, size);
}

void perf_build_event(struct perf_build *build, uint32_t type, uint64_t config,
		      uint64_t sample_type, uint64_t id, uint32_t attr_size)
{
	uint8_t *attr = build->attrs + build->attrs_size;

	memset(attr, 0, attr_size + (size_t)16);
	store(attr, type, 4);
	store(attr + 4, attr_size, 4);
	store(attr + 8, config, 8);
	store(attr + 24, sample_type, 8);
	store(attr + 40, 1 << 18, 8); /* sample_id_all */
	store(attr + attr_size, build->ids_size, 8);
	store(attr + attr_size + 8, ID_SIZE, 8);
	store(build->ids + build->ids_size, id, ID_SIZE);
	build->attrs_size += attr_size + (size_t)16;
	build->ids_size += ID_SIZE;
}

void perf_build_pt(struct perf_build *build, uint64_t snapshot, uint64_t per_cpu)
{
	const uint64_t info[] = { 1,        BUILD_PT_TYPE, 31,    1 << 30, 1000, 1, 0x400, 0x800, 3,
				  snapshot, per_cpu,       0x200, 0x3c000, 160,  2, 2,     0,     0,
				  0 };

	perf_build_event(build, BUILD_PT_TYPE, BUILD_PT_CONFIG, BUILD_SAMPLE_TYPE, 1, 128);
	perf_build_record(build, 70, 0, info, sizeof(info));
}

void perf_build_record(struct perf_build *build, uint32_t type, uint16_t misc, const void *body,
		       size_t size)
{
	uint8_t header[8];

	store(header, type, 4);
	store(header + 4, misc, 2);
	store(header + 6, 8 + size, 2);
	put(build, header, sizeof(header));
	put(build, body, size);
}

void perf_build_kernel(struct perf_build *build, uint32_t type, uint16_t misc, const void *body,
		       size_t size, struct build_trailer trailer)
{
	uint8_t whole[512];

	if (size)
		memcpy(whole, body, size);
	store(whole + size, trailer.pid, 4);
	store(whole + size + 4, trailer.tid, 4);
	store(whole + size + 8, trailer.time, 8);
	store(whole + size + 16, trailer.cpu, 8);
	store(whole + size + 24, trailer.id, 8);
	perf_build_record(build, type, misc, whole, size + 32);
}

void perf_build_aux(struct perf_build *build, uint32_t index, uint64_t offset, const void *trace,
		    size_t size)
{
	uint8_t body[40] = { 0 };

	build->aux_index[build->aux_index_count++] = build->size;
	store(body, size, 8);
	store(body + 8, offset, 8);
	store(body + 16, build->reference ? build->reference : 77, 8);
	store(body + 24, index, 4);
	store(body + 28, UINT32_MAX, 4);
	store(body + 32, index, 4);
	perf_build_record(build, 71, 0, body, sizeof(body));
	put(build, trace, size);
}

void perf_build_aux_event(struct perf_build *build, uint32_t cpu, uint64_t time, uint64_t offset,
			  uint64_t size, uint64_t flags)
{
	const uint64_t body[] = { offset, size, flags };

	perf_build_kernel(build, 11, 0, body, sizeof(body),
			  (struct build_trailer){ 5, 6, time, cpu, 1 });
}

/* Ids and attrs follow the header, then the records and the one feature. */
struct bytes perf_build_file(struct perf_build *build)
{
	size_t attrs = HEADER + build->ids_size, data = attrs + build->attrs_size;
	size_t table = data + build->size, index = table + 16;
	size_t size = index + 8 + 16 * build->aux_index_count;
	uint8_t *file = calloc(1, size);

	if (!file)
		abort();
	memcpy(file, "PERFILE2", 8);
	store(file + 8, HEADER, 8);
	store(file + 16, 144, 8);
	store(file + 24, attrs, 8);
	store(file + 32, build->attrs_size, 8);
	store(file + 40, data, 8);
	store(file + 48, build->size, 8);
	store(file + 72, 1 << 18, 8); /* the index of AUXTRACE */
	memcpy(file + HEADER, build->ids, build->ids_size);
	memcpy(file + attrs, build->attrs, build->attrs_size);
	for (size_t at = attrs; at < data; at += 16) {
		at += (size_t)load_le(file + at + 4, 4);
		store(file + at, HEADER + load_le(file + at, 8), 8);
	}
	if (build->size)
		memcpy(file + data, build->bytes, build->size);
	store(file + table, index, 8);
	store(file + table + 8, size - index, 8);
	store(file + index, build->aux_index_count, 8);
	for (size_t i = 0; i < build->aux_index_count; i++) {
		store(file + index + 8 + 16 * i, data + build->aux_index[i], 8);
		store(file + index + 16 + 16 * i, 48, 8);
	}
	free(build->whole);
	build->whole = file;
	return (struct bytes){ file, size };
}

struct bytes perf_build_pipe(struct perf_build *build)
{
	struct perf_build pipe = { 0 };
	struct bytes whole;

	put(&pipe, "PERFILE2", 8);
	put(&pipe, "\x10\0\0\0\0\0\0", 8);
	for (size_t at = 0; at < build->attrs_size; at += 16) {
		uint8_t body[512];
		size_t size = (size_t)load_le(build->attrs + at + 4, 4);
		size_t id = (size_t)load_le(build->attrs + at + size, 8);

		memcpy(body, build->attrs + at, size);
		memcpy(body + size, build->ids + id, ID_SIZE);
		perf_build_record(&pipe, 64, 0, body, size + ID_SIZE);
		at += size;
	}
	put(&pipe, build->bytes, build->size);
	whole = (struct bytes){ pipe.bytes, pipe.size };
	free(build->whole);
	build->whole = pipe.bytes;
	return whole;
}

void perf_build_free(struct perf_build *build)
{
	free(build->bytes);
	free(build->whole);
}
