#include "decode/perf/perf_synth_text.h"

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

static void assert_text(uint16_t type, const void *body, size_t size, const char *expected)
{
	struct perf_record record = record_make(type, 0, body, size);
	struct printed printed = { 0 };

	perf_synth_text(&record, printed_begin(&printed));
	assert_string_equal(printed_end(&printed), expected);
	printed_drop(&printed);
	record_drop(&record);
}

static void records_of_the_kernel_are_left_to_others(void **state)
{
	static const uint64_t body[20];

	for (uint16_t type = 0; type < PERF_HEADER_ATTR; type++)
		assert_text(type, body, sizeof(body), "");
}

/* Old perf wrote three words of it. */
static void a_clock_has_as_many_words_as_are_there(void **state)
{
	const uint64_t words[] = { 31, 1 << 30, 1000, 7, 0xff, 0x0101 };

	assert_text(PERF_TIME_CONV, words, 24,
		    "\n... Time Shift      31\n... Time Muliplier  1073741824\n"
		    "... Time Zero       1000\n: unhandled!");
	assert_text(PERF_TIME_CONV, words, 48,
		    "\n... Time Shift      31\n... Time Muliplier  1073741824\n"
		    "... Time Zero       1000\n... Time Cycles     7\n... Time Mask       0xff\n"
		    "... Cap Time Zero   1\n... Cap Time Short  1\n: unhandled!");
}

static void ids_have_machines_where_the_record_is_long_enough(void **state)
{
	const uint64_t ids[] = {
		2, 10, 0, UINT64_MAX, 5, 11, 1, 3, UINT64_MAX, 77, 0, 0, UINT64_MAX
	};
	uint64_t hostile[sizeof(ids) / sizeof(ids[0])];

	assert_text(PERF_ID_INDEX, ids, sizeof(ids) - 32,
		    " nr: 2\n ... id: 10  idx: 0  cpu: -1  tid: 5\n"
		    " ... id: 11  idx: 1  cpu: 3  tid: -1");
	assert_text(PERF_ID_INDEX, ids, sizeof(ids),
		    " nr: 2\n ... id: 10  idx: 0  cpu: -1  tid: 5  machine_pid: 77  vcpu: 0\n"
		    " ... id: 11  idx: 1  cpu: 3  tid: -1  machine_pid: 0  vcpu: -1");
	assert_text(PERF_ID_INDEX, ids, sizeof(ids) - 8, /* its last vCPU is missing */
		    " nr: 2\n ... id: 10  idx: 0  cpu: -1  tid: 5\n"
		    " ... id: 11  idx: 1  cpu: 3  tid: -1");
	memcpy(hostile, ids, sizeof(ids));
	hostile[0] = UINT64_MAX / 48 + 1; /* as many words of 48 bytes are few */
	assert_text(PERF_ID_INDEX, hostile, 40,
		    " nr: 384307168202282326\n ... id: 10  idx: 0  cpu: -1  tid: 5");
}

/* The words of AUXTRACE_INFO up to the length of the filter. */
#define INFO_TEXT                                                                                  \
	" type: 1\n  PMU Type            8\n  Time Shift          31\n  Time Muliplier      2\n"   \
	"  Time Zero           3\n  Cap Time Zero       1\n  TSC bit             0x400\n"          \
	"  NoRETComp bit       0x800\n  Have sched_switch   3\n  Snapshot mode       0\n"          \
	"  Per-cpu maps        1\n  MTC bit             0x200\n  MTC freq bits       0x3c000\n"    \
	"  TSC:CTC numerator   160\n  TSC:CTC denominator 2\n  CYC bit             0x2\n"          \
	"  Max non-turbo ratio 20"

static void how_trace_was_made_has_a_filter_at_its_end(void **state)
{
	uint64_t info[] = { 1, 8,     31,      2,   3, 1, 0x400, 0x800, 3, 0,
			    1, 0x200, 0x3c000, 160, 2, 2, 20,    0,     1, 0 };

	assert_text(PERF_AUXTRACE_INFO, info, 17 * 8, INFO_TEXT);
	assert_text(PERF_AUXTRACE_INFO, info, 19 * 8,
		    INFO_TEXT "\n  Filter string len.  0\n  Filter string       \n"
			      "  Cap Event Trace     1");
	info[17] = 7;
	memcpy(&info[18], "start\033x", 8);
	assert_text(PERF_AUXTRACE_INFO, info, 20 * 8,
		    INFO_TEXT "\n  Filter string len.  7\n  Filter string       start?x\n"
			      "  Cap Event Trace     0");
	assert_text(PERF_AUXTRACE_INFO, info, 19 * 8,
		    INFO_TEXT "\n  Filter string len.  7\n  Filter string       start?x");
}

static void a_filter_longer_than_its_record_ends_with_it(void **state)
{
	uint64_t info[] = { 1, 8, 31,    2,       3,   1, 0x400, 0x800, 3,
			    0, 1, 0x200, 0x3c000, 160, 2, 2,     20,    UINT64_MAX - 7 };
	uint8_t body[sizeof(info) + 3];

	memcpy(body, info, sizeof(info));
	memcpy(body + sizeof(info), "abc", 3);
	assert_text(PERF_AUXTRACE_INFO, body, sizeof(body),
		    INFO_TEXT "\n  Filter string len.  18446744073709551608\n"
			      "  Filter string       abc");
}

