#include "decode/print/perf_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/perf/perf_record.h"
#include "tests/printed.h"
#include "tests/record_make.h"

/* What is printed of a record with this body. */
static void assert_text(uint16_t type, uint16_t misc, const void *body, size_t size,
			const char *expected)
{
	struct perf_record record = record_make(type, misc, body, size);
	struct printed printed = { 0 };

	perf_text_print(&record, NULL, NULL, printed_begin(&printed));
	assert_string_equal(printed_end(&printed), expected);
	printed_drop(&printed);
	record_drop(&record);
}

static void a_type_without_a_name_is_invalid(void **state)
{
	assert_string_equal(perf_text_name(PERF_MMAP), "MMAP");
	assert_string_equal(perf_text_name(PERF_AUX_OUTPUT_HW_ID), "AUX_OUTPUT_HW_ID");
	assert_string_equal(perf_text_name(PERF_HEADER_ATTR), "ATTR");
	assert_string_equal(perf_text_name(PERF_COMPRESSED2), "COMPRESSED2");
	assert_string_equal(perf_text_name(0), "INVALID");
	assert_string_equal(perf_text_name(PERF_AUX_OUTPUT_HW_ID + 1), "INVALID");
	assert_string_equal(perf_text_name(PERF_HEADER_ATTR - 1), "INVALID");
	assert_string_equal(perf_text_name(PERF_COMPRESSED2 + 1), "INVALID");
	assert_string_equal(perf_text_name(UINT32_MAX), "INVALID");
}

static void some_records_leave_their_line_open(void **state)
{
	for (uint16_t type = 0; type < 256; type++) {
		const bool is_open = type == PERF_HEADER_ATTR || type == PERF_HEADER_FEATURE ||
				     type == PERF_THROTTLE || type == PERF_UNTHROTTLE;
		struct perf_record record = record_make(type, 0, NULL, 0);
		struct printed printed = { 0 };
		const char *text;

		perf_text_print(&record, NULL, NULL, printed_begin(&printed));
		text = printed_end(&printed);
		assert_int_equal(*text && text[strlen(text) - 1] == '\n', !is_open);
		printed_drop(&printed);
		record_drop(&record);
	}
}

/* In the list, no type has fields that are not bounded by the record. */
static void records_cut_anywhere_are_printed(void **state)
{
	uint8_t body[200];
	struct printed printed = { 0 };

	for (unsigned fill = 0; fill < 256; fill += 255)
		for (uint16_t type = 0; type <= PERF_COMPRESSED2; type++)
			for (size_t size = 0; size < sizeof(body); size += 4) {
				struct perf_record record;

				memset(body, (int)fill, sizeof(body));
				record = record_make(type, UINT16_MAX, body, size);
				perf_text_print(&record, NULL, NULL, printed_begin(&printed));
				assert_true(strlen(printed_end(&printed)) < 4096);
				record_drop(&record);
			}
	printed_drop(&printed);
}

static const struct {
	int32_t pid, tid;
	uint64_t start, size, page_offset;
	char name[16];
} mapped = { -1, 0, 0x400000, 0x1000, 0x2000, "/bin/a\033[m" };

static void a_map_tells_range_offset_and_whether_it_is_code(void **state)
{
	assert_text(PERF_MMAP, 0, &mapped, sizeof(mapped),
		    " -1/0: [0x400000(0x1000) @ 0x2000]: x /bin/a?[m\n");
	assert_text(PERF_MMAP, PERF_MISC_MMAP_DATA, &mapped, sizeof(mapped),
		    " -1/0: [0x400000(0x1000) @ 0x2000]: r /bin/a?[m\n");
	assert_text(PERF_MMAP, 0, &mapped, 32, "\n");
}

static void a_new_map_tells_its_file_and_protection(void **state)
{
	struct {
		int32_t pid, tid;
		uint64_t start, size, page_offset;
		union {
			struct {
				uint32_t major, minor;
				uint64_t inode, generation;
			} file;
			uint8_t id[24];
		} of;
		uint32_t protection, flags;
		char name[8];
	} map = { 5, 6, 0x400000, 0x1000, 0, { { 8, 17, 1234, 9 } }, 5, 2, "/lib" };

	assert_text(PERF_MMAP2, 0, &map, sizeof(map),
		    " 5/6: [0x400000(0x1000) @ 0 08:11 1234 9]: r-xp /lib\n");
	map.protection = 2;
	map.flags = 1;
	map.of.id[0] = 2;
	map.of.id[4] = 0xab;
	map.of.id[5] = 0x0c;
	assert_text(PERF_MMAP2, PERF_MISC_MMAP_BUILD_ID, &map, sizeof(map),
		    " 5/6: [0x400000(0x1000) @ 0 <ab0c>]: -w-s /lib\n");
}

