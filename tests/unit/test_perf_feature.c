#include "decode/perf/perf_feature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"

/* A recording without anything, and a payload that grows. */
struct bench {
	struct perf_data data;
	uint8_t payload[1024];
	size_t size;
	uint8_t *exact; /* the same in memory of just its size */
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->data.file.size = sizeof(bench->payload);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	vec_free(&bench->data.events);
	vec_free(&bench->data.build_ids);
	vec_free(&bench->data.aux_index);
	arena_free(&bench->data.arena);
	free(bench->exact);
	free(bench);
	return 0;
}

static void put(struct bench *bench, const void *bytes, size_t size)
{
	assert_true(bench->size + size <= sizeof(bench->payload));
	memcpy(bench->payload + bench->size, bytes, size);
	bench->size += size;
}

static void put_u32(struct bench *bench, uint32_t value)
{
	put(bench, &value, 4);
}

static void put_u64(struct bench *bench, uint64_t value)
{
	put(bench, &value, 8);
}

/* A string in a field of `room` bytes. */
static void put_string(struct bench *bench, const char *text, uint32_t room)
{
	char field[256] = "";

	memcpy(field, text, strlen(text));
	put_u32(bench, room);
	put(bench, field, room);
}

static struct bytes cut(struct bench *bench, size_t size)
{
	free(bench->exact);
	bench->exact = malloc(size ? size : 1);
	assert_non_null(bench->exact);
	memcpy(bench->exact, bench->payload, size);
	return (struct bytes){ bench->exact, size };
}

/* Read what was put, and begin anew. */
static int read_feature(struct bench *bench, uint32_t feature)
{
	const size_t size = bench->size;

	bench->size = 0;
	return perf_feature_read(&bench->data, feature, cut(bench, size));
}

static void strings_end_with_a_nul_or_with_their_field(void **state)
{
	struct bench *bench = *state;

	put_string(bench, "host.example", 64);
	assert_int_equal(read_feature(bench, PERF_FEATURE_HOSTNAME), 0);
	assert_string_equal(bench->data.features.hostname, "host.example");
	put_string(bench, "6.1.0", 5);
	assert_int_equal(read_feature(bench, PERF_FEATURE_OSRELEASE), 0);
	assert_string_equal(bench->data.features.osrelease, "6.1.0");
	put_string(bench, "", 0);
	assert_int_equal(read_feature(bench, PERF_FEATURE_VERSION), 0);
	assert_string_equal(bench->data.features.version, "");
}

static void each_string_has_its_place(void **state)
{
	struct bench *bench = *state;
	const struct perf_features *features = &bench->data.features;
	const struct {
		uint32_t feature;
		const char *const *place;
	} cases[] = {
		{ PERF_FEATURE_HOSTNAME, &features->hostname },
		{ PERF_FEATURE_OSRELEASE, &features->osrelease },
		{ PERF_FEATURE_VERSION, &features->version },
		{ PERF_FEATURE_ARCH, &features->arch },
		{ PERF_FEATURE_CPUDESC, &features->cpudesc },
		{ PERF_FEATURE_CPUID, &features->cpuid },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char name[] = { (char)('a' + i), 0 };

		assert_null(*cases[i].place);
		put_string(bench, name, 8);
		assert_int_equal(read_feature(bench, cases[i].feature), 0);
		assert_string_equal(*cases[i].place, name);
	}
}

static void a_string_longer_than_its_payload_is_refused(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 9);
	put(bench, "too few", 8);
	assert_int_equal(read_feature(bench, PERF_FEATURE_ARCH), -PTVM_BAD_INPUT);
	put_u32(bench, UINT32_MAX);
	assert_int_equal(read_feature(bench, PERF_FEATURE_ARCH), -PTVM_BAD_INPUT);
	put(bench, "\1\0\0", 3);
	assert_int_equal(read_feature(bench, PERF_FEATURE_ARCH), -PTVM_BAD_INPUT);
	assert_null(bench->data.features.arch);
}