static void a_trace_tells_its_queue(void **state)
{
	const struct {
		uint64_t size, offset, reference;
		uint32_t index;
		int32_t tid, cpu, zero;
	} trace = { 0x1000, 0x2000, 0x3000, 4, -1, 5, 0 };

	assert_text(PERF_AUXTRACE, &trace, sizeof(trace),
		    " size: 0x1000  offset: 0x2000  ref: 0x3000  idx: 4  tid: -1  cpu: 5");
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

	assert_text(PERF_AUXTRACE_ERROR, &error, sizeof(error), /* and what may follow */
		    " instruction trace error type 1 time 5.000000001 cpu 3 pid 12 tid -1 "
		    "ip 0x401000 code 7: Overflow packet");
	error.format = 2;
	error.time_ns = 0;
	assert_text(PERF_AUXTRACE_ERROR, &error, sizeof(error),
		    " instruction trace error type 1 time 0 machine_pid 44 vcpu -1 cpu 3 pid 12 "
		    "tid -1 ip 0x401000 code 7: Overflow packet");
	error.machine_pid = 0;
	assert_text(PERF_AUXTRACE_ERROR, &error, sizeof(error),
		    " instruction trace error type 1 time 0 cpu 3 pid 12 tid -1 ip 0x401000 "
		    "code 7: Overflow packet");
	memset(old.message, 'a', sizeof(old.message));
	assert_text(PERF_AUXTRACE_ERROR, &old, 32, ""); /* it ends before its message */
	assert_text(PERF_AUXTRACE_ERROR, &old, 40,
		    " unknown AUX error type 0 time 0 cpu 3 pid 12 tid 13 ip 0 code 5: aaaaaaaa");
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

	assert_text(PERF_THREAD_MAP, &map, sizeof(map), " nr: 2 threads: 100, 200");
	assert_text(PERF_THREAD_MAP, one, sizeof(one), " nr: 1 thread: 100");
}

static void cpus_of_all_three_forms_are_ranges(void **state)
{
	enum { LIST, MASK, RANGE };
	const uint16_t list[] = { LIST, 5, 0, 1, 2, 5, 7 }, any[] = { LIST, 2, UINT16_MAX, 3 };
	const uint16_t padded[] = { LIST, 1, 2, 9 };
	const uint16_t range[] = { RANGE, 0x100, 2, 9 }, range_or_any[] = { RANGE, 1, 4, 4 };
	const uint16_t last[] = { RANGE, 0, UINT16_MAX - 1, UINT16_MAX };

	assert_text(PERF_CPU_MAP, list, sizeof(list), ": 0-2,5,7");
	assert_text(PERF_CPU_MAP, list, sizeof(list) - 2, ": 0-2,5");
	assert_text(PERF_CPU_MAP, padded, sizeof(padded), ": 2");
	assert_text(PERF_CPU_MAP, any, sizeof(any), ": -1,3");
	assert_text(PERF_CPU_MAP, range, sizeof(range), ": 2-9");
	assert_text(PERF_CPU_MAP, range_or_any, sizeof(range_or_any), ": -1,4");
	assert_text(PERF_CPU_MAP, last, sizeof(last), ": 65534-65535");
}

/* The words lie behind the count and size of them, and behind those what aligned the longer ones
 * once, when the type was not yet before them. */
static void a_mask_of_cpus_has_words_of_four_or_eight_bytes(void **state)
{
	const uint16_t words[] = { 1, 2, 4, 5, 0, 1, 0 }, padded[] = { 1, 1, 4, 5, 0, 1, 0 };
	const uint16_t long_words[] = { 1, 2, 8, 0, 0, 7, 0, 0, 0x8000, 0x10, 0, 0, 0 };
	const uint16_t hostile[] = { 1, UINT16_MAX, UINT16_MAX, 5 };

	assert_text(PERF_CPU_MAP, words, sizeof(words), ": 0,2,32");
	assert_text(PERF_CPU_MAP, padded, sizeof(padded), ": 0,2");
	assert_text(PERF_CPU_MAP, long_words, sizeof(long_words), ": 0-2,63,68");
	assert_text(PERF_CPU_MAP, hostile, sizeof(hostile), ": 0,2");
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

	assert_text(PERF_EVENT_UPDATE, &update, sizeof(update), "\n... id:    9\n... unit:  J?");
	update.kind = 2;
	assert_text(PERF_EVENT_UPDATE, &update, sizeof(update), "\n... id:    9\n... name:  J?");
	assert_text(PERF_EVENT_UPDATE, &update, 17, "\n... id:    9\n... name:  J");
	assert_text(PERF_EVENT_UPDATE, &update, 16, "\n... id:    9");
	update.kind = 1;
	update.what.scale = 2.5;
	assert_text(PERF_EVENT_UPDATE, &update, sizeof(update),
		    "\n... id:    9\n... scale: 2.500000");
	update.kind = 3;
	memcpy(update.what.cpus, (const uint16_t[]){ 2, 0, 1, 3 }, 8);
	assert_text(PERF_EVENT_UPDATE, &update, sizeof(update), "\n... id:    9\n... 1-3");
	update.kind = 4;
	assert_text(PERF_EVENT_UPDATE, &update, sizeof(update), "\n... id:    9\n... unknown type");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_the_kernel_are_left_to_others),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
