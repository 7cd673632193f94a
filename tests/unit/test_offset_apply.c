#include "correlate/offset_apply.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "correlate/tsc_offset_infer.h"
#include "correlate/vmcs_collect.h"
#include "decode/base/vec.h"
#include "tests/failing_io.h"
#include "tests/flow_bench.h"

/* Correcting a file that holds the trace of a simulated machine: whatever fails and whenever, the
 * file is what it was or what it shall be, or the next run makes it so. */

/* Spans of the trace, what is no trace between them, and pieces that are there again. */
enum { CHUNK = 37, GAP = 40, PIECE = 41 };

struct bench {
	struct sim_vm vm;
	struct perf_data data;
	struct tsc_offsets offsets;
	struct apply_target target;
	char directory[32], path[64], journal[96];
	struct aux_repeat repeat; /* all pieces */
	uint8_t *before, *after;  /* the file */
	size_t size;
};

static bool go_on(void *context, double done)
{
	return true;
}

static bool never(void *context, double done)
{
	return false;
}

static bool watch_walk(void *context, double done)
{
	return true;
}

static void find_offsets(struct bench *bench)
{
	const struct watch watch = { watch_walk, NULL };
	struct vmcs_table table = { 0 };

	tsc_offsets_free(&bench->offsets);
	bench->offsets = (struct tsc_offsets){ 0 };
	assert_int_equal(vmcs_collect(bench->data.queues.items, 1, &bench->data.pt,
				      (struct bytes){ 0 }, &watch, &table),
			 0);
	assert_int_equal(tsc_offset_infer(&table, &bench->data.pt, &bench->offsets), 0);
	vmcs_table_free(&table);
}

/* The trace in small spans, so that packets straddle them, with other bytes between; and its first
 * half once more. */
static void write_file(struct bench *bench)
{
	const struct pt_bytes *trace = &bench->vm.pt.out;
	size_t spans = trace->size / CHUNK + 1;

	bench->repeat = (struct aux_repeat){ 0, trace->size / 2, trace->size + (spans + 1) * GAP };
	bench->size = bench->repeat.file_offset + bench->repeat.size;
	bench->before = malloc(bench->size);
	bench->after = malloc(bench->size);
	assert_true(bench->before && bench->after);
	memset(bench->before, 0x5a, bench->size);
	for (size_t i = 0; i * CHUNK < trace->size; i++) {
		size_t size = trace->size - i * CHUNK < CHUNK ? trace->size - i * CHUNK : CHUNK;

		memcpy(bench->before + GAP + i * (CHUNK + GAP), trace->data + i * CHUNK, size);
	}
	memcpy(bench->before + bench->repeat.file_offset, trace->data, bench->repeat.size);
	assert_int_equal(pwrite(bench->target.fd, bench->before, bench->size, 0), bench->size);
}

static void map_file(struct bench *bench)
{
	const struct pt_bytes *trace = &bench->vm.pt.out;
	struct aux_queue queue = { .cpu = 0, .tid = -1, .pid = -1 };
	void *bytes = mmap(NULL, bench->size, PROT_READ, MAP_SHARED, bench->target.fd, 0);

	assert_true(bytes != MAP_FAILED);
	bench->data.file = (struct bytes){ bytes, bench->size };
	queue.spans = calloc(trace->size / CHUNK + 1, sizeof(*queue.spans));
	assert_non_null(queue.spans);
	for (size_t i = 0; i * CHUNK < trace->size; i++) {
		size_t offset = GAP + i * (CHUNK + GAP);
		size_t size = trace->size - i * CHUNK < CHUNK ? trace->size - i * CHUNK : CHUNK;

		queue.spans[queue.count++] =
			(struct aux_span){ .data = bench->data.file.data + offset,
					   .size = size,
					   .position = queue.size,
					   .file_offset = offset };
		queue.size += size;
	}
	queue.repeats = calloc(bench->repeat.size / PIECE + 1, sizeof(*queue.repeats));
	assert_non_null(queue.repeats);
	for (size_t at = 0; at < bench->repeat.size; at += PIECE) {
		size_t size = bench->repeat.size - at < PIECE ? bench->repeat.size - at : PIECE;

		queue.repeats[queue.repeat_count++] =
			(struct aux_repeat){ at, size, bench->repeat.file_offset + at };
	}
	assert_true(vec_push(&bench->data.queues, queue));
}

