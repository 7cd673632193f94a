#include "decode/perf/perf_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "decode/base/error.h"
#include "tests/record_make.h"

/* The body of an MMAP2, as the kernel lays it out. */
struct mmap2 {
	int32_t pid, tid;
	uint64_t start, size, page_offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, generation;
		} file;
		struct {
			uint8_t size, zero[3], bytes[20];
		} id;
	} of;
	uint32_t protection, flags;
	char name[16];
};

static void an_mmap_has_a_range_and_a_name(void **state)
{
	const struct {
		int32_t pid, tid;
		uint64_t start, size, page_offset;
		char name[8];
	} body = { 7, 8, 0xffffffff81000000, 0x2000, 0x3000, "[x]_t" };
	struct perf_record record = record_make(PERF_MMAP, 0, &body, sizeof(body));
	struct perf_mmap map;

	assert_int_equal(perf_mmap_read(&record, &map), 0);
	assert_int_equal(map.pid, 7);
	assert_int_equal(map.tid, 8);
	assert_int_equal(map.start, body.start);
	assert_int_equal(map.size, 0x2000);
	assert_int_equal(map.page_offset, 0x3000);
	assert_string_equal(map.filename, "[x]_t");
	assert_int_equal(map.protection, PROT_EXEC);
	assert_int_equal(map.flags | map.build_id.size, 0);
	record.misc = PERF_MISC_MMAP_DATA;
	assert_int_equal(perf_mmap_read(&record, &map), 0);
	assert_int_equal(map.protection, PROT_NONE);
	record_drop(&record);
}

static const struct mmap2 of_file = { .pid = -1,
				      .tid = 2,
				      .start = 0x400000,
				      .size = 0x1000,
				      .page_offset = 0x5000,
				      .of.file = { 8, 9, 10, 11 },
				      .protection = 5,
				      .flags = 2,
				      .name = "/bin/true" };

static void an_mmap2_has_the_device_and_inode_of_its_file(void **state)
{
	struct perf_record record = record_make(PERF_MMAP2, 0, &of_file, sizeof(of_file));
	struct perf_mmap map;

	assert_int_equal(perf_mmap_read(&record, &map), 0);
	assert_int_equal(map.pid, -1);
	assert_int_equal(map.page_offset, 0x5000);
	assert_int_equal(map.major, 8);
	assert_int_equal(map.minor, 9);
	assert_int_equal(map.inode, 10);
	assert_int_equal(map.generation, 11);
	assert_int_equal(map.protection, 5);
	assert_int_equal(map.flags, 2);
	assert_int_equal(map.build_id.size, 0);
	assert_string_equal(map.filename, "/bin/true");
	record_drop(&record);
}

