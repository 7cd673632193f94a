#include "decode/perf_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/perf_record.h"
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

/* Old perf wrote three words of it. */
static void a_clock_has_as_many_words_as_are_there(void **state)
{
	const uint64_t words[] = { 31, 1 << 30, 1000, 7, 0xff, 0x0101 };

	assert_text(PERF_TIME_CONV, 0, words, 24,
		    "\n... Time Shift      31\n... Time Muliplier  1073741824\n"
		    "... Time Zero       1000\n: unhandled!\n");
	assert_text(PERF_TIME_CONV, 0, words, 48,
		    "\n... Time Shift      31\n... Time Muliplier  1073741824\n"
		    "... Time Zero       1000\n... Time Cycles     7\n... Time Mask       0xff\n"
		    "... Cap Time Zero   1\n... Cap Time Short  1\n: unhandled!\n");
}

static void ids_have_machines_where_the_record_is_long_enough(void **state)
{
	const uint64_t ids[] = {
		2, 10, 0, UINT64_MAX, 5, 11, 1, 3, UINT64_MAX, 77, 0, 0, UINT64_MAX
	};
	uint64_t hostile[sizeof(ids) / sizeof(ids[0])];

	assert_text(PERF_ID_INDEX, 0, ids, sizeof(ids) - 32,
		    " nr: 2\n ... id: 10  idx: 0  cpu: -1  tid: 5\n"
		    " ... id: 11  idx: 1  cpu: 3  tid: -1\n");
	assert_text(PERF_ID_INDEX, 0, ids, sizeof(ids),
		    " nr: 2\n ... id: 10  idx: 0  cpu: -1  tid: 5  machine_pid: 77  vcpu: 0\n"
		    " ... id: 11  idx: 1  cpu: 3  tid: -1  machine_pid: 0  vcpu: -1\n");
	memcpy(hostile, ids, sizeof(ids));
	hostile[0] = UINT64_MAX / 48 + 1; /* as many words of 48 bytes are few */
	assert_text(PERF_ID_INDEX, 0, hostile, 40,
		    " nr: 384307168202282326\n ... id: 10  idx: 0  cpu: -1  tid: 5\n");
}

/* The words of AUXTRACE_INFO up to the length of the filter. */
#define INFO_TEXT                                                                                  \
	" type: 1\n  PMU Type            8\n  Time Shift          31\n  Time Muliplier      2\n"   \
	"  Time Zero           3\n  Cap Time Zero       1\n  TSC bit             0x400\n"          \
	"  NoRETComp bit       0x800\n  Have sched_switch   3\n  Snapshot mode       0\n"          \
	"  Per-cpu maps        1\n  MTC bit             0x200\n  MTC freq bits       0x3c000\n"    \
	"  TSC:CTC numerator   160\n  TSC:CTC denominator 2\n  CYC bit             0x2\n"          \
	"  Max non-turbo ratio 20\n"

static void how_trace_was_made_has_a_filter_at_its_end(void **state)
{
	uint64_t info[] = { 1, 8,     31,      2,   3, 1, 0x400, 0x800, 3, 0,
			    1, 0x200, 0x3c000, 160, 2, 2, 20,    0,     1, 0 };

	assert_text(PERF_AUXTRACE_INFO, 0, info, 17 * 8, INFO_TEXT);
	assert_text(PERF_AUXTRACE_INFO, 0, info, 19 * 8,
		    INFO_TEXT "  Filter string len.  0\n  Filter string       \n"
			      "  Cap Event Trace     1\n");
	info[17] = 7;
	memcpy(&info[18], "start\033x", 8);
	assert_text(PERF_AUXTRACE_INFO, 0, info, 20 * 8,
		    INFO_TEXT "  Filter string len.  7\n  Filter string       start?x\n"
			      "  Cap Event Trace     0\n");
	assert_text(PERF_AUXTRACE_INFO, 0, info, 19 * 8,
		    INFO_TEXT "  Filter string len.  7\n  Filter string       start?x\n");
}

