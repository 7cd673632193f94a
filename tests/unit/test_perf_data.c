#include "decode/perf/perf_data.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_feature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <zstd.h>

#include "tests/perf_build.h"

static const char psb[16] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";

static void open_ok(struct bytes file, struct perf_data *ret)
{
	struct ptvm_error error = { 0 };

	if (perf_data_open_bytes(file, ret, &error))
		fail_msg("%s", error.message);
}

static void refuse(struct bytes file, const char *word)
{
	struct ptvm_error error = { 0 };
	struct perf_data data;

	assert_int_equal(perf_data_open_bytes(file, &data, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, word));
	perf_data_close(&data);
}

static void add_comm(struct perf_build *build, uint64_t time, const char name[8])
{
	uint8_t body[16] = { 5, 0, 0, 0, 6 };

	memcpy(body + 8, name, 8);
	perf_build_kernel(build, PERF_COMM, 0, body, sizeof(body),
			  (struct build_trailer){ 5, 6, time, 3, 1 });
}

static const char *comm_of(const struct perf_record *record)
{
	return (const char *)record->data + 16;
}

static void what_is_no_recording_is_refused(void **state)
{
	uint8_t file[104] = "PERFILE2";

	refuse((struct bytes){ file, 7 }, "too short");
	refuse((struct bytes){ file, 100 }, "cut off");
	refuse((struct bytes){ file, 104 }, "outside");
	memcpy(file, "2ELIFREP", 8);
	refuse((struct bytes){ file, 104 }, "big-endian");
	memcpy(file, "PERFFILE", 8);
	refuse((struct bytes){ file, 104 }, "version 1");
	memcpy(file, "\177ELF\2\1\1\0", 8);
	refuse((struct bytes){ file, 104 }, "not a perf.data");
}

