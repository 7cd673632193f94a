#include "decode/print/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/flow_bench.h"
#include "tests/pt_encode.h"

/* A segment that goes round a loop, 00 nop; 01 je 00, printed in chunks of any size. */

enum { BASE = 0x1000, BIT_PACKETS = 500, ROUNDS = 6 * BIT_PACKETS, TSC = 1000000 };

struct fixture {
	struct machines machines;
	struct pt_config pt;
	struct print_config config;
	struct pt_bytes trace;
	struct bench_queue queue;
	struct pt_segment segment;
	struct flow_code where;
	struct worker worker;
	struct job *job;
};

static void make_trace(struct fixture *f)
{
	pt_put_psb_plus(&f->trace, &(struct pt_psb_plus){ .vmcs = PT_NO_VMCS, .tsc = TSC });
	pt_put_ip(&f->trace, PT_TIP_PGE, BASE, PT_IP_AUTO);
	for (unsigned i = 0; i < BIT_PACKETS; i++)
		pt_put(&f->trace, &(struct pt_packet){ .kind = PT_TNT, .payload = 63, .count = 6 });
	pt_put_ip(&f->trace, PT_TIP_PGD, BASE, PT_IP_AUTO);
}

static void cut_segment(struct fixture *f)
{
	struct pt_walk walk;

	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
	f->queue.queue.cpu = 1;
	f->queue.queue.pid = f->queue.queue.tid = 7;
	pt_walk_init(&walk, &f->queue.queue, &f->pt, NULL, f->trace.size);
	assert_int_equal(pt_walk_next(&walk, &f->segment), 0);
}

static int set_up(void **state)
{
	static const uint8_t bytes[0x10] = { 0x90, 0x74, 0xfd };
	static struct fixture fixture;
	struct fixture *f = &fixture;

	memset(f, 0, sizeof(*f));
	assert_true(bench_machines_new(&f->machines));
	assert_true(bench_add_code(f->machines.host, BASE, bytes, sizeof(bytes)));
	f->pt = bench_skylake_x;
	assert_int_equal(itrace_add("b", &f->config.itrace, NULL), 0);
	f->config.fields = FIELD_IP | FIELD_ADDR;
	f->config.style = (struct block_style){ .fields = f->config.fields, .lead = "" };
	f->config.modifier = "";
	f->config.pt = &f->pt;
	f->config.machines = &f->machines;
	f->where = (struct flow_code){ .pid = 7 };
	f->worker.print = &f->config;
	f->worker.batch.room = FLOW_MARGIN + 256;
	code_init(&f->worker.code, &f->machines);
	make_trace(f);
	cut_segment(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->job)
		job_free(f->job);
	code_free(&f->worker.code);
	machines_free(&f->machines);
	bench_queue_free(&f->queue);
	pt_bytes_free(&f->trace);
	return 0;
}

static struct job *begin(struct fixture *f, struct printer *printer)
{
	if (f->job)
		job_free(f->job);
	f->job = malloc(sizeof(*f->job));
	assert_non_null(f->job);
	memset(f->job, 0x5a, sizeof(*f->job));
	f->job->segment = f->segment;
	job_init(f->job, &f->config, printer, 0);
	assert_null(f->job->next);
	assert_null(f->job->chunks.first);
	assert_null(f->job->outcome);
	return f->job;
}

/* All chunks as one text, which is the caller's; returns how many there were. */
static unsigned run(struct fixture *f, size_t chunk_bytes, struct text *ret)
{
	unsigned chunks = 0;
	int r;

	f->worker.chunk_bytes = chunk_bytes;
	do {
		struct chunk *chunk = chunk_new(0);

		assert_non_null(chunk);
		r = job_run(f->job, &f->worker, &f->where, chunk);
		text_add(ret, chunk->text.data, chunk->text.size);
		if (chunk->text.size)
			assert_int_equal(chunk->runs.items[chunk->runs.count - 1].end,
					 chunk->text.size);
		chunks++;
		chunk_free(chunk);
	} while (!r);
	assert_int_equal(r, -PTVM_END);
	return chunks;
}

static size_t count_lines(const struct text *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->size; i++)
		lines += text->data[i] == '\n';
	return lines;
}

static void chunks_of_any_size_make_the_same_text(void **state)
{
	struct fixture *f = *state;
	struct text whole = { 0 };

	(void)begin(f, NULL);
	(void)run(f, 1 << 30, &whole);
	assert_int_equal(count_lines(&whole), ROUNDS + 2);
	for (size_t bytes = 1; bytes < 100000; bytes *= 7) {
		struct text pieces = { 0 };

		(void)begin(f, NULL);
		(void)run(f, bytes, &pieces);
		assert_int_equal(pieces.size, whole.size);
		assert_memory_equal(pieces.data, whole.data, whole.size);
		text_free(&pieces);
	}
	text_free(&whole);
}

static void a_chunk_ends_when_it_is_full(void **state)
{
	struct fixture *f = *state;
	struct text text = { 0 };

	(void)begin(f, NULL);
	assert_true(run(f, 1, &text) > 1);
	text_free(&text);
	(void)begin(f, NULL);
	assert_int_equal(run(f, 1 << 30, &text), 1);
	text_free(&text);
}

static void code_that_is_forgotten_is_read_again(void **state)
{
	struct fixture *f = *state;
	struct text whole = { 0 }, again = { 0 };

	(void)begin(f, NULL);
	(void)run(f, 1 << 30, &whole);
	f->worker.code.most_bytes = 1;
	(void)begin(f, NULL);
	(void)run(f, 1000, &again);
	assert_int_equal(again.size, whole.size);
	assert_memory_equal(again.data, whole.data, whole.size);
	text_free(&whole);
	text_free(&again);
}

