#include "decode/print/team.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"
#include "decode/code/machine_parts.h"
#include "decode/perf/perf_record.h"
#include "decode/print/record_lines.h"
#include "decode/script.h"
#include "tests/flow_bench.h"

/* A queue is long enough for some segments. */
enum { QUEUES = 3, INSTRUCTIONS = 200000, SEGMENTS_BYTES = 100 << 10 };

/* The text of so many queues of this size exceeds the memory limit. */
enum { MANY_QUEUES = 64, FEW_BYTES = 20 << 10 };

/* Three CPUs that run the same program, each in its own way. */
struct fixture {
	struct sim_vm vms[QUEUES];
	struct bench_queue benches[QUEUES];
	struct aux_queue queues[MANY_QUEUES];
	size_t queue_count;
	struct pt_config config;
	struct machines machines;
	struct print_config print;
};

static void run_cpus(struct fixture *fixture, bool timed)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		struct sim_options options = sim_options_plain(1);

		options.guests = 1;
		options.instructions = (timed ? 1 : 2) * INSTRUCTIONS + i * 5000;
		options.pt.psb_bytes = 2048;
		options.pt.cyc_threshold = (uint8_t)(i * 10);
		options.overflow = !timed;
		options.pt.tsc &= timed;
		options.pt.mtc &= timed;
		options.pt.cyc &= timed;
		sim_vm_run(&options, &fixture->vms[i]);
		assert_true(fixture->vms[i].pt.out.size > SEGMENTS_BYTES);
		bench_queue_add(&fixture->benches[i], fixture->vms[i].pt.out.data,
				fixture->vms[i].pt.out.size, false);
		fixture->queues[i] = fixture->benches[i].queue;
		fixture->queues[i].index = i;
		fixture->queues[i].cpu = (int32_t)i;
		fixture->queues[i].tid = fixture->queues[i].pid = -1;
		fixture->config = bench_config(&options);
	}
}

static struct fixture *make_fixture(bool timed)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	run_cpus(fixture, timed);
	fixture->queue_count = QUEUES;
	assert_true(bench_machines(&fixture->vms[0], &fixture->machines));
	fixture->config.conv = (struct time_conv){ .valid = true, .mult = 1 };
	fixture->print = (struct print_config){
		.fields = FIELD_CPU | FIELD_TIME | FIELD_IP | FIELD_NR,
		.nanoseconds = true,
		.modifier = "",
		.pt = &fixture->config,
		.machines = &fixture->machines,
	};
	fixture->print.style = (struct block_style){ .fields = fixture->print.fields, .lead = "" };
	assert_int_equal(itrace_add("i0nse", &fixture->print.itrace, NULL), 0);
	return fixture;
}

static int set_up(void **state)
{
	*state = make_fixture(true);
	return 0;
}

static int set_up_errors(void **state)
{
	*state = make_fixture(false);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	machines_free(&fixture->machines);
	for (unsigned i = 0; i < QUEUES; i++) {
		bench_queue_free(&fixture->benches[i]);
		sim_vm_free(&fixture->vms[i]);
	}
	free(fixture);
	return 0;
}

/* All lines; the caller frees them. */
static char *print(const struct fixture *fixture, unsigned threads, uint64_t max_lines,
		   struct team_result *result)
{
	_cleanup_close_ int fd = memfd_create("lines", MFD_CLOEXEC);
	const struct timeline_output output = { fd, max_lines, threads };
	struct ptvm_error error = { 0 };
	off_t size;
	char *lines;

	if (team_print(fixture->queues, fixture->queue_count, &fixture->print, &output, result,
		       &error))
		fail_msg("%s", error.message);
	size = lseek(fd, 0, SEEK_END);
	lines = calloc(1, (size_t)size + 1);
	assert_non_null(lines);
	assert_int_equal(pread(fd, lines, (size_t)size, 0), size);
	return lines;
}

/* With any number of threads, in segments of any size. */
static void assert_same_for_all_threads(struct fixture *fixture)
{
	static const unsigned threads[] = { 1, 2, 3, 7 };
	static const uint64_t sizes[] = { 1, 5000, 32 << 10, UINT64_MAX };
	struct team_result one, many;
	char *expected = print(fixture, 1, 0, &one);

	assert_true(strlen(expected) > 1000);
	for (size_t i = 0; i < 16; i++) {
		char *found;

		fixture->print.segment_bytes = sizes[i % 4];
		found = print(fixture, threads[i / 4], 0, &many);
		assert_true(!strcmp(found, expected));
		if (!fixture->print.times.count) { /* else a larger segment has more to decode */
			assert_int_equal(many.insns, one.insns);
			assert_memory_equal(many.gaps, one.gaps, sizeof(one.gaps));
			assert_int_equal(many.corrections, one.corrections);
		}
		free(found);
	}
	free(expected);
}

