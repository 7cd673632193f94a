#include "decode/perf_dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fake_tree.h"
#include "tests/perf_build.h"
#include "tests/printed.h"

enum { ID = 2, TIME_CPU_ID = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER };

/* A recording, and the traces that were to be printed of it. */
struct bench {
	struct perf_build build;
	struct perf_data data;
	struct perf_dump_options options;
	struct printed printed;
	uint8_t traces[64];
	size_t traces_size;
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct bench));
	assert_non_null(*state);
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_data_close(&bench->data);
	perf_build_free(&bench->build);
	printed_drop(&bench->printed);
	free(bench);
	return 0;
}

static void open_bytes(struct bench *bench, struct bytes file)
{
	assert_int_equal(perf_data_open_bytes(file, &bench->data, NULL), 0);
}

static const char *dump(struct bench *bench)
{
	assert_int_equal(perf_dump(&bench->data, &bench->options, printed_begin(&bench->printed)),
			 0);
	return printed_end(&bench->printed);
}

static void add_lost_samples(struct bench *bench, uint64_t number, uint64_t time, uint32_t cpu)
{
	perf_build_kernel(&bench->build, PERF_LOST_SAMPLES, 0, &number, 8,
			  (struct build_trailer){ 5, 6, time, cpu, ID });
}

static void end_round(struct bench *bench)
{
	perf_build_record(&bench->build, PERF_FINISHED_ROUND, 0, NULL, 0);
}

/* The numbers of lost samples, and R for the end of each round, in the order of the dump. */
static void assert_order(struct bench *bench, const char *expected)
{
	const char *at = dump(bench);
	char order[64] = "";

	while ((at = strstr(at, "PERF_RECORD_"))) {
		const char *number = strstr(at, "lost samples :"), *end = strchr(at, '\n');

		if (!strncmp(at, "PERF_RECORD_FINISHED_ROUND", 26))
			strcat(order, "R");
		else if (number && number < end)
			strncat(order, number + 14, (size_t)(end - number) - 14);
		at += 12;
	}
	assert_string_equal(order, expected);
}

static void a_record_has_bytes_then_words(void **state)
{
	struct bench *bench = *state;

	perf_build_event(&bench->build, 1, 0, BUILD_SAMPLE_TYPE, ID, 64);
	perf_build_kernel(&bench->build, PERF_LOST_SAMPLES, 0x102, "~\x7f\x1f  AZ ", 8,
			  (struct build_trailer){ 5, 6, 1000, 3, ID });
	open_bytes(bench, perf_build_file(&bench->build));
	assert_string_equal(
		dump(bench),
		"\n0xc0@- [0x30]: event: 13\n"
		".\n"
		". ... raw event: size 48 bytes\n"
		".  0000:  0d 00 00 00 02 01 30 00 7e 7f 1f 20 20 41 5a 20  ......0.~..  AZ \n"
		".  0010:  05 00 00 00 06 00 00 00 e8 03 00 00 00 00 00 00  ................\n"
		".  0020:  03 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00  ................\n"
		"\n"
		"3 1000 0xc0 [0x30]: PERF_RECORD_LOST_SAMPLES: id:2: lost samples "
		":2331247363351347070\n");
}

static void the_last_row_is_filled_with_blanks(void **state)
{
	struct bench *bench = *state;

	perf_build_record(&bench->build, PERF_FINISHED_INIT, 0, NULL, 0);
	open_bytes(bench, perf_build_file(&bench->build));
	assert_string_equal(
		dump(bench),
		"\n0x68@- [0x8]: event: 82\n"
		".\n"
		". ... raw event: size 8 bytes\n"
		".  0000:  52 00 00 00 00 00 08 00                          R.......        \n"
		"\n"
		"-1 -1 0x68 [0x8]: PERF_RECORD_FINISHED_INIT: unhandled!\n");
}

/* perf counts from the first record there. */
static void a_pipe_has_no_name(void **state)
{
	struct bench *bench = *state;

	perf_build_record(&bench->build, PERF_FINISHED_INIT, 0, NULL, 0);
	open_bytes(bench, perf_build_pipe(&bench->build));
	assert_non_null(strstr(dump(bench), "\n0@pipe [0x8]: event: 82\n"));
	assert_non_null(strstr(bench->printed.text, "\n-1 -1 0 [0x8]: PERF_RECORD_FINISHED_INIT"));
}

