#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/perf_feature.h"
#include "host/record/recording_features.h"
#include "tests/fake_tree.h"

enum { LONG_NAME = 64 };

struct bench {
	struct fake_tree tree;
	struct recording_features features;
	struct perf_data data;
	char path[128];
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	fake_tree_file(&bench.tree,
		       "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n"
		       "model name\t: A CPU\nstepping\t: 3\n",
		       "proc/cpuinfo");
	fake_tree_file(&bench.tree, "MemTotal:    12345 kB\n", "proc/meminfo");
	fake_tree_file(&bench.tree, "0-1,8-9\n", "sys/devices/system/cpu/present");
	fake_tree_file(&bench.tree, "0-1,9\n", "sys/devices/system/cpu/online");
	fake_tree_file(&bench.tree, "8\n", "sys/bus/event_source/devices/intel_pt/type");
	(void)snprintf(bench.path, sizeof(bench.path), "%s/data", bench.tree.path);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_data_close(&bench->data);
	recording_features_free(&bench->features);
	fake_tree_deinit(&bench->tree);
	return 0;
}

/* Write a recording that has the features, and read it. */
static void round_trip(struct bench *bench, struct recording_facts *facts)
{
	static uint8_t attr[RECORDING_ATTR_SIZE] = { 8, 0, 0, 0, RECORDING_ATTR_SIZE };
	const uint64_t id = 7, flags = PERF_FLAG_SAMPLE_ID_ALL, sampled = PERF_SAMPLE_IDENTIFIER;
	const struct recording_event event = { attr, &id, 1, "intel_pt//" };
	struct recording_out out = { 0 };

	memcpy(attr + 24, &sampled, sizeof(sampled));
	memcpy(attr + 40, &flags, sizeof(flags));
	facts->events = &event;
	facts->event_count = 1;
	assert_int_equal(recording_features_make(&bench->tree.roots, facts, &bench->features), 0);
	assert_int_equal(recording_out_create(&out, bench->path, &event, 1, NULL), 0);
	assert_int_equal(recording_out_round(&out, NULL), 0);
	assert_int_equal(
		recording_out_finish(&out, bench->features.items, bench->features.count, NULL), 0);
	recording_out_close(&out);
	assert_int_equal(perf_data_open(bench->path, &bench->data, NULL), 0);
	assert_null(bench->data.bad_reason);
	assert_int_equal(bench->data.bad_features, 0);
}

static void a_reader_finds_what_was_told(void **state)
{
	struct bench *bench = *state;
	char word[] = "record", *argv[] = { word, word };
	struct recording_facts facts = { "0.1", 2, argv, .first_ns = 5, .last_ns = 9 };
	const struct perf_features *found = &bench->data.features;
	struct utsname name;

	round_trip(bench, &facts);
	assert_int_equal(uname(&name), 0);
	assert_string_equal(found->hostname, name.nodename);
	assert_string_equal(found->osrelease, name.release);
	assert_string_equal(found->arch, name.machine);
	assert_string_equal(found->version, "0.1");
	assert_string_equal(found->cpudesc, "A CPU");
	assert_string_equal(found->cpuid, "GenuineIntel,6,158,3");
	assert_int_equal(found->cpus_online, 3);
	assert_int_equal(found->cpus_available, 10);
	assert_int_equal(found->total_mem_kb, 12345);
	assert_int_equal(found->first_sample_ns, 5);
	assert_int_equal(found->last_sample_ns, 9);
	assert_string_equal(bench->data.events.items[0].name, "intel_pt//");
}

static void sections_are_as_long_as_what_is_in_them(void **state)
{
	struct bench *bench = *state;
	char word[LONG_NAME + 1], *argv[] = { word };
	struct recording_facts facts = { "", 1, argv };

	memset(word, 'x', LONG_NAME);
	word[LONG_NAME] = 0;
	round_trip(bench, &facts);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_VERSION].size, 4 + 64);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_CMDLINE].size, 4 + 4 + 2 * 64);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_EVENT_DESC].size,
			 4 + 4 + 128 + 4 + 4 + 64 + 8);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_PMU_MAPPINGS].size,
			 4 + 4 + 4 + 64);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_PMU_MAPPINGS].data[0], 1);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_PMU_MAPPINGS].data[4], 8);
}

static void a_machine_that_tells_nothing_has_empty_ones(void **state)
{
	struct bench *bench = *state;
	struct recording_facts facts = { .version = "0.1" };

	bench->tree.roots.proc = bench->tree.roots.sys = "/nonexistent";
	round_trip(bench, &facts);
	assert_string_equal(bench->data.features.cpudesc, "unknown");
	assert_int_equal(bench->data.features.cpus_online, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(bench->data.features.total_mem_kb, 0);
	assert_int_equal(bench->data.features.payloads[PERF_FEATURE_PMU_MAPPINGS].size, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reader_finds_what_was_told),
		TEST(sections_are_as_long_as_what_is_in_them),
		TEST(a_machine_that_tells_nothing_has_empty_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