static void numbers_are_read_in_perfs_order(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 8);
	put_u32(bench, 6);
	assert_int_equal(read_feature(bench, PERF_FEATURE_NRCPUS), 0);
	assert_int_equal(bench->data.features.cpus_available, 8);
	assert_int_equal(bench->data.features.cpus_online, 6);
	put_u64(bench, 1ull << 33);
	assert_int_equal(read_feature(bench, PERF_FEATURE_TOTAL_MEM), 0);
	assert_int_equal(bench->data.features.total_mem_kb, 1ull << 33);
	put_u64(bench, 1000);
	put_u64(bench, 2000);
	assert_int_equal(read_feature(bench, PERF_FEATURE_SAMPLE_TIME), 0);
	assert_int_equal(bench->data.features.first_sample_ns, 1000);
	assert_int_equal(bench->data.features.last_sample_ns, 2000);
}

static void numbers_that_are_cut_short_are_refused(void **state)
{
	struct bench *bench = *state;

	for (size_t size = 0; size < 8; size++) {
		struct bytes payload = cut(bench, size);

		assert_int_equal(perf_feature_read(&bench->data, PERF_FEATURE_NRCPUS, payload),
				 -PTVM_BAD_INPUT);
		assert_int_equal(perf_feature_read(&bench->data, PERF_FEATURE_TOTAL_MEM, payload),
				 -PTVM_BAD_INPUT);
	}
	for (size_t size = 0; size < 16; size++)
		assert_int_equal(
			perf_feature_read(&bench->data, PERF_FEATURE_SAMPLE_TIME, cut(bench, size)),
			-PTVM_BAD_INPUT);
}

static void arguments_are_joined_by_blanks(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 3);
	put_string(bench, "perf", 64);
	put_string(bench, "record", 6);
	put_string(bench, "", 4);
	assert_int_equal(read_feature(bench, PERF_FEATURE_CMDLINE), 0);
	assert_string_equal(bench->data.features.cmdline, "perf record ");
}

static void arguments_before_damage_are_kept(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, UINT32_MAX);
	put_string(bench, "perf", 4);
	put_u32(bench, 5);
	put(bench, "four", 4);
	assert_int_equal(read_feature(bench, PERF_FEATURE_CMDLINE), -PTVM_BAD_INPUT);
	assert_string_equal(bench->data.features.cmdline, "perf");
}