static void a_build_id_is_in_the_place_of_the_inode(void **state)
{
	struct mmap2 body = of_file;
	struct perf_record record;
	struct perf_mmap map;

	for (uint8_t i = 0; i < sizeof(body.of.id.bytes); i++)
		body.of.id.bytes[i] = i + 1;
	body.of.id.size = 16;
	record = record_make(PERF_MMAP2, PERF_MISC_MMAP_BUILD_ID, &body, sizeof(body));
	assert_int_equal(perf_mmap_read(&record, &map), 0);
	assert_int_equal(map.build_id.size, 16);
	assert_memory_equal(map.build_id.bytes, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\0", 17);
	assert_int_equal(map.inode | map.generation | map.major | map.minor, 0);
	assert_int_equal(map.protection, 5);
	record_drop(&record);
}

static void a_build_id_has_no_more_bytes_than_its_field(void **state)
{
	struct mmap2 body = of_file;
	struct perf_record record;
	struct perf_mmap map;

	body.of.id.size = 255;
	memset(body.of.id.bytes, 0xaa, sizeof(body.of.id.bytes));
	record = record_make(PERF_MMAP2, PERF_MISC_MMAP_BUILD_ID, &body, sizeof(body));
	assert_int_equal(perf_mmap_read(&record, &map), 0);
	assert_int_equal(map.build_id.size, BUILD_ID_BYTES);
	assert_int_equal(map.build_id.bytes[19], 0xaa);
	record_drop(&record);
}

static void a_comm_says_whether_it_is_because_of_exec(void **state)
{
	const struct {
		int32_t pid, tid;
		char name[8];
	} body = { 5, 6, "qemu" };
	struct perf_record named = record_make(PERF_COMM, 0, &body, sizeof(body));
	struct perf_record exec = record_make(PERF_COMM, 1 << 13, &body, sizeof(body));
	struct perf_comm comm;

	assert_int_equal(perf_comm_read(&named, &comm), 0);
	assert_int_equal(comm.pid, 5);
	assert_int_equal(comm.tid, 6);
	assert_string_equal(comm.name, "qemu");
	assert_false(comm.is_exec);
	assert_int_equal(perf_comm_read(&exec, &comm), 0);
	assert_true(comm.is_exec);
	record_drop(&named);
	record_drop(&exec);
}

static void a_fork_has_the_parent_between_pid_and_tid(void **state)
{
	const struct {
		int32_t pid, parent_pid, tid, parent_tid;
		uint64_t time;
	} body = { 1, 2, 3, 4, 1ull << 40 };
	struct perf_record record = record_make(PERF_FORK, 0, &body, sizeof(body));
	struct perf_task task;

	assert_int_equal(perf_task_read(&record, &task), 0);
	assert_int_equal(task.pid, 1);
	assert_int_equal(task.parent_pid, 2);
	assert_int_equal(task.tid, 3);
	assert_int_equal(task.parent_tid, 4);
	assert_int_equal(task.time, 1ull << 40);
	record_drop(&record);
}

static void a_switch_of_all_threads_names_the_other_one(void **state)
{
	const int32_t body[2] = { 11, 12 };
	struct perf_record in = record_make(PERF_SWITCH_CPU_WIDE, 0, body, sizeof(body));
	struct perf_record out = record_make(PERF_SWITCH_CPU_WIDE, 3 << 13, body, sizeof(body));
	struct perf_switch change;

	assert_int_equal(perf_switch_read(&in, &change), 0);
	assert_false(change.is_out || change.is_preempt);
	assert_int_equal(change.other_pid, 11);
	assert_int_equal(change.other_tid, 12);
	assert_int_equal(perf_switch_read(&out, &change), 0);
	assert_true(change.is_out && change.is_preempt);
	record_drop(&in);
	record_drop(&out);
}

/* What follows its header is the trailer. */
static void a_switch_of_own_threads_names_no_other_one(void **state)
{
	const int32_t trailer[2] = { 11, 12 };
	struct perf_record bare = record_make(PERF_SWITCH, 1 << 13, NULL, 0);
	struct perf_record trailed = record_make(PERF_SWITCH, 0, trailer, sizeof(trailer));
	struct perf_switch change;

	assert_int_equal(perf_switch_read(&bare, &change), 0);
	assert_true(change.is_out);
	assert_false(change.is_preempt);
	assert_int_equal(perf_switch_read(&trailed, &change), 0);
	assert_false(change.is_out);
	assert_int_equal(change.other_pid, -1);
	assert_int_equal(change.other_tid, -1);
	record_drop(&bare);
	record_drop(&trailed);
}

static void counts_and_offsets_are_read_whole(void **state)
{
	const uint64_t body[3] = { 0x1111111122222222, 0x3333333344444444, 0xf };
	struct perf_record record = record_make(PERF_AUX, 0, body, sizeof(body));
	struct perf_lost lost;
	struct perf_aux aux;
	int32_t pid, tid;
	uint64_t count;

	assert_int_equal(perf_aux_read(&record, &aux), 0);
	assert_int_equal(aux.offset, body[0]);
	assert_int_equal(aux.size, body[1]);
	assert_int_equal(aux.flags, 0xf);
	assert_int_equal(perf_lost_read(&record, &lost), 0);
	assert_int_equal(lost.id, body[0]);
	assert_int_equal(lost.count, body[1]);
	assert_int_equal(perf_lost_samples_read(&record, &count), 0);
	assert_int_equal(count, body[0]);
	assert_int_equal(perf_thread_read(&record, &pid, &tid), 0);
	assert_int_equal(pid, 0x22222222);
	assert_int_equal(tid, 0x11111111);
	record_drop(&record);
}

static void a_ksymbol_has_a_range_and_says_whether_it_goes(void **state)
{
	const struct {
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
		char name[16];
	} body = { 0xffffffffc0000000, 0x80, 1, 1, "bpf_prog_1_x" };
	struct perf_record record = record_make(PERF_KSYMBOL, 0, &body, sizeof(body));
	struct perf_ksymbol symbol;

	assert_int_equal(perf_ksymbol_read(&record, &symbol), 0);
	assert_int_equal(symbol.address, body.address);
	assert_int_equal(symbol.size, 0x80);
	assert_int_equal(symbol.type, 1);
	assert_int_equal(symbol.flags, 1);
	assert_string_equal(symbol.name, "bpf_prog_1_x");
	record_drop(&record);
}

static void a_bpf_event_names_its_program(void **state)
{
	const struct {
		uint16_t type, flags;
		uint32_t id;
		char tag[8];
	} body = { 2, 3, 77, "12345678" };
	struct perf_record record = record_make(PERF_BPF_EVENT, 0, &body, sizeof(body));
	struct perf_bpf_event event;

	assert_int_equal(perf_bpf_event_read(&record, &event), 0);
	assert_int_equal(event.type, 2);
	assert_int_equal(event.flags, 3);
	assert_int_equal(event.id, 77);
	assert_memory_equal(event.tag, "12345678", 8);
	record_drop(&record);
}

/* A TEXT_POKE's body with bytes from 0 on; returns its size. */
static size_t make_poke(uint8_t *body, uint16_t old_size, uint16_t new_size)
{
	const uint64_t address = 0xffffffff81000010;

	memcpy(body, &address, 8);
	memcpy(body + 8, &old_size, 2);
	memcpy(body + 10, &new_size, 2);
	for (unsigned i = 0; i < (unsigned)old_size + new_size; i++)
		body[12 + i] = (uint8_t)i;
	return 12u + old_size + new_size;
}

static void a_poke_has_what_was_there_and_what_is(void **state)
{
	uint8_t body[32];
	struct perf_record record = record_make(PERF_TEXT_POKE, 0, body, make_poke(body, 5, 3));
	struct perf_text_poke poke;

	assert_int_equal(perf_text_poke_read(&record, &poke), 0);
	assert_int_equal(poke.address, 0xffffffff81000010);
	assert_int_equal(poke.old_size, 5);
	assert_int_equal(poke.new_size, 3);
	assert_memory_equal(poke.old_bytes, "\0\1\2\3\4", 5);
	assert_memory_equal(poke.new_bytes, "\5\6\7", 3);
	record_drop(&record);
}

static void the_bytes_of_a_poke_lie_in_it(void **state)
{
	static const uint16_t sizes[][2] = { { 5, 5 }, { 0, 5 }, { 5, 0 }, { 0, 0 }, { 900, 900 } };
	uint8_t body[2048];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t size = make_poke(body, sizes[i][0], sizes[i][1]);
		struct perf_record whole = record_make(PERF_TEXT_POKE, 0, body, size);
		struct perf_record cut = record_make(PERF_TEXT_POKE, 0, body, size - 1);
		struct perf_text_poke poke;

		assert_int_equal(perf_text_poke_read(&whole, &poke), 0);
		assert_ptr_equal(poke.new_bytes + poke.new_size, whole.data + whole.size);
		assert_int_equal(perf_text_poke_read(&cut, &poke), -PTVM_BAD_INPUT);
		record_drop(&whole);
		record_drop(&cut);
	}
}