static void offsets_are_those_in_each_file_of_a_directory(void **state)
{
	struct bench *bench = *state;
	struct perf_build other = { 0 };
	struct fake_tree tree;
	struct bytes file;
	char text[160];

	perf_build_record(&other, PERF_FINISHED_ROUND, 0, NULL, 0);
	perf_build_record(&other, PERF_FINISHED_INIT, 0, NULL, 0);
	perf_build_record(&bench->build, PERF_FINISHED_ROUND, 0, NULL, 0);
	file = perf_build_file(&bench->build);
	memset((uint8_t *)file.data + 48, 0, 8); /* unfinished: all files belong to it */
	fake_tree_init(&tree);
	fake_tree_bytes(&tree, file.data, file.size, "data");
	fake_tree_bytes(&tree, other.bytes, other.size, "data.1");
	assert_int_equal(perf_data_open(tree.path, &bench->data, NULL), 0);
	(void)snprintf(text, sizeof(text), "\n0x68@%s/data [0x8]: event: 68\n", tree.path);
	assert_non_null(strstr(dump(bench), text));
	(void)snprintf(text, sizeof(text), "\n0x8@%s/data.1 [0x8]: event: 82\n", tree.path);
	assert_non_null(strstr(bench->printed.text, text));
	assert_non_null(
		strstr(bench->printed.text, "\n-1 -1 0x8 [0x8]: PERF_RECORD_FINISHED_INIT"));
	fake_tree_deinit(&tree);
	perf_build_free(&other);
}

/* The end of a round promises that nothing comes from before the last time of the one before it. */
static void records_wait_until_none_before_them_can_come(void **state)
{
	struct bench *bench = *state;

	perf_build_event(&bench->build, 1, 0, BUILD_SAMPLE_TYPE, ID, 64);
	add_lost_samples(bench, 3, 30, 0);
	add_lost_samples(bench, 1, 10, 0);
	end_round(bench);
	add_lost_samples(bench, 2, 20, 0);
	add_lost_samples(bench, 5, 50, 0);
	add_lost_samples(bench, 4, 31, 0);
	end_round(bench);
	add_lost_samples(bench, 0, 0, 0); /* of no time: at once */
	open_bytes(bench, perf_build_file(&bench->build));
	assert_order(bench, "RR123045");
}

static void of_the_same_time_they_come_as_they_lie(void **state)
{
	struct bench *bench = *state;

	perf_build_event(&bench->build, 1, 0, BUILD_SAMPLE_TYPE, ID, 64);
	add_lost_samples(bench, 1, 20, 0);
	add_lost_samples(bench, 2, 20, 1);
	end_round(bench);
	add_lost_samples(bench, 3, 20, 0);
	end_round(bench);
	end_round(bench);
	open_bytes(bench, perf_build_file(&bench->build));
	assert_order(bench, "RR123R");
}

static void keep_packets(void *context, const uint8_t *data, uint64_t size)
{
	struct bench *bench = context;

	assert_true(bench->traces_size + size <= sizeof(bench->traces));
	memcpy(bench->traces + bench->traces_size, data, size);
	bench->traces_size += size;
	(void)fputs("packets\n", bench->printed.out);
}

static void packets_follow_the_heading_of_their_trace(void **state)
{
	static const char heading[] = "PERF_RECORD_AUXTRACE size: 0x5  offset: 0  ref: 0x4d  "
				      "idx: 1  tid: -1  cpu: 1\n"
				      ".\n. ... Intel Processor Trace data: size 5 bytes\n";
	struct bench *bench = *state;

	perf_build_event(&bench->build, 8, 0, TIME_CPU_ID, ID, 64);
	perf_build_aux(&bench->build, 1, 0, "trace", 5);
	open_bytes(bench, perf_build_file(&bench->build));
	assert_non_null(strstr(dump(bench), "idx: 1  tid: -1  cpu: 1\n"));
	assert_null(strstr(bench->printed.text, "Processor Trace data")); /* nor packets */
	bench->options.print_packets = keep_packets;
	bench->options.context = bench;
	assert_string_equal(strstr(dump(bench), heading) + strlen(heading), "packets\n");
	assert_int_equal(bench->traces_size, 5);
	assert_memory_equal(bench->traces, "trace", 5);
}

static void trace_in_a_sample_is_printed_with_it(void **state)
{
	const uint64_t body[] = { ID, 8, 0x6867666564636261 };
	struct bench *bench = *state;

	perf_build_event(&bench->build, 8, 0, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_AUX, ID, 128);
	perf_build_record(&bench->build, PERF_SAMPLE, 2, body, sizeof(body));
	open_bytes(bench, perf_build_file(&bench->build));
	bench->options.print_packets = keep_packets;
	bench->options.context = bench;
	assert_non_null(strstr(dump(bench), "PERF_RECORD_SAMPLE(IP, 0x2): -1/-1: 0 "));
	assert_non_null(strstr(bench->printed.text, "data: size 8 bytes\npackets\n"));
	assert_memory_equal(bench->traces, "abcdefgh", 8);
}