static void set_up(struct bench *bench, uint64_t seed)
{
	struct sim_options options = sim_options_plain(seed);

	*bench = (struct bench){ .directory = "/tmp/ptvm-apply-XXXXXX" };
	options.pt.psb_bytes = 256;
	sim_vm_run(&options, &bench->vm);
	assert_non_null(mkdtemp(bench->directory));
	(void)snprintf(bench->path, sizeof(bench->path), "%s/data", bench->directory);
	(void)snprintf(bench->journal, sizeof(bench->journal), "%s.ptvm-undo", bench->path);
	bench->target = (struct apply_target){ open(bench->path, O_RDWR | O_CREAT, 0600),
					       bench->path,
					       bench->journal,
					       &file_io_system,
					       { go_on, NULL } };
	assert_true(bench->target.fd >= 0);
	bench->data.pt = bench_config(&options);
	write_file(bench);
	map_file(bench);
	find_offsets(bench);
}

static void tear_down(struct bench *bench)
{
	char draft[128];

	(void)snprintf(draft, sizeof(draft), "%s.new", bench->journal);
	(void)unlink(draft);
	(void)unlink(bench->journal);
	(void)unlink(bench->path);
	(void)rmdir(bench->directory);
	(void)close(bench->target.fd);
	(void)munmap((void *)bench->data.file.data, bench->size);
	free(bench->data.queues.items[0].spans);
	free(bench->data.queues.items[0].repeats);
	vec_free(&bench->data.queues);
	tsc_offsets_free(&bench->offsets);
	sim_vm_free(&bench->vm);
	free(bench->before);
	free(bench->after);
}

static bool is_file(const struct bench *bench, const uint8_t *bytes)
{
	return !memcmp(bench->data.file.data, bytes, bench->size);
}

static enum journal_state state_of(const struct bench *bench)
{
	enum journal_state state;
	struct journal journal;

	assert_int_equal(journal_open(bench->journal, &journal, NULL), 0);
	state = journal.state;
	journal_close(&journal);
	return state;
}

static int apply(struct bench *bench, const struct file_io *io, struct ptvm_error *error)
{
	struct apply_target target = bench->target;
	struct apply_result result;

	target.io = io;
	return offset_apply(&bench->data, &bench->offsets, &target, &result, error);
}

static int undo(struct bench *bench, const struct file_io *io)
{
	struct apply_target target = bench->target;
	struct journal journal;
	int r;

	target.io = io;
	assert_int_equal(journal_open(bench->journal, &journal, NULL), 0);
	r = offset_undo(&target, &journal, false, NULL);
	journal_close(&journal);
	return r;
}

/* Correct it once to know what that makes of it, and bring it back. */
static void learn_after(struct bench *bench)
{
	assert_int_equal(apply(bench, &file_io_system, NULL), 0);
	memcpy(bench->after, bench->data.file.data, bench->size);
	assert_false(is_file(bench, bench->before));
	assert_int_equal(undo(bench, &file_io_system), 0);
	assert_true(is_file(bench, bench->before));
}

static void corrected_time_needs_no_correction(void **state)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		struct bench bench;

		set_up(&bench, seed);
		assert_false(tsc_offsets_are_none(&bench.offsets));
		learn_after(&bench);
		assert_int_equal(apply(&bench, &file_io_system, NULL), 0);
		assert_true(is_file(&bench, bench.after));
		assert_int_equal(state_of(&bench), JOURNAL_DONE);
		find_offsets(&bench);
		assert_true(tsc_offsets_are_none(&bench.offsets));
		tear_down(&bench);
	}
}

static void what_another_run_corrected_meanwhile_is_left_alone(void **state)
{
	struct ptvm_error error = { 0 };
	struct bench bench;

	set_up(&bench, 1);
	learn_after(&bench);
	assert_int_equal(apply(&bench, &file_io_system, NULL), 0);
	assert_int_equal(apply(&bench, &file_io_system, &error), -PTVM_INCONSISTENT);
	assert_non_null(strstr(error.message, bench.path));
	assert_int_equal(state_of(&bench), JOURNAL_DONE);
	assert_true(is_file(&bench, bench.after));
	assert_int_equal(undo(&bench, &file_io_system), 0);
	assert_true(is_file(&bench, bench.before));
	tear_down(&bench);
}

static void only_the_payload_of_guest_tsc_packets_changes(void **state)
{
	struct bench bench;
	size_t stamps = 0, changed = 0;

	set_up(&bench, 2);
	learn_after(&bench);
	for (size_t i = 0; i < bench.vm.pt.psbs.count; i++)
		stamps += bench.vm.pt.psbs.items[i].nr;
	for (size_t i = 0; i < bench.size; i++)
		changed += bench.before[i] != bench.after[i];
	assert_true(changed > 0 && changed <= 2 * 7 * stamps); /* half of them twice */
	tear_down(&bench);
}