/* The largest sizes must not wrap to small ones. */
static void a_poke_cannot_claim_more_than_a_record_holds(void **state)
{
	uint8_t body[64] = { [8] = 0xff, 0xff, 0xff, 0xff };
	struct perf_record record = record_make(PERF_TEXT_POKE, 0, body, sizeof(body));
	struct perf_text_poke poke;

	assert_int_equal(perf_text_poke_read(&record, &poke), -PTVM_BAD_INPUT);
	record_drop(&record);
}

static int read_mmap(const struct perf_record *record)
{
	struct perf_mmap map;

	return perf_mmap_read(record, &map);
}

static int read_comm(const struct perf_record *record)
{
	struct perf_comm comm;

	return perf_comm_read(record, &comm);
}

static int read_task(const struct perf_record *record)
{
	struct perf_task task;

	return perf_task_read(record, &task);
}

static int read_switch(const struct perf_record *record)
{
	struct perf_switch change;

	return perf_switch_read(record, &change);
}

static int read_thread(const struct perf_record *record)
{
	int32_t pid, tid;

	return perf_thread_read(record, &pid, &tid);
}

static int read_aux(const struct perf_record *record)
{
	struct perf_aux aux;

	return perf_aux_read(record, &aux);
}

static int read_lost(const struct perf_record *record)
{
	struct perf_lost lost;

	return perf_lost_read(record, &lost);
}