static void a_filter_longer_than_its_record_ends_with_it(void **state)
{
	uint64_t info[] = { 1, 8, 31,    2,       3,   1, 0x400, 0x800, 3,
			    0, 1, 0x200, 0x3c000, 160, 2, 2,     20,    UINT64_MAX - 7 };
	uint8_t body[sizeof(info) + 3];

	memcpy(body, info, sizeof(info));
	memcpy(body + sizeof(info), "abc", 3);
	assert_text(PERF_AUXTRACE_INFO, 0, body, sizeof(body),
		    INFO_TEXT "  Filter string len.  18446744073709551608\n"
			      "  Filter string       abc\n");
}

static void a_trace_tells_its_queue(void **state)
{
	const struct {
		uint64_t size, offset, reference;
		uint32_t index;
		int32_t tid, cpu, zero;
	} trace = { 0x1000, 0x2000, 0x3000, 4, -1, 5, 0 };

	assert_text(PERF_AUXTRACE, 0, &trace, sizeof(trace),
		    " size: 0x1000  offset: 0x2000  ref: 0x3000  idx: 4  tid: -1  cpu: 5\n");
}

static void errors_of_a_trace_are_told_in_all_formats(void **state)
{
	struct {
		uint32_t type, code;
		int32_t cpu, pid, tid;
		uint32_t format;
		uint64_t ip, time_ns;
		char message[64];
		int32_t machine_pid, vcpu;
	} error = { 1, 7, 3, 12, -1, 1, 0x401000, 5000000001, "Overflow packet", 44, -1 };
	struct {
		uint32_t type, code;
		int32_t cpu, pid, tid;
		uint32_t format;
		uint64_t ip;
		char message[64];
	} old = { 0, 5, 3, 12, 13, 0, 0, "" };

	assert_text(PERF_AUXTRACE_ERROR, 0, &error, sizeof(error) - 8,
		    " instruction trace error type 1 time 5.000000001 cpu 3 pid 12 tid -1 "
		    "ip 0x401000 code 7: Overflow packet\n");
	error.format = 2;
	error.time_ns = 0;
	assert_text(PERF_AUXTRACE_ERROR, 0, &error, sizeof(error),
		    " instruction trace error type 1 time 0 machine_pid 44 vcpu -1 cpu 3 pid 12 "
		    "tid -1 ip 0x401000 code 7: Overflow packet\n");
	error.machine_pid = 0;
	assert_text(PERF_AUXTRACE_ERROR, 0, &error, sizeof(error),
		    " instruction trace error type 1 time 0 cpu 3 pid 12 tid -1 ip 0x401000 "
		    "code 7: Overflow packet\n");
	memset(old.message, 'a', sizeof(old.message));
	assert_text(PERF_AUXTRACE_ERROR, 0, &old, 34,
		    " unknown AUX error type 0 time 0 cpu 3 pid 12 tid 13 ip 0 code 5: aa\n");
}

static void threads_of_a_map_are_told(void **state)
{
	const struct {
		uint64_t count;
		struct {
			uint64_t tid;
			char name[16];
		} threads[2];
	} map = { 2, { { 100, "a" }, { 200, "b" } } };
	const uint64_t one[] = { 1, 100, 0, 0 };

	assert_text(PERF_THREAD_MAP, 0, &map, sizeof(map), " nr: 2 threads: 100, 200\n");
	assert_text(PERF_THREAD_MAP, 0, one, sizeof(one), " nr: 1 thread: 100\n");
}