/* Each argument takes four bytes at least, so that blanks between empty ones have room. */
static void many_empty_arguments_fit(void **state)
{
	enum { COUNT = 200 };
	struct bench *bench = *state;

	put_u32(bench, COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		put_u32(bench, 0);
	assert_int_equal(read_feature(bench, PERF_FEATURE_CMDLINE), 0);
	assert_int_equal(strlen(bench->data.features.cmdline), COUNT - 1);
}

/* A BUILD_ID entry of `size` bytes: what follows the name of it are zeroes. */
static void put_build_id(struct bench *bench, uint16_t misc, uint16_t size, uint8_t id_size,
			 const char *name)
{
	uint8_t entry[128] = {
		[4] = (uint8_t)misc, (uint8_t)(misc >> 8), (uint8_t)size, (uint8_t)(size >> 8)
	};
	const int32_t pid = -1;

	memcpy(entry + 8, &pid, 4);
	memset(entry + 12, 0xab, 20);
	entry[32] = id_size;
	memcpy(entry + 36, name, strlen(name));
	put(bench, entry, size);
}

static void build_ids_follow_each_other(void **state)
{
	struct bench *bench = *state;
	const struct perf_build_id *ids;

	put_build_id(bench, 1 | 1 << 15, 36 + 32, 20, "[kernel.kallsyms]");
	put_build_id(bench, 2 | 1 << 15, 36 + 8, 16, "/bin/sh");
	assert_int_equal(read_feature(bench, PERF_FEATURE_BUILD_ID), 0);
	assert_int_equal(bench->data.build_ids.count, 2);
	ids = bench->data.build_ids.items;
	assert_int_equal(ids[0].cpumode, 1);
	assert_int_equal(ids[0].pid, -1);
	assert_int_equal(ids[0].id.size, 20);
	assert_int_equal(ids[0].id.bytes[19], 0xab);
	assert_string_equal(ids[0].filename, "[kernel.kallsyms]");
	assert_int_equal(ids[1].cpumode, 2);
	assert_int_equal(ids[1].id.size, 16);
	assert_string_equal(ids[1].filename, "/bin/sh");
}

static void old_build_ids_have_twenty_bytes(void **state)
{
	struct bench *bench = *state;

	put_build_id(bench, 2, 40, 16, "a");
	put_build_id(bench, 2 | 1 << 15, 40, 255, "b");
	assert_int_equal(read_feature(bench, PERF_FEATURE_BUILD_ID), 0);
	assert_int_equal(bench->data.build_ids.items[0].id.size, 20);
	assert_int_equal(bench->data.build_ids.items[1].id.size, 20);
}

static void a_name_ends_with_its_build_id(void **state)
{
	struct bench *bench = *state;

	put_build_id(bench, 2, 40, 0, "four");
	put_build_id(bench, 2, 40, 0, "next");
	assert_int_equal(read_feature(bench, PERF_FEATURE_BUILD_ID), 0);
	assert_string_equal(bench->data.build_ids.items[0].filename, "four");
}

static void a_damaged_build_id_ends_the_list(void **state)
{
	struct bench *bench = *state;

	put_build_id(bench, 2, 40, 0, "a");
	put_build_id(bench, 2, 36, 0, "");
	assert_int_equal(read_feature(bench, PERF_FEATURE_BUILD_ID), -PTVM_BAD_INPUT);
	assert_int_equal(bench->data.build_ids.count, 1);
	put_build_id(bench, 2, 40, 0, "b");
	bench->size--;
	assert_int_equal(read_feature(bench, PERF_FEATURE_BUILD_ID), -PTVM_BAD_INPUT);
	assert_int_equal(bench->data.build_ids.count, 1);
	put(bench, "\0\0\0\0\0\0", 7);
	assert_int_equal(read_feature(bench, PERF_FEATURE_BUILD_ID), -PTVM_BAD_INPUT);
}

static void a_build_id_tells_where_the_next_one_is(void **state)
{
	struct bench *bench = *state;

	put_build_id(bench, 2, 48, 0, "a");
	put(bench, "rest", 4);
	assert_int_equal(perf_build_id_read(&bench->data, cut(bench, bench->size)), 48);
}

/* An entry of EVENT_DESC: an attr of 64 bytes, one id and a name. */
static void put_description(struct bench *bench, uint32_t type, uint64_t id, const char *name)
{
	uint8_t attr[64] = { 0 };

	memcpy(attr, &type, 4);
	memcpy(attr + 4, &(uint32_t){ sizeof(attr) }, 4);
	put(bench, attr, sizeof(attr));
	put_u32(bench, 1);
	put_string(bench, name, 16);
	put_u64(bench, id);
}

static void descriptions_make_events_where_there_are_none(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 2);
	put_u32(bench, 64);
	put_description(bench, 8, 100, "intel_pt//");
	put_description(bench, 1, 200, "dummy:u");
	assert_int_equal(read_feature(bench, PERF_FEATURE_EVENT_DESC), 0);
	assert_int_equal(bench->data.events.count, 2);
	assert_int_equal(bench->data.events.items[0].type, 8);
	assert_string_equal(bench->data.events.items[0].name, "intel_pt//");
	assert_int_equal(bench->data.events.items[1].ids[0], 200);
	assert_string_equal(bench->data.events.items[1].name, "dummy:u");
}

static void descriptions_name_the_events_that_are_there(void **state)
{
	struct bench *bench = *state;
	const struct perf_event events[] = { { .type = 8, .name = "" }, { .type = 1, .name = "" } };

	bench->data.events.items = malloc(sizeof(events));
	assert_non_null(bench->data.events.items);
	memcpy(bench->data.events.items, events, sizeof(events));
	bench->data.events.count = bench->data.events.room = 2;
	put_u32(bench, 3);
	put_u32(bench, 64);
	put_description(bench, 8, 100, "first");
	put_description(bench, 2, 200, "of another type");
	put_description(bench, 1, 300, "one too many");
	assert_int_equal(read_feature(bench, PERF_FEATURE_EVENT_DESC), 0);
	assert_int_equal(bench->data.events.count, 2);
	assert_string_equal(bench->data.events.items[0].name, "first");
	assert_string_equal(bench->data.events.items[1].name, "");
}