static void threads_change_nothing(void **state)
{
	assert_same_for_all_threads(*state);
}

static void threads_change_nothing_of_branches(void **state)
{
	struct fixture *fixture = *state;

	fixture->print.itrace = (struct itrace){ .branches = true };
	fixture->print.fields |= FIELD_ADDR | FIELD_FLAGS;
	fixture->print.style.fields = fixture->print.fields;
	assert_same_for_all_threads(fixture);
}

/* Without time the walk that cuts segments does not read all packets. */
static void threads_change_nothing_of_errors(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(itrace_add("e", &fixture->print.itrace, NULL), 0);
	fixture->config.max_nonturbo = 0; /* CBR does not tell of time, either */
	assert_same_for_all_threads(fixture);
}

/* The walk that cuts segments and the flow must agree on a PSB+ that breaks off. */
static void break_groups(struct pt_bytes *trace, struct sim_random *random)
{
	static const char *const pieces[] = { "\x99\x21\xc9", "\x99\x21\x06", "\x02\xf3\xc9",
					      "\xc9" };
	const uint8_t *end = trace->data + trace->size, *psb = trace->data;

	while ((psb = pt_psb_find(psb, end)) && end - psb > 2 * PT_PSB_SIZE) {
		const char *piece = pieces[sim_random_below(random, 4)];

		psb += PT_PSB_SIZE;
		if (sim_random_once_in(random, 3))
			memcpy(trace->data + (psb - trace->data), piece, strlen(piece));
	}
}

static void threads_change_nothing_of_damage(void **state)
{
	struct fixture *fixture = *state;
	struct sim_random random = { 7 };

	for (unsigned i = 0; i < QUEUES; i++)
		break_groups(&fixture->vms[i].pt.out, &random);
	assert_int_equal(itrace_add("i0nsbxe", &fixture->print.itrace, NULL), 0);
	assert_same_for_all_threads(fixture);
}

/* Have a copy of the host's kernel that has nothing of what ran. The caller frees its bytes. */
static uint8_t *spoil_copy(struct fixture *fixture)
{
	const struct sim_code *kernel = &fixture->vms[0].machines[0].kernel;
	uint8_t *bytes = calloc(1, kernel->size);

	assert_non_null(bytes);
	assert_int_equal(
		image_add(&fixture->machines.host->image, kernel->base, bytes, kernel->size), 0);
	return bytes;
}

/* The later copy is taken throughout. */
static void threads_change_nothing_of_code_that_was_replaced(void **state)
{
	struct fixture *fixture = *state;
	const struct sim_code *kernel = &fixture->vms[0].machines[0].kernel;
	struct team_result result;
	char *expected = print(fixture, 1, 0, &result), *found;
	uint8_t *before = spoil_copy(fixture);

	assert_int_equal(later_code_add(&fixture->machines.host->later, kernel->base, before,
					(struct bytes){ kernel->bytes, kernel->size }),
			 0);
	found = print(fixture, 2, 0, &result);
	assert_true(!strcmp(found, expected));
	assert_same_for_all_threads(fixture);
	free(found);
	free(expected);
	free(before);
}

/* The lines of one CPU. The caller frees them. */
static char *lines_of(const char *all, const char *cpu)
{
	char *ret = calloc(1, strlen(all) + 1), *to = ret;

	assert_non_null(ret);
	for (const char *line = all, *end; (end = strchr(line, '\n')); line = end + 1) {
		if (strncmp(line + strspn(line, " "), cpu, strlen(cpu)) != 0)
			continue;
		memcpy(to, line, (size_t)(end + 1 - line));
		to += end + 1 - line;
	}
	return ret;
}

/* What this CPU tells by itself is not enough to know that its code was replaced. */
static void a_cpu_alone_has_the_code_that_all_tell_of(void **state)
{
	enum { BYTES = 105 };
	struct fixture *fixture = *state;
	const struct sim_code *kernel = &fixture->vms[0].machines[0].kernel;
	struct team_result result;
	uint8_t *before = spoil_copy(fixture);
	char *all, *expected, *found;

	fixture->queues[0].size = fixture->queues[0].spans[0].size = BYTES;
	assert_int_equal(later_code_add(&fixture->machines.host->later, kernel->base, before,
					(struct bytes){ kernel->bytes, kernel->size }),
			 0);
	all = print(fixture, 1, 0, &result);
	expected = lines_of(all, "[000]");
	assert_true(strlen(expected) > 1000);
	assert_int_equal(number_ranges_parse("-C", "0", &fixture->print.cpus, NULL), 0);
	found = print(fixture, 1, 0, &result);
	assert_true(!strcmp(found, expected));
	free(found);
	free(expected);
	free(all);
	free(before);
}