/* Each chunk may be made by another thread, with blocks of its own. */
static void another_worker_can_go_on(void **state)
{
	struct fixture *f = *state;
	struct text text = { 0 };
	struct chunk *chunk = chunk_new(0);
	size_t lines;

	assert_non_null(chunk);
	(void)begin(f, NULL);
	f->worker.chunk_bytes = 1;
	assert_int_equal(job_run(f->job, &f->worker, &f->where, chunk), 0);
	lines = count_lines(&chunk->text);
	chunk_free(chunk);
	code_free(&f->worker.code);
	code_init(&f->worker.code, &f->machines);
	(void)run(f, 1 << 30, &text);
	assert_int_equal(lines + count_lines(&text), ROUNDS + 2);
	text_free(&text);
}

static void the_time_is_that_of_the_segment_or_of_the_flow(void **state)
{
	struct fixture *f = *state;
	struct text text = { 0 };

	f->segment.clock.now = TSC - 5000;
	(void)begin(f, NULL);
	assert_int_equal(job_time(f->job), TSC - 5000);
	(void)run(f, 1 << 30, &text);
	assert_int_equal(job_time(f->job), TSC);
	text_free(&text);
}

static void a_printer_of_the_queue_goes_on_from_job_to_job(void **state)
{
	struct fixture *f = *state;
	struct printer printer;
	struct text text = { 0 };

	printer_init(&printer, &f->config, &f->queue.queue, &f->where);
	for (unsigned i = 1; i <= 2; i++) {
		(void)begin(f, &printer);
		(void)run(f, 1 << 30, &text);
		assert_ptr_equal(f->job->printer, &printer);
		assert_int_equal(printer.lines, i * (ROUNDS + 2));
	}
	printer_free(&printer);
	text_free(&text);
}

/* The timeline relies on it, however damaged a trace is. */
static void no_line_is_before_those_of_the_job_before(void **state)
{
	enum { LATER = 2 * TSC };
	struct fixture *f = *state;
	struct chunk *chunk = chunk_new(0);

	assert_non_null(chunk);
	(void)begin(f, NULL);
	assert_int_equal(f->job->from_ns, 0); /* nothing is known before the first packet */
	job_init(f->job, &f->config, NULL, LATER);
	assert_int_equal(f->job->from_ns, LATER);
	f->worker.chunk_bytes = 1 << 30;
	assert_int_equal(job_run(f->job, &f->worker, &f->where, chunk), -PTVM_END);
	assert_true(chunk->runs.count > 0);
	for (size_t i = 0; i < chunk->runs.count; i++)
		assert_int_equal(chunk->runs.items[i].time_ns, LATER);
	chunk_free(chunk);
}

static void a_job_is_not_before_the_time_that_is_known_at_its_start(void **state)
{
	struct fixture *f = *state;

	f->segment.clock.now = TSC;
	assert_int_equal(begin(f, NULL)->from_ns,
			 f->pt.conv.valid ? time_conv_ns(&f->pt.conv, TSC) : (uint64_t)TSC);
	f->config.timeless = true;
	assert_int_equal(begin(f, NULL)->from_ns, 0);
}

static void gaps_alone_need_no_lines(void **state)
{
	struct fixture *f = *state;
	struct text text = { 0 };

	f->worker.gaps_only = true;
	(void)begin(f, NULL);
	assert_int_equal(run(f, 1 << 30, &text), 1);
	assert_int_equal(text.size, 0);
	assert_int_equal(f->job->run->flow.insns, 2 * ROUNDS + 2);
	text_free(&text);
}

static void its_outcome_tells_whether_more_patches_would_fit(void **state)
{
	struct fixture *f = *state;

	for (uint32_t left = 0; left < 3; left++) {
		struct text text = { 0 };
		struct outcome *outcome;

		(void)begin(f, NULL);
		(void)run(f, 1 << 30, &text);
		f->job->run->flow.patches.count = FLOW_PATCHES - left;
		outcome = job_outcome(f->job);
		assert_non_null(outcome);
		assert_int_equal(outcome->patch_count, FLOW_PATCHES - left);
		assert_int_equal(outcome->is_full, left < 2);
		free(outcome);
		text_free(&text);
	}
}

static void more_than_two_q_are_two(void **state)
{
	static const uint8_t expected[] = { 0, 1, 2, 2, 2 };
	struct fixture *f = *state;

	for (unsigned quick = 0; quick < 5; quick++) {
		struct text text = { 0 };

		f->config.itrace.quick = quick == 4 ? 256 : quick;
		(void)begin(f, NULL);
		(void)run(f, 1 << 30, &text);
		assert_int_equal(f->job->run->flow.quick, expected[quick]);
		text_free(&text);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(chunks_of_any_size_make_the_same_text),
		TEST(a_chunk_ends_when_it_is_full),
		TEST(code_that_is_forgotten_is_read_again),
		TEST(another_worker_can_go_on),
		TEST(the_time_is_that_of_the_segment_or_of_the_flow),
		TEST(a_printer_of_the_queue_goes_on_from_job_to_job),
		TEST(no_line_is_before_those_of_the_job_before),
		TEST(a_job_is_not_before_the_time_that_is_known_at_its_start),
		TEST(gaps_alone_need_no_lines),
		TEST(its_outcome_tells_whether_more_patches_would_fit),
		TEST(more_than_two_q_are_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