static void a_failing_call_leaves_the_file_as_it_was(void **state)
{
	struct bench bench;

	set_up(&bench, 1);
	learn_after(&bench);
	for (long calls = 0;; calls++) {
		struct failing_io failing = failing_io_after(calls, false);
		struct ptvm_error error = { 0 };
		int r = apply(&bench, &failing.io, &error);

		if (!r)
			break;
		assert_int_equal(r, -PTVM_SYSTEM);
		assert_non_null(strstr(error.message, bench.directory));
		assert_true(is_file(&bench, bench.before));
		assert_int_equal(state_of(&bench), JOURNAL_NONE);
	}
	assert_true(is_file(&bench, bench.after));
	tear_down(&bench);
}

/* Run in a process of its own, which ends at the call; returns whether it came to its end. */
static bool die_at(struct bench *bench, long calls, bool undoing)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct failing_io failing = failing_io_after(calls, true);

		(void)(undoing ? undo(bench, &failing.io) : apply(bench, &failing.io, NULL));
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_death_at_any_call_can_be_undone(void **state)
{
	struct bench bench;
	bool done = false;

	set_up(&bench, 1);
	learn_after(&bench);
	for (long calls = 0; !done; calls++) {
		done = die_at(&bench, calls, false);
		if (state_of(&bench) == JOURNAL_DONE)
			assert_true(is_file(&bench, bench.after));
		if (state_of(&bench) == JOURNAL_NONE)
			assert_true(is_file(&bench, bench.before));
		else
			assert_int_equal(undo(&bench, &file_io_system), 0);
		assert_true(is_file(&bench, bench.before));
	}
	tear_down(&bench);
}

static void a_death_while_undoing_can_be_undone(void **state)
{
	struct bench bench;
	bool done = false;

	set_up(&bench, 1);
	for (long calls = 0; !done; calls++) {
		assert_int_equal(apply(&bench, &file_io_system, NULL), 0);
		done = die_at(&bench, calls, true);
		if (state_of(&bench) != JOURNAL_NONE)
			assert_int_equal(undo(&bench, &file_io_system), 0);
		assert_true(is_file(&bench, bench.before));
	}
	tear_down(&bench);
}

static void an_interrupt_leaves_everything_as_it_was(void **state)
{
	struct bench bench;

	set_up(&bench, 1);
	bench.target.watch.go_on = never;
	assert_int_equal(apply(&bench, &file_io_system, NULL), -PTVM_END);
	assert_true(is_file(&bench, bench.before));
	assert_int_equal(state_of(&bench), JOURNAL_NONE);
	tear_down(&bench);
}

static void what_was_changed_since_is_not_overwritten(void **state)
{
	struct bench bench;
	struct journal journal;

	for (unsigned i = 0; i < 3; i++) { /* the first, some, and the last entry */
		struct journal_entry entry;

		set_up(&bench, 1);
		assert_int_equal(apply(&bench, &file_io_system, NULL), 0);
		assert_int_equal(journal_open(bench.journal, &journal, NULL), 0);
		entry = journal_entry(&journal, (journal.count - 1) * i / 2);
		journal_close(&journal);
		assert_int_equal(
			pwrite(bench.target.fd, "\1\2\3\4\5\6\7", entry.size, (off_t)entry.offset),
			entry.size);
		assert_int_equal(undo(&bench, &file_io_system), -PTVM_INCONSISTENT);
		assert_int_equal(state_of(&bench), JOURNAL_DONE);
		tear_down(&bench);
	}
}

/* The stream as the file has it. */
static void read_stream(const struct bench *bench, uint8_t *ret)
{
	const struct aux_queue *queue = &bench->data.queues.items[0];

	for (size_t i = 0; i < queue->count; i++)
		memcpy(ret + queue->spans[i].position, queue->spans[i].data, queue->spans[i].size);
}

static void repeated_bytes_stay_repeated(void **state)
{
	struct bench bench;
	const struct aux_repeat *repeat;
	uint8_t *stream;

	set_up(&bench, 1);
	repeat = &bench.repeat;
	stream = malloc(bench.vm.pt.out.size);
	assert_non_null(stream);
	assert_int_equal(apply(&bench, &file_io_system, NULL), 0);
	read_stream(&bench, stream);
	assert_memory_not_equal(stream, bench.vm.pt.out.data, repeat->size);
	assert_memory_equal(stream, bench.data.file.data + repeat->file_offset, repeat->size);
	free(stream);
	tear_down(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(corrected_time_needs_no_correction),
		cmocka_unit_test(what_another_run_corrected_meanwhile_is_left_alone),
		cmocka_unit_test(only_the_payload_of_guest_tsc_packets_changes),
		cmocka_unit_test(a_failing_call_leaves_the_file_as_it_was),
		cmocka_unit_test(a_death_at_any_call_can_be_undone),
		cmocka_unit_test(a_death_while_undoing_can_be_undone),
		cmocka_unit_test(an_interrupt_leaves_everything_as_it_was),
		cmocka_unit_test(what_was_changed_since_is_not_overwritten),
		cmocka_unit_test(repeated_bytes_stay_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