static void descriptions_before_damage_are_kept(void **state)
{
	struct bench *bench = *state;
	size_t whole;

	put_u32(bench, UINT32_MAX);
	put_u32(bench, 64);
	put_description(bench, 8, 100, "first");
	put_description(bench, 8, 200, "second");
	whole = bench->size;
	for (size_t less = 9; less <= 96; less++) {
		bench->data.events.count = bench->data.id_total = 0;
		assert_int_equal(perf_feature_read(&bench->data, PERF_FEATURE_EVENT_DESC,
						   cut(bench, whole - less)),
				 -PTVM_BAD_INPUT);
		assert_int_equal(bench->data.events.count, 1);
	}
}

static void the_index_of_traces_is_sorted(void **state)
{
	struct bench *bench = *state;

	put_u64(bench, 3);
	for (unsigned i = 0; i < 3; i++) {
		put_u64(bench, 300 - 100 * i);
		put_u64(bench, 48);
	}
	assert_int_equal(read_feature(bench, PERF_FEATURE_AUXTRACE), 0);
	assert_int_equal(bench->data.aux_index.count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(bench->data.aux_index.items[i], 100 * (i + 1));
}

static void an_index_shorter_than_its_count_is_damaged(void **state)
{
	struct bench *bench = *state;

	put_u64(bench, UINT64_MAX);
	put_u64(bench, 200);
	put_u64(bench, 48);
	put_u64(bench, 100);
	assert_int_equal(read_feature(bench, PERF_FEATURE_AUXTRACE), -PTVM_BAD_INPUT);
	assert_int_equal(bench->data.aux_index.count, 2);
	assert_int_equal(bench->data.aux_index.items[0], 100);
	put(bench, "\0\0\0\0\0\0", 7);
	assert_int_equal(read_feature(bench, PERF_FEATURE_AUXTRACE), -PTVM_BAD_INPUT);
}

static void what_nobody_reads_is_kept_as_it_is(void **state)
{
	struct bench *bench = *state;

	put(bench, "any", 3);
	assert_int_equal(read_feature(bench, PERF_FEATURE_PMU_CAPS), 0);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_PMU_CAPS].size, 3);
	assert_memory_equal(bench->data.features.payloads[PERF_FEATURE_PMU_CAPS].data, "any", 3);
	for (uint32_t feature = PERF_FEATURE_PMU_CAPS + 1; feature < PERF_FEATURES; feature++) {
		put(bench, "any", 3);
		assert_int_equal(read_feature(bench, feature), 0);
	}
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(strings_end_with_a_nul_or_with_their_field),
		WITH_FIXTURE(each_string_has_its_place),
		WITH_FIXTURE(a_string_longer_than_its_payload_is_refused),
		WITH_FIXTURE(numbers_are_read_in_perfs_order),
		WITH_FIXTURE(numbers_that_are_cut_short_are_refused),
		WITH_FIXTURE(arguments_are_joined_by_blanks),
		WITH_FIXTURE(arguments_before_damage_are_kept),
		WITH_FIXTURE(many_empty_arguments_fit),
		WITH_FIXTURE(build_ids_follow_each_other),
		WITH_FIXTURE(old_build_ids_have_twenty_bytes),
		WITH_FIXTURE(a_name_ends_with_its_build_id),
		WITH_FIXTURE(a_damaged_build_id_ends_the_list),
		WITH_FIXTURE(a_build_id_tells_where_the_next_one_is),
		WITH_FIXTURE(descriptions_make_events_where_there_are_none),
		WITH_FIXTURE(descriptions_name_the_events_that_are_there),
		WITH_FIXTURE(descriptions_before_damage_are_kept),
		WITH_FIXTURE(the_index_of_traces_is_sorted),
		WITH_FIXTURE(an_index_shorter_than_its_count_is_damaged),
		WITH_FIXTURE(what_nobody_reads_is_kept_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
