#include "decode/perf/perf_info.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "decode/perf/perf_feature.h"
#include "tests/fake_tree.h"
#include "tests/printed.h"

/* A recording in a pipe, which has no file to tell of, and a payload that grows. */
struct bench {
	struct perf_data data;
	struct printed printed;
	uint8_t payload[512];
	size_t size;
	uint8_t *exact; /* the same in memory of just its size */
};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->data.is_pipe = true;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	printed_drop(&bench->printed);
	free(bench->exact);
	free(bench);
	return 0;
}

static const char *print(struct bench *bench)
{
	perf_info_print(&bench->data, printed_begin(&bench->printed));
	return printed_end(&bench->printed);
}

/* What is between the frame and the features that are missing. */
static void assert_lines(struct bench *bench, const char *expected)
{
	static const char frame[] = "# ========\n";
	const char *text = print(bench), *end = strstr(text, "# missing features: ");

	assert_non_null(end);
	assert_int_equal(strncmp(text, frame, strlen(frame)), 0);
	text += strlen(frame);
	assert_int_equal(end - text, strlen(expected));
	assert_memory_equal(text, expected, strlen(expected));
}

static void set(struct bench *bench, unsigned feature)
{
	bench->data.features.bitmap[feature / 64] |= 1ull << feature % 64;
}

static void put_u32(struct bench *bench, uint32_t value)
{
	memcpy(bench->payload + bench->size, &value, 4);
	bench->size += 4;
}

static void put_u64(struct bench *bench, uint64_t value)
{
	put_u32(bench, (uint32_t)value);
	put_u32(bench, (uint32_t)(value >> 32));
}

static void put_string(struct bench *bench, const char *text, uint32_t room)
{
	put_u32(bench, room);
	memcpy(bench->payload + bench->size, text, strlen(text));
	bench->size += room;
}

/* The first `size` bytes that were put are this feature's. */
static void take_part(struct bench *bench, unsigned feature, size_t size)
{
	free(bench->exact);
	bench->exact = malloc(size ? size : 1);
	assert_non_null(bench->exact);
	memcpy(bench->exact, bench->payload, size);
	set(bench, feature);
	bench->data.features.payloads[feature] = (struct bytes){ bench->exact, size };
}

static void take(struct bench *bench, unsigned feature)
{
	take_part(bench, feature, bench->size);
}

static void an_empty_recording_misses_all_features(void **state)
{
	struct bench *bench = *state;

	assert_string_equal(
		print(bench),
		"# ========\n"
		"# missing features: TRACING_DATA BUILD_ID HOSTNAME OSRELEASE VERSION ARCH NRCPUS "
		"CPUDESC CPUID TOTAL_MEM CMDLINE EVENT_DESC CPU_TOPOLOGY NUMA_TOPOLOGY "
		"BRANCH_STACK PMU_MAPPINGS GROUP_DESC AUXTRACE STAT CACHE SAMPLE_TIME "
		"MEM_TOPOLOGY CLOCKID DIR_FORMAT BPF_PROG_INFO BPF_BTF COMPRESSED CPU_PMU_CAPS "
		"CLOCK_DATA HYBRID_TOPOLOGY PMU_CAPS \n"
		"# ========\n#\n");
}

static void what_is_there_is_not_missing(void **state)
{
	struct bench *bench = *state;

	memset(bench->data.features.bitmap, 0xff, sizeof(bench->data.features.bitmap));
	assert_non_null(strstr(print(bench), "# missing features: \n# ========\n#\n"));
}

static void a_file_tells_where_its_parts_are(void **state)
{
	struct bench *bench = *state;

	bench->data.is_pipe = false;
	bench->data.data_offset = 104;
	bench->data.data_size = 1000;
	assert_lines(bench, "# header version : 1\n# data offset    : 104\n"
			    "# data size      : 1000\n# feat offset    : 1104\n");
}