static void records_of_other_cpus_are_left_out(void **state)
{
	struct bench *bench = *state;

	perf_build_event(&bench->build, 8, 0, BUILD_SAMPLE_TYPE, ID, 64);
	add_lost_samples(bench, 1, 10, 1);
	add_lost_samples(bench, 2, 20, 2);
	add_lost_samples(bench, 3, 0, 1); /* the recorder's own: its CPU means nothing */
	add_lost_samples(bench, 4, 40, UINT32_MAX);
	perf_build_aux(&bench->build, 1, 0, "one", 3);
	perf_build_aux(&bench->build, 2, 0, "two", 3);
	open_bytes(bench, perf_build_file(&bench->build));
	assert_int_equal(number_ranges_parse("-C", "2,7", &bench->options.cpus, NULL), 0);
	bench->options.print_packets = keep_packets;
	bench->options.context = bench;
	assert_order(bench, "324");
	assert_int_equal(bench->traces_size, 3);
	assert_memory_equal(bench->traces, "two", 3);
}

/* As perf: what no event records is left out, and what only others do is all ones. */
static void cpu_and_time_are_shown_as_events_record_them(void **state)
{
	static const struct {
		uint64_t first, second;
		const char *stamp;
	} cases[] = {
		{ PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER, "" },
		{ PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CPU, "4294967295 " },
		{ PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
		  "18446744073709551615 " },
		{ TIME_CPU_ID, PERF_SAMPLE_IDENTIFIER, "3 1000 " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t with[] = { 9, 1000, 3, ID }, without[] = { 9, ID };
		const bool has = cases[i].first & PERF_SAMPLE_TIME;
		struct bench *bench;
		char text[80];

		assert_int_equal(set_up(state), 0);
		bench = *state;
		perf_build_event(&bench->build, 1, 0, cases[i].first, ID, 64);
		perf_build_event(&bench->build, 1, 0, cases[i].second, ID + 1, 64);
		perf_build_record(&bench->build, PERF_LOST_SAMPLES, 0, has ? with : without,
				  has ? sizeof(with) : sizeof(without));
		open_bytes(bench, perf_build_file(&bench->build));
		(void)snprintf(text, sizeof(text), "\n%s0x118 [0x", cases[i].stamp);
		assert_non_null(strstr(dump(bench), text));
		assert_int_equal(tear_down(state), 0);
	}
}

static void the_recorders_own_records_are_of_cpu_and_time_zero(void **state)
{
	struct bench *bench = *state;

	perf_build_event(&bench->build, 1, 0, TIME_CPU_ID, ID, 64);
	perf_build_record(&bench->build, PERF_FINISHED_INIT, 0, NULL, 0);
	open_bytes(bench, perf_build_pipe(&bench->build));
	assert_non_null(strstr(dump(bench), "\n0 0 0 [0x50]: PERF_RECORD_ATTR"));
	assert_non_null(strstr(bench->printed.text, "\n0 0 0x50 [0x8]: PERF_RECORD_FINISHED_INIT"));
}

/* Then only samples tell them. */
static void without_trailers_there_is_no_cpu_and_no_time(void **state)
{
	struct bench *bench = *state;

	for (uint64_t id = ID; id < ID + 2; id++)
		perf_build_event(&bench->build, 1, 0, TIME_CPU_ID, id, 64);
	perf_build_record(&bench->build, PERF_FINISHED_INIT, 0, NULL, 0);
	open_bytes(bench, perf_build_file(&bench->build));
	bench->data.events.items[1].flags = 0;
	assert_non_null(strstr(dump(bench), "\n0 0 0x118 [0x8]: PERF_RECORD_FINISHED_INIT"));
	bench->data.events.items[0].flags = 0;
	assert_non_null(strstr(dump(bench), "\n-1 -1 0x118 [0x8]: PERF_RECORD_FINISHED_INIT"));
}

static void what_cannot_be_written_is_told(void **state)
{
	struct bench *bench = *state;
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	perf_build_event(&bench->build, 1, 0, BUILD_SAMPLE_TYPE, ID, 64);
	for (unsigned i = 0; i < 100; i++)
		add_lost_samples(bench, i, 0, 0);
	open_bytes(bench, perf_build_file(&bench->build));
	(void)setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(perf_dump(&bench->data, &bench->options, full), -PTVM_SYSTEM);
	(void)fclose(full);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_record_has_bytes_then_words),
		WITH_FIXTURE(the_last_row_is_filled_with_blanks),
		WITH_FIXTURE(a_pipe_has_no_name),
		WITH_FIXTURE(offsets_are_those_in_each_file_of_a_directory),
		WITH_FIXTURE(records_wait_until_none_before_them_can_come),
		WITH_FIXTURE(of_the_same_time_they_come_as_they_lie),
		WITH_FIXTURE(packets_follow_the_heading_of_their_trace),
		WITH_FIXTURE(trace_in_a_sample_is_printed_with_it),
		WITH_FIXTURE(records_of_other_cpus_are_left_out),
		cmocka_unit_test(cpu_and_time_are_shown_as_events_record_them),
		WITH_FIXTURE(the_recorders_own_records_are_of_cpu_and_time_zero),
		WITH_FIXTURE(without_trailers_there_is_no_cpu_and_no_time),
		WITH_FIXTURE(what_cannot_be_written_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