static int read_lost_samples(const struct perf_record *record)
{
	uint64_t count;

	return perf_lost_samples_read(record, &count);
}

static int read_ksymbol(const struct perf_record *record)
{
	struct perf_ksymbol symbol;

	return perf_ksymbol_read(record, &symbol);
}

static int read_bpf_event(const struct perf_record *record)
{
	struct perf_bpf_event event;

	return perf_bpf_event_read(record, &event);
}

/* `size`: of a body with all fields; then comes the text, where the type has one. */
static const struct reader {
	uint16_t type;
	size_t size;
	bool has_text;
	int (*read)(const struct perf_record *record);
} readers[] = {
	{ PERF_MMAP, 32, true, read_mmap },
	{ PERF_MMAP2, 64, true, read_mmap },
	{ PERF_COMM, 8, true, read_comm },
	{ PERF_FORK, 24, false, read_task },
	{ PERF_EXIT, 24, false, read_task },
	{ PERF_NAMESPACES, 8, false, read_thread },
	{ PERF_SWITCH_CPU_WIDE, 8, false, read_switch },
	{ PERF_ITRACE_START, 8, false, read_thread },
	{ PERF_AUX, 24, false, read_aux },
	{ PERF_LOST, 16, false, read_lost },
	{ PERF_LOST_SAMPLES, 8, false, read_lost_samples },
	{ PERF_KSYMBOL, 16, true, read_ksymbol },
	{ PERF_BPF_EVENT, 16, false, read_bpf_event },
};

static void every_shorter_record_is_refused(void **state)
{
	static const uint8_t zeroes[128];

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		const size_t least = readers[i].size + readers[i].has_text;

		for (size_t size = 0; size <= least; size++) {
			struct perf_record record = record_make(readers[i].type, 0, zeroes, size);

			assert_int_equal(readers[i].read(&record),
					 size < least ? -PTVM_BAD_INPUT : 0);
			record_drop(&record);
		}
	}
}