static void threads_agree_about_modules_that_are_gone(void **state)
{
	struct fixture *fixture = *state;
	struct symbols *symbols = &fixture->machines.host->symbols;
	uint8_t *before = spoil_copy(fixture);
	struct team_result one, many;
	char *expected, *found;

	for (size_t i = 0; i < symbols->count; i++)
		symbols->items[i].module = "[gone]";
	expected = print(fixture, 1, 0, &one);
	found = print(fixture, 7, 0, &many);
	assert_true(!strcmp(found, expected));
	assert_memory_equal(many.gaps, one.gaps, sizeof(one.gaps));
	assert_int_equal(many.gaps[GAP_MISMATCH] + many.gaps[GAP_LOOP], 0);
	assert_true(many.gaps[GAP_NO_CODE] > 0);
	free(found);
	free(expected);
	free(before);
}

static void threads_change_nothing_where_lines_build_on_each_other(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(itrace_add("i100i", &fixture->print.itrace, NULL), 0);
	assert_same_for_all_threads(fixture);
}

static void threads_change_nothing_of_a_part_of_the_time(void **state)
{
	struct fixture *fixture = *state;
	struct team_result result;
	struct time_range *range = &fixture->print.times.items[0];
	char *all = print(fixture, 2, 0, &result), *last = all + strlen(all) - 1;
	uint64_t seconds, ns;

	while (last[-1] != '\n')
		last--;
	assert_int_equal(sscanf(last, " [%*d] %*s %" SCNu64 ".%" SCNu64, &seconds, &ns), 2);
	range->to = seconds * 1000000000 + ns;
	assert_int_equal(sscanf(all, " [%*d] %*s %" SCNu64 ".%" SCNu64, &seconds, &ns), 2);
	range->from = (seconds * 1000000000 + ns + range->to) / 2;
	range->to = range->from / 2 + range->to / 2;
	fixture->print.times.count = 1;
	assert_same_for_all_threads(fixture);
	free(all);
}

/* More CPUs, which run as the three do, for a short time. */
static void add_queues(struct fixture *fixture)
{
	struct aux_queue *queues = fixture->queues;

	for (unsigned i = 0; i < QUEUES; i++)
		queues[i].size = queues[i].spans[0].size = FEW_BYTES;
	for (unsigned i = QUEUES; i < MANY_QUEUES; i++) {
		queues[i] = queues[i % QUEUES];
		queues[i].index = i;
		queues[i].cpu = (int32_t)i;
	}
	fixture->queue_count = MANY_QUEUES;
}

static void threads_change_nothing_where_memory_is_short(void **state)
{
	struct fixture *fixture = *state;
	struct team_result one, many;
	char *expected;

	add_queues(fixture);
	expected = print(fixture, 1, 0, &one);
	assert_true(strlen(expected) > 64 << 20);
	for (unsigned threads = 2; threads < 9; threads += 6) {
		char *found = print(fixture, threads, 0, &many);

		assert_true(!strcmp(found, expected));
		assert_int_equal(many.insns, one.insns);
		free(found);
	}
	free(expected);
}

/* What had to grow for much text is not kept: each lane would have its own at last. */
static void text_that_was_written_takes_no_memory(void **state)
{
	struct fixture *fixture = *state;
	_cleanup_close_ int fd = memfd_create("lines", MFD_CLOEXEC);
	const struct timeline_output output = { fd, 0, 2 };
	struct ptvm_error error = { 0 };
	struct team team;

	add_queues(fixture);
	assert_int_equal(team_init(&team, fixture->queues, MANY_QUEUES, &fixture->print, &output),
			 0);
	team.chunk_bytes = 1;
	assert_int_equal(team_run(&team, &error), 0);
	assert_int_equal(team.text_bytes, 0);
	for (const struct chunk *chunk = team.chunks.first; chunk; chunk = chunk->next)
		assert_true(chunk->text.room <= 2 * chunk_room(team.chunk_bytes));
	team_free(&team);
}

static void every_instruction_has_its_line_and_times_rise(void **state)
{
	struct fixture *fixture = *state;
	struct team_result result;
	uint64_t insns = 0, lines = 0, last = 0;
	char *text = print(fixture, 2, 0, &result);

	for (unsigned i = 0; i < QUEUES; i++)
		insns += fixture->vms[i].truth.count;
	for (char *p = text, *line; (line = strsep(&p, "\n")) && *line; lines++) {
		uint64_t seconds, ns;

		if (sscanf(line, " [%*d] %*s %" SCNu64 ".%" SCNu64, &seconds, &ns) != 2)
			fail_msg("'%s'", line);
		assert_true(seconds * 1000000000 + ns >= last);
		last = seconds * 1000000000 + ns;
	}
	assert_int_equal(result.insns, insns);
	assert_int_equal(lines, insns);
	free(text);
}