static void the_time_of_a_recording_is_that_of_its_file(void **state)
{
	const struct timespec times[] = { { .tv_sec = 86400 }, { .tv_sec = 86400 } };
	struct bench *bench = *state;
	struct fake_tree tree;
	char path[100];

	fake_tree_init(&tree);
	fake_tree_file(&tree, "x", "data");
	(void)snprintf(path, sizeof(path), "%s/data", tree.path);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	bench->data.is_pipe = false;
	bench->data.file_path = path;
	assert_non_null(strstr(print(bench), "# ========\n# captured on    : "));
	assert_non_null(strstr(print(bench), " 1970\n# header version"));
	fake_tree_deinit(&tree);
	assert_null(strstr(print(bench), "captured"));
}

static void strings_cannot_move_cursors(void **state)
{
	struct bench *bench = *state;
	struct perf_features *features = &bench->data.features;

	set(bench, PERF_FEATURE_HOSTNAME);
	set(bench, PERF_FEATURE_OSRELEASE);
	set(bench, PERF_FEATURE_VERSION);
	set(bench, PERF_FEATURE_ARCH);
	set(bench, PERF_FEATURE_CPUDESC);
	set(bench, PERF_FEATURE_CPUID);
	set(bench, PERF_FEATURE_CMDLINE);
	assert_lines(bench, ""); /* their payloads are damaged */
	features->hostname = "h\033[2J";
	features->osrelease = "6.1";
	features->version = "6.1.0";
	features->arch = "x86_64";
	features->cpudesc = "CPU @ 2GHz";
	features->cpuid = "GenuineIntel,6,85,7";
	features->cmdline = "perf record\n-a";
	assert_lines(bench,
		     "# hostname : h?[2J\n# os release : 6.1\n# perf version : 6.1.0\n"
		     "# arch : x86_64\n# cpudesc : CPU @ 2GHz\n# cpuid : GenuineIntel,6,85,7\n"
		     "# cmdline : perf record?-a \n");
}

static void numbers_have_their_units(void **state)
{
	struct bench *bench = *state;
	struct perf_features *features = &bench->data.features;

	set(bench, PERF_FEATURE_NRCPUS);
	set(bench, PERF_FEATURE_TOTAL_MEM);
	set(bench, PERF_FEATURE_SAMPLE_TIME);
	features->cpus_available = 8;
	features->cpus_online = 6;
	features->total_mem_kb = 16384;
	features->first_sample_ns = 1000000999;
	features->last_sample_ns = 12003045678;
	assert_lines(bench, "# nrcpus online : 6\n# nrcpus avail : 8\n# total memory : 16384 kB\n"
			    "# time of first sample : 1.000000\n"
			    "# time of last sample : 12.003045\n"
			    "# sample duration :  11003.045 ms\n");
}

static void events_have_ids_and_options(void **state)
{
	static const uint64_t ids[] = { 5, 6 };
	static uint8_t attr[64] = { [4] = 64 };
	struct perf_event events[] = {
		{ .name = "intel_pt//",
		  .type = 8,
		  .ids = ids,
		  .id_count = 2,
		  .attr = { attr, 64 } },
		{ .name = "d\033", .attr = { attr, 64 } },
	};
	struct bench *bench = *state;

	set(bench, PERF_FEATURE_EVENT_DESC);
	bench->data.events.items = events;
	bench->data.events.count = 2;
	assert_lines(bench, "# event : name = intel_pt//, , id = { 5, 6 }, type = 8, size = 64\n"
			    "# event : name = d?, , size = 64\n");
}

static void marks_say_what_is_contained(void **state)
{
	struct bench *bench = *state;

	set(bench, PERF_FEATURE_BRANCH_STACK);
	set(bench, PERF_FEATURE_AUXTRACE);
	set(bench, PERF_FEATURE_STAT);
	assert_lines(bench, "# contains samples with branch stack\n"
			    "# contains AUX area data (e.g. instruction trace)\n"
			    "# contains stat data\n");
}