static void names_and_forks_tell_threads(void **state)
{
	const struct {
		int32_t pid, tid;
		char name[8];
	} comm = { 7, 8, "a\nb" };
	const struct {
		int32_t pid, parent_pid, tid, parent_tid;
		uint64_t time;
	} task = { 1, 2, 3, 4, 5 };

	assert_text(PERF_COMM, 0, &comm, sizeof(comm), ": a?b:7/8\n");
	assert_text(PERF_COMM, PERF_MISC_EXEC, &comm, sizeof(comm), " exec: a?b:7/8\n");
	assert_text(PERF_COMM, 0, &comm, 8, "\n");
	assert_text(PERF_FORK, 0, &task, sizeof(task), "(1:3):(2:4)\n");
	assert_text(PERF_EXIT, 0, &task, sizeof(task), "(1:3):(2:4)\n");
	assert_text(PERF_EXIT, 0, &task, 23, "\n");
}

static void switches_tell_the_way_and_who_else(void **state)
{
	const int32_t other[] = { -1, 123456 };

	assert_text(PERF_SWITCH, 0, NULL, 0, " IN         \n");
	assert_text(PERF_SWITCH, PERF_MISC_SWITCH_OUT, NULL, 0, " OUT        \n");
	assert_text(PERF_SWITCH, PERF_MISC_SWITCH_OUT | PERF_MISC_SWITCH_PREEMPT, NULL, 0,
		    " OUT preempt\n");
	assert_text(PERF_SWITCH_CPU_WIDE, 0, other, sizeof(other),
		    " IN           prev pid/tid:    -1/123456\n");
	assert_text(PERF_SWITCH_CPU_WIDE, PERF_MISC_SWITCH_OUT, other, sizeof(other),
		    " OUT          next pid/tid:    -1/123456\n");
}

static void flags_of_aux_are_letters(void **state)
{
	uint64_t aux[] = { 0x10, 0x20, 0 };

	assert_text(PERF_AUX, 0, aux, sizeof(aux), " offset: 0x10 size: 0x20 flags: 0 []\n");
	aux[2] = PERF_AUX_TRUNCATED | PERF_AUX_OVERWRITE | PERF_AUX_PARTIAL;
	assert_text(PERF_AUX, 0, aux, sizeof(aux), " offset: 0x10 size: 0x20 flags: 0x7 [TOP]\n");
	aux[2] = PERF_AUX_OVERWRITE | PERF_AUX_COLLISION;
	assert_text(PERF_AUX, 0, aux, sizeof(aux), " offset: 0x10 size: 0x20 flags: 0xa [O]\n");
}

static void counts_of_what_is_lost_have_the_id(void **state)
{
	const uint64_t lost[] = { 3, 20 };
	struct perf_record record = record_make(PERF_LOST_SAMPLES, 0, lost, 8);
	struct printed printed = { 0 };

	assert_text(PERF_LOST, 0, lost, sizeof(lost), ": id:3: lost:20\n");
	record.id = 77; /* of the trailer */
	perf_text_print(&record, NULL, NULL, printed_begin(&printed));
	assert_string_equal(printed_end(&printed), ": id:77: lost samples :3\n");
	printed_drop(&printed);
	record_drop(&record);
}

static void symbols_and_programs_that_come_are_told(void **state)
{
	const struct {
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
		char name[8];
	} symbol = { 0xffffffffc0000000, 128, 1, 1, "p\033r" };
	const struct {
		uint16_t type, flags;
		uint32_t id;
		uint8_t tag[8];
	} program = { 1, 2, 3, { 0 } };
	const uint64_t hw_id = 0x12;
	const int32_t thread[] = { 3, -1 };

	assert_text(PERF_KSYMBOL, 0, &symbol, sizeof(symbol),
		    " addr ffffffffc0000000 len 128 type 1 flags 0x1 name p?r\n");
	assert_text(PERF_KSYMBOL, 0, &symbol, 16, "\n");
	assert_text(PERF_BPF_EVENT, 0, &program, sizeof(program), " type 1, flags 2, id 3\n");
	assert_text(PERF_AUX_OUTPUT_HW_ID, 0, &hw_id, sizeof(hw_id), " hw_id: 0x12\n");
	assert_text(PERF_ITRACE_START, 0, thread, sizeof(thread), " pid: 3 tid: 4294967295\n");
}

static void sixteen_bytes_of_a_poke_are_a_line(void **state)
{
	uint8_t poke[12 + 17 + 1] = { 0x10, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff, 17, 0, 1, 0 };

	for (uint8_t i = 0; i < 18; i++)
		poke[12 + i] = i;
	assert_text(PERF_TEXT_POKE, 0, poke, sizeof(poke),
		    " ffffffff81000010  old len 17 new len 1\n"
		    "            Old bytes: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n"
		    "            Old bytes: 10\n"
		    "            New bytes: 11\n");
	assert_text(PERF_TEXT_POKE, 0, poke, sizeof(poke) - 1, "\n");
}