static void a_text_that_does_not_end_in_its_record_is_refused(void **state)
{
	uint8_t body[128];

	memset(body, 'x', sizeof(body));
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		const size_t size = readers[i].size + 8;
		struct perf_record endless = record_make(readers[i].type, 0, body, size), ended;

		if (!readers[i].has_text) {
			record_drop(&endless);
			continue;
		}
		body[size - 1] = 0;
		ended = record_make(readers[i].type, 0, body, size);
		body[size - 1] = 'x';
		assert_int_equal(readers[i].read(&endless), -PTVM_BAD_INPUT);
		assert_int_equal(readers[i].read(&ended), 0);
		record_drop(&endless);
		record_drop(&ended);
	}
}

struct thread_map {
	uint64_t count;
	struct {
		uint64_t tid;
		char name[16];
	} entries[2];
};

static const struct thread_map two_threads = {
	2, { { 100, "short" }, { 200, { "sixteen letters!" } } }
};

static void threads_have_names_of_up_to_sixteen_letters(void **state)
{
	struct perf_record record =
		record_make(PERF_THREAD_MAP, 0, &two_threads, sizeof(two_threads));
	char name[17];
	int32_t tid;

	assert_int_equal(perf_thread_map_entry(&record, 0, &tid, name), 0);
	assert_int_equal(tid, 100);
	assert_string_equal(name, "short");
	assert_int_equal(perf_thread_map_entry(&record, 1, &tid, name), 0);
	assert_int_equal(tid, 200);
	assert_string_equal(name, "sixteen letters!");
	assert_int_equal(perf_thread_map_entry(&record, 2, &tid, name), -PTVM_END);
	assert_int_equal(perf_thread_map_entry(&record, UINT64_MAX, &tid, name), -PTVM_END);
	record_drop(&record);
}

static void threads_end_with_the_count_or_with_the_record(void **state)
{
	struct thread_map body = two_threads;
	struct perf_record record;
	char name[17];
	int32_t tid;

	body.count = 1;
	record = record_make(PERF_THREAD_MAP, 0, &body, sizeof(body));
	assert_int_equal(perf_thread_map_entry(&record, 1, &tid, name), -PTVM_END);
	record_drop(&record);
	body.count = UINT64_MAX;
	record = record_make(PERF_THREAD_MAP, 0, &body, sizeof(body) - 1);
	assert_int_equal(perf_thread_map_entry(&record, 0, &tid, name), 0);
	assert_int_equal(perf_thread_map_entry(&record, 1, &tid, name), -PTVM_END);
	record_drop(&record);
	record = record_make(PERF_THREAD_MAP, 0, &body, 7);
	assert_int_equal(perf_thread_map_entry(&record, 0, &tid, name), -PTVM_END);
	record_drop(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_mmap_has_a_range_and_a_name),
		cmocka_unit_test(an_mmap2_has_the_device_and_inode_of_its_file),
		cmocka_unit_test(a_build_id_is_in_the_place_of_the_inode),
		cmocka_unit_test(a_build_id_has_no_more_bytes_than_its_field),
		cmocka_unit_test(a_comm_says_whether_it_is_because_of_exec),
		cmocka_unit_test(a_fork_has_the_parent_between_pid_and_tid),
		cmocka_unit_test(a_switch_of_all_threads_names_the_other_one),
		cmocka_unit_test(a_switch_of_own_threads_names_no_other_one),
		cmocka_unit_test(counts_and_offsets_are_read_whole),
		cmocka_unit_test(a_ksymbol_has_a_range_and_says_whether_it_goes),
		cmocka_unit_test(a_bpf_event_names_its_program),
		cmocka_unit_test(a_poke_has_what_was_there_and_what_is),
		cmocka_unit_test(the_bytes_of_a_poke_lie_in_it),
		cmocka_unit_test(a_poke_cannot_claim_more_than_a_record_holds),
		cmocka_unit_test(every_shorter_record_is_refused),
		cmocka_unit_test(a_text_that_does_not_end_in_its_record_is_refused),
		cmocka_unit_test(threads_have_names_of_up_to_sixteen_letters),
		cmocka_unit_test(threads_end_with_the_count_or_with_the_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