static void of_what_says_nothing_of_the_trace_the_long_is_named(void **state)
{
	static const unsigned features[] = {
		PERF_FEATURE_TRACING_DATA,    PERF_FEATURE_BUILD_ID, PERF_FEATURE_CPU_TOPOLOGY,
		PERF_FEATURE_NUMA_TOPOLOGY,   PERF_FEATURE_CACHE,    PERF_FEATURE_MEM_TOPOLOGY,
		PERF_FEATURE_BPF_PROG_INFO,   PERF_FEATURE_BPF_BTF,  PERF_FEATURE_CLOCK_DATA,
		PERF_FEATURE_HYBRID_TOPOLOGY,
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		set(bench, features[i]);
	assert_lines(bench, "# CPU_TOPOLOGY info available\n# NUMA_TOPOLOGY info available\n"
			    "# CACHE info available\n# MEM_TOPOLOGY info available\n");
}

static void pmus_have_numbers(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 3);
	put_u32(bench, 8);
	put_string(bench, "intel_pt", 16);
	put_u32(bench, 1);
	put_string(bench, "software", 8);
	put_u32(bench, 4);
	put_string(bench, "c\033pu", 8);
	put_u32(bench, 5); /* more than were counted */
	put_string(bench, "fourth", 8);
	take(bench, PERF_FEATURE_PMU_MAPPINGS);
	assert_lines(bench, "# pmu mappings: intel_pt = 8, software = 1, c?pu = 4\n");
}

static void pmus_end_where_their_payload_does(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, UINT32_MAX);
	put_u32(bench, 8);
	put_string(bench, "intel_pt", 8);
	put_u32(bench, 1);
	put_string(bench, "software", 8);
	take_part(bench, PERF_FEATURE_PMU_MAPPINGS, bench->size - 1);
	assert_lines(bench, "# pmu mappings: intel_pt = 8,  = 1\n");
	take_part(bench, PERF_FEATURE_PMU_MAPPINGS, 0);
	assert_lines(bench, "# pmu mappings: not available\n");
}

static void put_group(struct bench *bench, const char *name, uint32_t leader, uint32_t members)
{
	put_string(bench, name, 16);
	put_u32(bench, leader);
	put_u32(bench, members);
}

static void groups_are_their_events(void **state)
{
	struct perf_event events[] = { { .name = "a" }, { .name = "b\033" }, { .name = "c" },
				       { .name = "d" }, { .name = "e" },     { .name = "f" } };
	struct bench *bench = *state;

	bench->data.events.items = events;
	bench->data.events.count = 6;
	put_u32(bench, 6);
	put_group(bench, "{anon_group}", 0, 2);
	put_group(bench, "alone", 2, 1);
	put_group(bench, "mine", 2, 2);
	put_group(bench, "too many", 4, 3);
	put_group(bench, "behind", UINT32_MAX, 2);
	put_group(bench, "{anon}", 4, 2);
	take(bench, PERF_FEATURE_GROUP_DESC);
	assert_lines(bench, "# group: {a,b?}\n# group: mine{c,d}\n# group: {anon}{e,f}\n");
	take_part(bench, PERF_FEATURE_GROUP_DESC, bench->size - 1);
	assert_lines(bench, "# group: {a,b?}\n# group: mine{c,d}\n");
}

static void no_event_is_in_two_groups(void **state)
{
	struct perf_event events[] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
	struct bench *bench = *state;

	bench->data.events.items = events;
	bench->data.events.count = 3;
	put_u32(bench, 3);
	put_group(bench, "one", 0, 2);
	put_group(bench, "two", 0, 2);
	put_group(bench, "three", 1, 2);
	take(bench, PERF_FEATURE_GROUP_DESC);
	assert_lines(bench, "# group: one{a,b}\n");
}

static void single_numbers_are_read_from_payloads(void **state)
{
	struct bench *bench = *state;

	put_u64(bench, 1);
	take(bench, PERF_FEATURE_CLOCKID);
	assert_lines(bench, "# clockid frequency: 1000 MHz\n");
	take_part(bench, PERF_FEATURE_CLOCKID, 7);
	assert_lines(bench, "");
	bench->data.features.bitmap[0] = 0;
	take(bench, PERF_FEATURE_DIR_FORMAT);
	assert_lines(bench, "# directory data version : 1\n");
}