static void a_limit_of_lines_cuts_the_same_text(void **state)
{
	struct team_result result;
	char *whole = print(*state, 2, 0, &result);

	for (uint64_t lines = 1; lines < 100000; lines *= 10) {
		char *part = print(*state, 2, lines, &result);
		uint64_t count = 0;

		assert_true(!strncmp(whole, part, strlen(part)));
		for (char *p = part; (p = strchr(p, '\n')); p++)
			count++;
		assert_int_equal(count, lines);
		free(part);
	}
	free(whole);
}

/* Each line is an instruction; what is decoded ahead differs from run to run. */
static void only_segments_that_were_written_count(void **state)
{
	struct fixture *fixture = *state;
	struct team_result one, many;

	fixture->print.segment_bytes = 1;
	for (uint64_t lines = 10; lines < 100000; lines *= 10) {
		free(print(fixture, 1, lines, &one));
		assert_true(one.insns <= lines && (lines < 10000 || one.insns));
		for (unsigned i = 0; i < 12; i++) {
			free(print(fixture, 2 + i % 3 * 3, lines, &many));
			assert_int_equal(many.insns, one.insns);
			assert_int_equal(many.corrections, one.corrections);
			assert_memory_equal(many.gaps, one.gaps, sizeof(one.gaps));
		}
	}
}

static void nothing_more_is_written_where_nobody_reads(void **state)
{
	struct fixture *fixture = *state;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(close(fds[0]), 0);
	assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	for (unsigned threads = 1; threads < 8; threads++) {
		const struct timeline_output output = { fds[1], 0, threads };
		struct ptvm_error error = { 0 };
		struct team_result result;

		assert_int_equal(team_print(fixture->queues, QUEUES, &fixture->print, &output,
					    &result, &error),
				 -PTVM_SYSTEM);
		assert_int_equal(error.sys_errno, EPIPE);
		if (threads == 1) /* others may be far ahead */
			assert_true(result.insns < INSTRUCTIONS);
	}
	assert_int_equal(close(fds[1]), 0);
}

static void unwanted_cpus_have_no_lane(void **state)
{
	struct fixture *fixture = *state;
	const struct timeline_output output = { -1, 0, 2 };
	struct team team;

	assert_int_equal(number_ranges_parse("-C", "1", &fixture->print.cpus, NULL), 0);
	assert_int_equal(team_init(&team, fixture->queues, QUEUES, &fixture->print, &output), 0);
	assert_int_equal(team.lane_count, 1);
	assert_ptr_equal(team.lanes[0].walk.walk.cursor.queue, &fixture->queues[1]);
	team_free(&team);
}

static void without_lanes_there_may_be_records(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t bytes[24] = { PERF_LOST, [6] = sizeof(bytes) };
	struct perf_record record = {
		.data = bytes, .type = PERF_LOST, .size = sizeof(bytes), .cpu = -1
	};
	const struct perf_data data = { .records = { &record, 1, 1 } };
	_cleanup_close_ int fd = memfd_create("lines", MFD_CLOEXEC);
	const struct timeline_output output = { fd, 0, 2 };
	struct ptvm_error error = { 0 };
	struct sideband *sideband;
	struct team team;

	assert_int_equal(sideband_build(&data, &sideband), 0);
	fixture->print.data = &data;
	fixture->print.sideband = sideband;
	fixture->print.records = RECORDS_LOST;
	assert_int_equal(team_init(&team, NULL, 0, &fixture->print, &output), 0);
	assert_int_equal(team_run(&team, &error), 0);
	assert_true(lseek(fd, 0, SEEK_END) > 0);
	assert_int_equal(pthread_mutex_trylock(&team.lock), 0); /* no thread holds it any more */
	assert_int_equal(pthread_mutex_unlock(&team.lock), 0);
	team_free(&team);
	sideband_free(sideband);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(threads_change_nothing),
		TEST(threads_change_nothing_of_branches),
		TEST(threads_change_nothing_of_damage),
		TEST(threads_change_nothing_of_code_that_was_replaced),
		TEST(a_cpu_alone_has_the_code_that_all_tell_of),
		TEST(threads_agree_about_modules_that_are_gone),
		cmocka_unit_test_setup_teardown(threads_change_nothing_of_errors, set_up_errors,
						tear_down),
		TEST(threads_change_nothing_where_lines_build_on_each_other),
		TEST(threads_change_nothing_of_a_part_of_the_time),
		TEST(threads_change_nothing_where_memory_is_short),
		TEST(text_that_was_written_takes_no_memory),
		TEST(every_instruction_has_its_line_and_times_rise),
		TEST(a_limit_of_lines_cuts_the_same_text),
		TEST(only_segments_that_were_written_count),
		TEST(nothing_more_is_written_where_nobody_reads),
		TEST(unwanted_cpus_have_no_lane),
		TEST(without_lanes_there_may_be_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