static void records_come_in_order_of_time_and_without_time_first(void **state)
{
	static const char *const names[] = { "zero", "never", "one", "two", "two.2", "three" };
	struct perf_build build = { 0 };
	struct perf_data data;
	size_t comms = 0;

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 20, "two\0\0\0\0");
	add_comm(&build, 30, "three\0\0");
	add_comm(&build, 0, "zero\0\0\0");
	add_comm(&build, 10, "one\0\0\0\0");
	add_comm(&build, 20, "two.2\0\0");
	add_comm(&build, UINT64_MAX, "never\0\0");
	open_ok(perf_build_file(&build), &data);
	for (size_t i = 0; i < data.records.count; i++)
		if (data.records.items[i].type == PERF_COMM)
			assert_string_equal(comm_of(&data.records.items[i]), names[comms++]);
	assert_int_equal(comms, 6);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void trailers_tell_thread_cpu_and_id(void **state)
{
	struct perf_build build = { 0 };
	const struct perf_record *record;
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 20, "comm\0\0\0");
	perf_build_kernel(&build, PERF_SWITCH, 0, NULL, 0,
			  (struct build_trailer){ 1, 2, 30, 0, 999 });
	open_ok(perf_build_file(&build), &data);
	record = &data.records.items[data.records.count - 2];
	assert_int_equal(record->pid, 5);
	assert_int_equal(record->tid, 6);
	assert_int_equal(record->cpu, 3);
	assert_int_equal(record->id, 1);
	assert_int_equal(record->time, 20);
	assert_int_equal(data.bad_records, 0);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void pt_config_comes_from_info_and_attr(void **state)
{
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	open_ok(perf_build_file(&build), &data);
	assert_true(data.have_pt && !data.is_timeless);
	assert_true(data.pt.tsc && data.pt.mtc && data.pt.cyc && data.pt.per_cpu);
	assert_false(data.pt.noretcomp || data.pt.snapshot);
	assert_int_equal(data.pt.mtc_shift, 3);
	assert_int_equal(data.pt.nominal_hz, 2000000000);
	assert_int_equal(data.pt.max_nonturbo, 20);
	assert_true(data.events.items[0].is_pt);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void short_info_of_old_perf_is_enough(void **state)
{
	const uint64_t info[] = { 1, BUILD_PT_TYPE, 31, 1 << 30, 1000, 1, 0x400, 0x800, 3, 0, 1 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_event(&build, BUILD_PT_TYPE, BUILD_PT_CONFIG, BUILD_SAMPLE_TYPE, 1, 64);
	perf_build_record(&build, PERF_AUXTRACE_INFO, 0, info, sizeof(info));
	open_ok(perf_build_file(&build), &data);
	assert_true(data.have_pt && !data.is_timeless && data.pt.tsc);
	assert_false(data.pt.mtc || data.pt.cyc);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void one_event_without_time_makes_all_timeless(void **state)
{
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_event(&build, 1, 9, BUILD_SAMPLE_TYPE & ~PERF_SAMPLE_TIME, 2, 128);
	open_ok(perf_build_file(&build), &data);
	assert_true(data.is_timeless);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void attrs_of_any_size_are_read(void **state)
{
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_event(&build, 1, 64, BUILD_SAMPLE_TYPE, 11, 64);
	perf_build_event(&build, 1, 144, BUILD_SAMPLE_TYPE, 12, 144);
	perf_build_event(&build, 1, 200, BUILD_SAMPLE_TYPE, 13, 200);
	open_ok(perf_build_file(&build), &data);
	assert_int_equal(data.events.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(data.events.items[i].config, data.events.items[i].attr.size);
		assert_int_equal(data.events.items[i].ids[0], 11 + i);
		assert_int_equal(perf_event_find_id(&data, 11 + i)->event, i);
	}
	perf_data_close(&data);
	perf_build_free(&build);
}

static void id_index_names_machines_when_it_is_long_enough(void **state)
{
	for (int is_long = 0; is_long < 2; is_long++) {
		const uint64_t body[] = { 1, 1, 7, 0, UINT64_MAX, 4711, 2 };
		struct perf_build build = { 0 };
		struct perf_data data;

		perf_build_pt(&build, 0, 1);
		perf_build_record(&build, PERF_ID_INDEX, 0, body, is_long ? 56 : 40);
		add_comm(&build, 20, "comm\0\0\0");
		open_ok(perf_build_file(&build), &data);
		assert_int_equal(data.id_index.count, 1);
		assert_int_equal(data.id_index.items[0].tid, -1);
		assert_int_equal(data.id_index.items[0].vcpu, is_long ? 2 : -1);
		assert_int_equal(data.records.items[data.records.count - 1].machine_pid,
				 is_long ? 4711 : 0);
		perf_data_close(&data);
		perf_build_free(&build);
	}
}

static void the_vcpu_of_a_thread_is_found_among_many(void **state)
{
	enum { IDS = 100 };
	uint64_t body[1 + 6 * IDS] = { IDS };
	struct perf_build build = { 0 };
	struct perf_data data;

	for (uint64_t i = 0; i < IDS; i++) {
		body[1 + 4 * i + 3] = 1000 - i;
		body[1 + 4 * IDS + 2 * i] = i % 2 ? 4711 : 0; /* every other one is the host's */
		body[1 + 4 * IDS + 2 * i + 1] = i;
	}
	body[1 + 4 * (IDS - 1) + 3] = UINT64_MAX; /* of a CPU, whatever thread it runs */
	perf_build_pt(&build, 0, 1);
	perf_build_record(&build, PERF_ID_INDEX, 0, body, sizeof(body));
	open_ok(perf_build_file(&build), &data);
	for (int i = 0; i < IDS - 1; i++)
		assert_int_equal(perf_data_vcpu(&data, 1000 - i), i % 2 ? i : -1);
	assert_int_equal(perf_data_vcpu(&data, -1), -1);
	assert_int_equal(perf_data_vcpu(&data, 1001), -1);
	assert_int_equal(perf_data_vcpu(&data, 0), -1);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void a_machine_that_no_process_runs_is_damage(void **state)
{
	const uint64_t body[] = { 2, 1,          7,    0, UINT64_MAX, 2, 7,
				  0, UINT64_MAX, 4711, 2, 1ULL << 32, 0 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_record(&build, PERF_ID_INDEX, 0, body, sizeof(body));
	open_ok(perf_build_file(&build), &data);
	assert_int_equal(data.id_index.count, 1);
	assert_int_equal(data.id_index.items[0].machine_pid, 4711);
	assert_int_equal(data.bad_records, 1);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void buffers_of_a_queue_are_one_stream_without_padding(void **state)
{
	const uint8_t trace[16] = { 1, 2, 3, 4, 5, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9 };
	struct perf_build build = { 0 };
	const struct aux_queue *queue;
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 3, 100, trace, 8);
	perf_build_aux(&build, 1, 0, trace, 16);
	perf_build_aux(&build, 3, 105, trace + 8, 8);
	perf_build_aux(&build, 3, 200, trace + 8, 8);
	open_ok(perf_build_file(&build), &data);
	assert_int_equal(data.queues.count, 2);
	queue = &data.queues.items[1];
	assert_int_equal(queue->index, 3);
	assert_int_equal(queue->cpu, 3);
	assert_int_equal(queue->size, 5 + 8 + 8);
	assert_int_equal(queue->spans[0].size, 5);
	assert_int_equal(queue->spans[1].position, 5);
	assert_false(queue->spans[1].lost_before);
	assert_true(queue->spans[2].lost_before);
	assert_int_equal(queue->spans[0].reference, 77);
	assert_memory_equal(data.file.data + queue->spans[0].file_offset, trace, 5);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void lost_data_splits_the_stream(void **state)
{
	const uint8_t trace[32] = { 1 };
	struct perf_build build = { 0 };
	const struct aux_queue *queue;
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_aux_event(&build, 0, 50, 0, 24, 1);
	perf_build_aux_event(&build, 0, 60, 24, 8, 1);
	perf_build_aux_event(&build, 0, 70, 32, 8, 0);
	perf_build_aux(&build, 0, 0, trace, 32);
	perf_build_aux(&build, 0, 32, trace, 32);
	open_ok(perf_build_file(&build), &data);
	queue = &data.queues.items[0];
	assert_int_equal(queue->count, 3);
	assert_int_equal(queue->spans[0].size, 24);
	assert_int_equal(queue->spans[1].size, 8);
	assert_true(queue->spans[1].lost_before);
	assert_int_equal(queue->spans[2].position, 32);
	assert_true(queue->spans[2].lost_before);
	assert_int_equal(queue->loss_count, 2);
	assert_int_equal(queue->losses[1].time, 60);
	assert_int_equal(queue->losses[1].position, 32);
	perf_data_close(&data);
	perf_build_free(&build);
}

/* 64 bytes of noise, PSB, 64 bytes of noise. */
static void make_trace(uint8_t trace[144])
{
	for (unsigned i = 0; i < 144; i++)
		trace[i] = (uint8_t)(i * 37 + 11);
	memcpy(trace + 64, psb, sizeof(psb));
}

static void the_overlap_of_snapshots_is_cut_off(void **state)
{
	struct perf_build build = { 0 };
	const struct aux_queue *queue;
	uint8_t trace[144], former[128] = { 0 };
	struct perf_data data;

	make_trace(trace);
	memcpy(former, trace, 124); /* and padding */
	perf_build_pt(&build, 1, 1);
	perf_build_aux(&build, 0, 0, former, 128);
	perf_build_aux(&build, 0, 0, trace + 40, 104);
	perf_build_aux(&build, 0, 0, trace + 88, 56);
	open_ok(perf_build_file(&build), &data);
	queue = &data.queues.items[0];
	assert_int_equal(queue->count, 3);
	assert_int_equal(queue->spans[0].size, 124);
	assert_int_equal(queue->spans[1].size, 20);
	assert_false(queue->spans[1].lost_before);
	assert_memory_equal(queue->spans[1].data, trace + 124, 20);
	assert_true(queue->spans[2].lost_before);
	assert_int_equal(queue->size, 124 + 20 + 56);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void a_cut_file_gives_what_is_there(void **state)
{
	const uint8_t trace[64] = { 1 };
	struct perf_build build = { 0 };
	struct bytes file;
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 20, "comm\0\0\0");
	perf_build_aux(&build, 0, 0, trace, 64);
	file = perf_build_file(&build);
	memset(build.whole + 48, 0, 8); /* recording did not end */
	file.size -= 24 + 16 + 40;      /* index, table, some of the trace */
	open_ok(file, &data);
	assert_true(data.truncated);
	assert_int_equal(data.queues.items[0].size, 24);
	assert_int_equal(data.records.items[data.records.count - 1].type, PERF_COMM);
	perf_data_close(&data);
	for (size_t size = 0; size < file.size; size++) {
		struct ptvm_error error = { 0 };
		struct bytes part = { malloc(size + 1), size };

		memcpy((uint8_t *)part.data, file.data, size);
		(void)perf_data_open_bytes(part, &data, &error);
		perf_data_close(&data);
		free((uint8_t *)part.data);
	}
	perf_build_free(&build);
}

static void after_damage_reading_goes_on_at_the_next_trace(void **state)
{
	const uint8_t trace[64] = { 1 }, noise[32] = { 255, 255, 255, 255, 0, 0, 3, 0 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0, trace, 64);
	perf_build_record(&build, 1 << 30, 0, noise, sizeof(noise));
	perf_build_aux(&build, 0, 64, trace, 64);
	add_comm(&build, 20, "comm\0\0\0");
	open_ok(perf_build_file(&build), &data);
	assert_non_null(data.bad_reason);
	assert_int_equal(data.skipped_bytes, 40);
	assert_int_equal(data.queues.items[0].size, 128);
	assert_int_equal(data.records.items[data.records.count - 1].type, PERF_COMM);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void after_damage_reading_goes_on_at_the_next_records(void **state)
{
	const uint8_t trace[64] = { 1 }, noise[37] = { 255, 255, 255, 255, 0, 0, 3, 0 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0, trace, 64);
	perf_build_record(&build, 1 << 30, 0, noise, sizeof(noise));
	add_comm(&build, 20, "first\0\0");
	add_comm(&build, 30, "next\0\0\0");
	add_comm(&build, 40, "last\0\0\0");
	perf_build_aux(&build, 0, 64, trace, 64);
	open_ok(perf_build_file(&build), &data);
	assert_non_null(data.bad_reason);
	assert_int_equal(data.skipped_bytes, 45);
	assert_int_equal(data.queues.items[0].size, 128);
	assert_string_equal(comm_of(&data.records.items[data.records.count - 3]), "first");
	assert_string_equal(comm_of(&data.records.items[data.records.count - 1]), "last");
	perf_data_close(&data);
	perf_build_free(&build);
}

static void a_trace_of_damaged_size_ends_at_the_next(void **state)
{
	const uint8_t trace[64] = { 1 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0, trace, 64);
	memset(build.bytes + build.aux_index[0] + 8, 0x7f, 8);
	perf_build_aux(&build, 1, 0, trace, 64);
	add_comm(&build, 20, "comm\0\0\0");
	open_ok(perf_build_file(&build), &data);
	assert_non_null(data.bad_reason);
	assert_int_equal(data.queues.count, 2);
	assert_int_equal(data.queues.items[0].size, 64);
	assert_int_equal(data.records.items[data.records.count - 1].type, PERF_COMM);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void an_index_into_a_header_is_harmless(void **state)
{
	const uint8_t trace[64] = { PERF_AUXTRACE, 0, 0, 0, 0, 0, 48 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0x0030000000000047, trace, 64); /* itself a header */
	memset(build.bytes + build.aux_index[0] + 8, 0xff, 8);
	build.aux_index[0] += 16;
	open_ok(perf_build_file(&build), &data);
	assert_true(data.truncated);
	assert_int_equal(data.queues.items[0].size, 64);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void more_queues_than_there_can_be_are_left_out(void **state)
{
	enum { MOST = 8192, MORE = 3 };
	const uint8_t trace[8] = { 1 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	for (uint32_t i = 0; i < MOST + MORE; i++) {
		build.aux_index_count = 0;
		perf_build_aux(&build, i, 0, trace, sizeof(trace));
		perf_build_aux(&build, i, sizeof(trace), trace, sizeof(trace));
	}
	open_ok(perf_build_file(&build), &data);
	assert_int_equal(data.queues.count, MOST);
	assert_int_equal(data.left_out_queues, MORE);
	assert_int_equal(data.queues.items[MOST - 1].size, 2 * sizeof(trace));
	perf_data_close(&data);
	perf_build_free(&build);
}

static void unknown_records_are_stepped_over(void **state)
{
	const uint64_t body[4] = { 1, 2, 3, 4 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_record(&build, 99, 0, body, sizeof(body));
	add_comm(&build, 20, "comm\0\0\0");
	open_ok(perf_build_file(&build), &data);
	assert_null(data.bad_reason);
	assert_int_equal(data.records.items[data.records.count - 1].type, PERF_COMM);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void a_pipe_tells_the_same_as_a_file(void **state)
{
	const uint8_t trace[64] = { 1 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	add_comm(&build, 20, "comm\0\0\0");
	perf_build_aux(&build, 0, 0, trace, 64);
	open_ok(perf_build_pipe(&build), &data);
	assert_true(data.is_pipe && data.have_pt && !data.truncated && data.pt.tsc);
	assert_int_equal(data.events.items[0].ids[0], 1);
	assert_int_equal(data.records.items[data.records.count - 1].cpu, 3);
	assert_int_equal(data.queues.items[0].size, 64);
	perf_data_close(&data);
	perf_build_free(&build);
}

/* What stands in the header of a file comes as records; a feature that no perf has is damage. */
static void a_pipe_has_its_features_among_its_records(void **state)
{
	const struct {
		uint64_t feature;
		uint32_t count, size;
		char words[8];
	} command = { PERF_FEATURE_CMDLINE, 1, 8, "perf" }, none = { 1 << 20, 1, 8, "perf" };
	const struct {
		uint32_t size, none;
		char formats[8];
	} tracing = { 8, 0, "formats" };
	struct perf_build build = { 0 };
	struct perf_data data;
	size_t at;

	perf_build_pt(&build, 0, 1);
	perf_build_record(&build, PERF_HEADER_FEATURE, 0, &command, sizeof(command));
	perf_build_record(&build, PERF_HEADER_FEATURE, 0, &none, sizeof(none));
	at = build.size;
	perf_build_record(&build, PERF_TRACING_DATA, 0, &tracing, sizeof(tracing));
	build.bytes[at + 6] = 16; /* the formats lie behind the record */
	add_comm(&build, 20, "comm\0\0\0");
	open_ok(perf_build_pipe(&build), &data);
	assert_string_equal(data.features.cmdline, "perf");
	assert_int_equal(data.bad_records, 1);
	assert_int_equal(data.features.payloads[PERF_FEATURE_TRACING_DATA].size, 8);
	assert_memory_equal(data.features.payloads[PERF_FEATURE_TRACING_DATA].data, "formats", 8);
	assert_string_equal(comm_of(&data.records.items[data.records.count - 1]), "comm");
	perf_data_close(&data);
	perf_build_free(&build);
}

/* One zstd stream in three records, cut where no record ends. */
static void add_compressed(struct perf_build *build, const struct perf_build *inner)
{
	uint8_t packed[4096], last[4096];
	size_t size = ZSTD_compress(packed, sizeof(packed), inner->bytes, inner->size, 1), left;
	uint64_t data_size;

	assert_false(ZSTD_isError(size));
	perf_build_record(build, PERF_COMPRESSED, 0, packed, 9);
	perf_build_record(build, PERF_COMPRESSED, 0, packed + 9, 7);
	left = size - 16;
	data_size = left;
	memcpy(last, &data_size, 8);
	memcpy(last + 8, packed + 16, left);
	memset(last + 8 + left, 0, 8);
	perf_build_record(build, PERF_COMPRESSED2, 0, last, 8 + ((left + 7) & ~(size_t)7));
}

static void compressed_records_are_one_stream(void **state)
{
	struct perf_build build = { 0 }, inner = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	for (unsigned i = 0; i < 100; i++)
		add_comm(&inner, 20 + i, "comm\0\0\0");
	add_compressed(&build, &inner);
	open_ok(perf_build_file(&build), &data);
	assert_null(data.bad_reason);
	assert_int_equal(data.records.count, 101);
	assert_int_equal(data.records.items[100].time, 119);
	perf_data_close(&data);
	perf_build_free(&build);
	perf_build_free(&inner);
}

static void damaged_compression_leaves_the_rest(void **state)
{
	const uint8_t trace[64] = { 1 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_record(&build, PERF_COMPRESSED, 0, trace, 64);
	perf_build_aux(&build, 0, 0, trace, 64);
	open_ok(perf_build_file(&build), &data);
	assert_non_null(data.bad_reason);
	assert_int_equal(data.queues.items[0].size, 64);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void samples_carry_trace(void **state)
{
	const uint64_t type = BUILD_SAMPLE_TYPE | PERF_SAMPLE_AUX;
	const uint64_t body[] = { 2, 0x1234, 5 | (uint64_t)6 << 32, 1000, 4, 8, 0x99 };
	struct perf_build build = { 0 };
	struct perf_data data;

	perf_build_pt(&build, 0, 1);
	perf_build_event(&build, 0, 0, type, 2, 128);
	perf_build_record(&build, PERF_SAMPLE, 2, body, sizeof(body));
	open_ok(perf_build_file(&build), &data);
	assert_int_equal(data.queues.count, 1);
	assert_int_equal(data.queues.items[0].cpu, 4);
	assert_int_equal(data.queues.items[0].size, 8);
	assert_int_equal(data.queues.items[0].spans[0].data[0], 0x99);
	perf_data_close(&data);
	perf_build_free(&build);
}

/* A sample of the event with id 2, on CPU 4. */
static void add_sample(struct perf_build *build, uint64_t time, const uint8_t *trace, size_t size)
{
	const uint64_t words[] = { 2, 0x1234, 5 | (uint64_t)6 << 32, time, 4, size };
	uint8_t body[sizeof(words) + 144];

	memcpy(body, words, sizeof(words));
	memcpy(body + sizeof(words), trace, size);
	perf_build_record(build, PERF_SAMPLE, 2, body, sizeof(words) + size);
}

static void samples_go_to_the_queue_of_their_id(void **state)
{
	const uint64_t ids[] = { 1, 2, 7, 4, 6 };
	struct perf_build build = { 0 };
	const struct aux_queue *queue;
	struct perf_data data;
	uint8_t trace[144];

	make_trace(trace);
	perf_build_pt(&build, 0, 1);
	perf_build_event(&build, 1, 0, BUILD_SAMPLE_TYPE | PERF_SAMPLE_AUX, 2, 128);
	perf_build_record(&build, PERF_ID_INDEX, 0, ids, sizeof(ids));
	add_sample(&build, 1000, trace, 104);
	add_sample(&build, 2000, trace + 40, 104);
	perf_build_aux_event(&build, 4, 2500, 20, 8, 2 | 4);
	add_sample(&build, 3000, trace + 88, 56);
	open_ok(perf_build_file(&build), &data);
	assert_int_equal(data.queues.count, 1);
	queue = &data.queues.items[0];
	assert_int_equal(queue->index, 7);
	assert_int_equal(queue->cpu, 4);
	assert_int_equal(queue->count, 3);
	assert_int_equal(queue->spans[0].size, 104);
	assert_int_equal(queue->spans[0].stop_ns, 1000);
	assert_int_equal(queue->spans[1].size, 40);
	assert_false(queue->spans[1].lost_before);
	assert_memory_equal(queue->spans[1].data, trace + 104, 40);
	assert_memory_equal(data.file.data + queue->spans[1].file_offset, trace + 104, 40);
	assert_int_equal(queue->repeat_count, 1);
	assert_int_equal(queue->spans[2].size, 56);
	assert_true(queue->spans[2].lost_before);
	assert_int_equal(queue->losses[0].position, queue->size);
	perf_data_close(&data);
	perf_build_free(&build);
}

static void a_sample_longer_than_its_record_has_no_trace(void **state)
{
	const uint64_t sizes[] = { 16, UINT16_MAX, UINT64_MAX - 7, UINT64_MAX };
	uint64_t body[] = { 2, 0x1234, 5 | (uint64_t)6 << 32, 1000, 4, 0, 0x99 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_build build = { 0 };
		struct perf_data data;

		body[5] = sizes[i];
		perf_build_pt(&build, 0, 1);
		perf_build_event(&build, 1, 0, BUILD_SAMPLE_TYPE | PERF_SAMPLE_AUX, 2, 128);
		perf_build_record(&build, PERF_SAMPLE, 2, body, sizeof(body));
		open_ok(perf_build_file(&build), &data);
		assert_int_equal(data.bad_records, 1);
		assert_true(!data.queues.count || data.queues.items[0].size <= 8);
		perf_data_close(&data);
		perf_build_free(&build);
	}
}

static void a_directory_means_the_data_in_it(void **state)
{
	char directory[] = "/tmp/ptvm-test-XXXXXX", path[64], slash[64];
	struct perf_build build = { 0 };
	struct ptvm_error error = { 0 };
	struct perf_data data;
	struct bytes file;
	FILE *out;

	perf_build_pt(&build, 0, 1);
	file = perf_build_file(&build);
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/data", directory);
	(void)snprintf(slash, sizeof(slash), "%s/", directory);
	out = fopen(path, "wb");
	assert_int_equal(fwrite(file.data, 1, file.size, out), file.size);
	(void)fclose(out);
	assert_int_equal(perf_data_open(slash, &data, &error), 0);
	assert_string_equal(data.directory, directory);
	assert_string_equal(data.file_path, path);
	perf_data_close(&data);
	(void)remove(path);
	(void)remove(directory);
	perf_build_free(&build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_recording_is_refused),
		cmocka_unit_test(records_come_in_order_of_time_and_without_time_first),
		cmocka_unit_test(trailers_tell_thread_cpu_and_id),
		cmocka_unit_test(pt_config_comes_from_info_and_attr),
		cmocka_unit_test(short_info_of_old_perf_is_enough),
		cmocka_unit_test(one_event_without_time_makes_all_timeless),
		cmocka_unit_test(attrs_of_any_size_are_read),
		cmocka_unit_test(id_index_names_machines_when_it_is_long_enough),
		cmocka_unit_test(the_vcpu_of_a_thread_is_found_among_many),
		cmocka_unit_test(a_machine_that_no_process_runs_is_damage),
		cmocka_unit_test(buffers_of_a_queue_are_one_stream_without_padding),
		cmocka_unit_test(lost_data_splits_the_stream),
		cmocka_unit_test(the_overlap_of_snapshots_is_cut_off),
		cmocka_unit_test(a_cut_file_gives_what_is_there),
		cmocka_unit_test(after_damage_reading_goes_on_at_the_next_trace),
		cmocka_unit_test(a_trace_of_damaged_size_ends_at_the_next),
		cmocka_unit_test(an_index_into_a_header_is_harmless),
		cmocka_unit_test(after_damage_reading_goes_on_at_the_next_records),
		cmocka_unit_test(more_queues_than_there_can_be_are_left_out),
		cmocka_unit_test(unknown_records_are_stepped_over),
		cmocka_unit_test(a_pipe_tells_the_same_as_a_file),
		cmocka_unit_test(a_pipe_has_its_features_among_its_records),
		cmocka_unit_test(compressed_records_are_one_stream),
		cmocka_unit_test(damaged_compression_leaves_the_rest),
		cmocka_unit_test(samples_carry_trace),
		cmocka_unit_test(samples_go_to_the_queue_of_their_id),
		cmocka_unit_test(a_sample_longer_than_its_record_has_no_trace),
		cmocka_unit_test(a_directory_means_the_data_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