static void the_compression_has_a_name_level_and_ratio(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 1); /* version */
	put_u32(bench, 1);
	put_u32(bench, 3);
	put_u32(bench, 7);
	take(bench, PERF_FEATURE_COMPRESSED);
	assert_lines(bench, "# compressed : Zstd, level = 3, ratio = 7\n");
	bench->exact[4] = 2;
	assert_lines(bench, "# compressed : Unknown, level = 3, ratio = 7\n");
}

static void capabilities_are_pairs(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 2);
	put_string(bench, "branches", 12);
	put_string(bench, "32", 4);
	put_string(bench, "max\033", 8);
	put_string(bench, "\0332", 4);
	take(bench, PERF_FEATURE_CPU_PMU_CAPS);
	assert_lines(bench, "# cpu pmu capabilities: branches=32, max?=?2\n");
	take_part(bench, PERF_FEATURE_CPU_PMU_CAPS, bench->size - 1);
	assert_lines(bench, "# cpu pmu capabilities: branches=32, max?=\n");
	take_part(bench, PERF_FEATURE_CPU_PMU_CAPS, 3);
	assert_lines(bench, "# cpu pmu capabilities: not available\n");
}

static void each_pmu_has_its_name_behind_its_capabilities(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, 2);
	put_u32(bench, 1);
	put_string(bench, "a", 4);
	put_string(bench, "1", 4);
	put_string(bench, "cpu_core", 12);
	put_u32(bench, 2);
	put_string(bench, "b", 4);
	put_string(bench, "2", 4);
	put_string(bench, "c", 4);
	put_string(bench, "3", 4);
	put_string(bench, "cpu_atom", 12);
	put_u32(bench, 0); /* more than were counted */
	put_string(bench, "third", 8);
	take(bench, PERF_FEATURE_PMU_CAPS);
	assert_lines(bench, "# cpu_core pmu capabilities: a=1\n"
			    "# cpu_atom pmu capabilities: b=2, c=3\n");
}

/* Counts that cannot be must not take long. */
static void impossible_counts_of_capabilities_end_soon(void **state)
{
	struct bench *bench = *state;

	put_u32(bench, UINT32_MAX);
	put_u32(bench, UINT32_MAX);
	put_string(bench, "a", 4);
	put_string(bench, "1", 4);
	take(bench, PERF_FEATURE_PMU_CAPS);
	assert_lines(bench, "#  pmu capabilities: a=1\n");
	bench->data.features.bitmap[0] = 0;
	take(bench, PERF_FEATURE_CPU_PMU_CAPS);
	assert_lines(bench, "# cpu pmu capabilities: =\n"); /* a string of 4 GiB */
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(an_empty_recording_misses_all_features),
		WITH_FIXTURE(what_is_there_is_not_missing),
		WITH_FIXTURE(a_file_tells_where_its_parts_are),
		WITH_FIXTURE(the_time_of_a_recording_is_that_of_its_file),
		WITH_FIXTURE(strings_cannot_move_cursors),
		WITH_FIXTURE(numbers_have_their_units),
		WITH_FIXTURE(events_have_ids_and_options),
		WITH_FIXTURE(marks_say_what_is_contained),
		WITH_FIXTURE(of_what_says_nothing_of_the_trace_the_long_is_named),
		WITH_FIXTURE(pmus_have_numbers),
		WITH_FIXTURE(pmus_end_where_their_payload_does),
		WITH_FIXTURE(groups_are_their_events),
		WITH_FIXTURE(no_event_is_in_two_groups),
		WITH_FIXTURE(single_numbers_are_read_from_payloads),
		WITH_FIXTURE(the_compression_has_a_name_level_and_ratio),
		WITH_FIXTURE(capabilities_are_pairs),
		WITH_FIXTURE(each_pmu_has_its_name_behind_its_capabilities),
		WITH_FIXTURE(impossible_counts_of_capabilities_end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