static void cpus_of_all_three_forms_are_ranges(void **state)
{
	enum { LIST, MASK, RANGE };
	const uint16_t list[] = { LIST, 5, 0, 1, 2, 5, 7 }, any[] = { LIST, 2, UINT16_MAX, 3 };
	const uint16_t padded[] = { LIST, 1, 2, 9 };
	const uint16_t range[] = { RANGE, 0, 2, 9 }, range_or_any[] = { RANGE, 1, 4, 4 };
	const uint16_t last[] = { RANGE, 0, UINT16_MAX - 1, UINT16_MAX };

	assert_text(PERF_CPU_MAP, 0, list, sizeof(list), ": 0-2,5,7\n");
	assert_text(PERF_CPU_MAP, 0, list, sizeof(list) - 2, ": 0-2,5\n");
	assert_text(PERF_CPU_MAP, 0, padded, sizeof(padded), ": 2\n");
	assert_text(PERF_CPU_MAP, 0, any, sizeof(any), ": -1,3\n");
	assert_text(PERF_CPU_MAP, 0, range, sizeof(range), ": 2-9\n");
	assert_text(PERF_CPU_MAP, 0, range_or_any, sizeof(range_or_any), ": -1,4\n");
	assert_text(PERF_CPU_MAP, 0, last, sizeof(last), ": 65534-65535\n");
}

/* The words lie behind the count and size of them, and behind those what aligned the longer ones
 * once, when the type was not yet before them. */
static void a_mask_of_cpus_has_words_of_four_or_eight_bytes(void **state)
{
	const uint16_t words[] = { 1, 2, 4, 5, 0, 1, 0 }, padded[] = { 1, 1, 4, 5, 0, 1, 0 };
	const uint16_t long_words[] = { 1, 2, 8, 0, 0, 7, 0, 0, 0x8000, 0x10, 0, 0, 0 };
	const uint16_t hostile[] = { 1, UINT16_MAX, UINT16_MAX, 5 };

	assert_text(PERF_CPU_MAP, 0, words, sizeof(words), ": 0,2,32\n");
	assert_text(PERF_CPU_MAP, 0, padded, sizeof(padded), ": 0,2\n");
	assert_text(PERF_CPU_MAP, 0, long_words, sizeof(long_words), ": 0-2,63,68\n");
	assert_text(PERF_CPU_MAP, 0, hostile, sizeof(hostile), ": 0,2\n");
}

static void updates_of_an_event_are_told_by_kind(void **state)
{
	struct {
		uint64_t kind, id;
		union {
			char text[8];
			double scale;
			uint16_t cpus[4];
		} what;
	} update = { .kind = 0, .id = 9, .what.text = "J\033" };

	assert_text(PERF_EVENT_UPDATE, 0, &update, sizeof(update),
		    "\n... id:    9\n... unit:  J?\n");
	update.kind = 2;
	assert_text(PERF_EVENT_UPDATE, 0, &update, sizeof(update),
		    "\n... id:    9\n... name:  J?\n");
	assert_text(PERF_EVENT_UPDATE, 0, &update, 17, "\n... id:    9\n... name:  J\n");
	assert_text(PERF_EVENT_UPDATE, 0, &update, 16, "\n... id:    9\n");
	update.kind = 1;
	update.what.scale = 2.5;
	assert_text(PERF_EVENT_UPDATE, 0, &update, sizeof(update),
		    "\n... id:    9\n... scale: 2.500000\n");
	update.kind = 3;
	memcpy(update.what.cpus, (const uint16_t[]){ 2, 0, 1, 3 }, 8);
	assert_text(PERF_EVENT_UPDATE, 0, &update, sizeof(update), "\n... id:    9\n... 1-3\n");
	update.kind = 4;
	assert_text(PERF_EVENT_UPDATE, 0, &update, sizeof(update),
		    "\n... id:    9\n... unknown type\n");
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
		cmocka_unit_test(a_clock_has_as_many_words_as_are_there),
		cmocka_unit_test(ids_have_machines_where_the_record_is_long_enough),
		cmocka_unit_test(how_trace_was_made_has_a_filter_at_its_end),
		cmocka_unit_test(a_filter_longer_than_its_record_ends_with_it),
		cmocka_unit_test(a_trace_tells_its_queue),
		cmocka_unit_test(errors_of_a_trace_are_told_in_all_formats),
		cmocka_unit_test(threads_of_a_map_are_told),
		cmocka_unit_test(cpus_of_all_three_forms_are_ranges),
		cmocka_unit_test(a_mask_of_cpus_has_words_of_four_or_eight_bytes),
		cmocka_unit_test(updates_of_an_event_are_told_by_kind),
		cmocka_unit_test(a_sample_is_told_by_its_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