static void four_namespaces_are_a_line(void **state)
{
	struct {
		int32_t pid, tid;
		uint64_t count;
		struct {
			uint64_t device, inode;
		} links[8];
	} record = { 3, 4, 8, { { 0 } } };

	for (uint64_t i = 0; i < 8; i++) {
		record.links[i].device = 4;
		record.links[i].inode = 0xf0 + i;
	}
	assert_text(PERF_NAMESPACES, 0, &record, sizeof(record),
		    " 3/4 - nr_namespaces: 8\n\t\t[0/net: 4/0xf0, 1/uts: 4/0xf1, 2/ipc: 4/0xf2, "
		    "3/pid: 4/0xf3, \n\t\t 4/user: 4/0xf4, 5/mnt: 4/0xf5, 6/cgroup: 4/0xf6, "
		    "7/UNKNOWN: 4/0xf7]\n");
	record.count = 1; /* a trailer follows */
	assert_text(PERF_NAMESPACES, 0, &record, sizeof(record),
		    " 3/4 - nr_namespaces: 1\n\t\t[0/net: 4/0xf0]\n");
	record.count = 8;
	assert_text(PERF_NAMESPACES, 0, &record, 16 + 16 + 15,
		    " 3/4 - nr_namespaces: 8\n\t\t[0/net: 4/0xf0, \n");
}

static void a_cgroup_need_not_end_with_a_nul(void **state)
{
	const struct {
		uint64_t id;
		char path[4];
	} cgroup = { 12, { '/', 'a', '\t', 'b' } };

	assert_text(PERF_CGROUP, 0, &cgroup, 12, " cgroup: 12 /a?b\n");
	assert_text(PERF_CGROUP, 0, &cgroup, 9, " cgroup: 12 /\n");
	assert_text(PERF_CGROUP, 0, &cgroup, 8, " cgroup: 12 \n");
}

static void records_that_perf_made_are_told_too(void **state)
{
	static const uint16_t types[] = { PERF_ID_INDEX,       PERF_AUXTRACE_INFO, PERF_AUXTRACE,
					  PERF_AUXTRACE_ERROR, PERF_THREAD_MAP,    PERF_CPU_MAP,
					  PERF_EVENT_UPDATE,   PERF_TIME_CONV };
	static const uint64_t body[20];
	struct printed printed = { 0 };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		struct perf_record record = record_make(types[i], 0, body, sizeof(body));

		perf_text_print(&record, NULL, NULL, printed_begin(&printed));
		assert_string_not_equal(printed_end(&printed), "\n");
		record_drop(&record);
	}
	printed_drop(&printed);
}

static void a_sample_is_told_by_its_event(void **state)
{
	const struct perf_event event = { .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
					  .sample_period = 4000 },
				with_period = { .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD,
						.sample_period = 4000 },
				longer = { .sample_type = PERF_SAMPLE_CALLCHAIN };
	const uint64_t body[] = { 0x401000, 7 | 8ull << 32 };
	struct perf_record record = record_make(PERF_SAMPLE, 2, body, sizeof(body));
	struct printed printed = { 0 };

	perf_text_print(&record, &event, NULL, printed_begin(&printed));
	assert_string_equal(printed_end(&printed),
			    "(IP, 0x2): 7/8: 0x401000 period: 4000 addr: 0\n");
	perf_text_print(&record, &with_period, NULL, printed_begin(&printed));
	assert_non_null(strstr(printed_end(&printed), "period: 34359738375 "));
	perf_text_print(&record, &longer, NULL, printed_begin(&printed));
	assert_string_equal(printed_end(&printed), "\n");
	printed_drop(&printed);
	record_drop(&record);
	assert_text(PERF_SAMPLE, 2, body, sizeof(body), "\n"); /* of no event */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_type_without_a_name_is_invalid),
		cmocka_unit_test(some_records_leave_their_line_open),
		cmocka_unit_test(records_cut_anywhere_are_printed),
		cmocka_unit_test(a_map_tells_range_offset_and_whether_it_is_code),
		cmocka_unit_test(a_new_map_tells_its_file_and_protection),
		cmocka_unit_test(names_and_forks_tell_threads),
		cmocka_unit_test(switches_tell_the_way_and_who_else),
		cmocka_unit_test(flags_of_aux_are_letters),
		cmocka_unit_test(counts_of_what_is_lost_have_the_id),
		cmocka_unit_test(symbols_and_programs_that_come_are_told),
		cmocka_unit_test(sixteen_bytes_of_a_poke_are_a_line),
		cmocka_unit_test(four_namespaces_are_a_line),
		cmocka_unit_test(a_cgroup_need_not_end_with_a_nul),
		cmocka_unit_test(records_that_perf_made_are_told_too),
		cmocka_unit_test(a_sample_is_told_by_its_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
