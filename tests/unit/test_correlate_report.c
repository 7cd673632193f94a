#include "correlate/correlate_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "decode/base/vec.h"
#include "decode/pt/pt_offsets.h"
#include "tests/perf_build.h"

/* Findings by hand, about a recording of two CPUs: thread 77 of process 70 came to CPU 0 at 2 s and
 * thread 78 at 3 s. */

enum { PID = 70, TID = 77, NEXT = 78, CPU_0 = 0, CPU_1 = 1, WORDS = 13 };

static const uint64_t second = 1000000000;

struct fixture {
	struct perf_build build;
	struct perf_data data;
	struct sideband *sideband;
	struct offset_recorded known;
	struct offsets_recorded recorded;
	struct tsc_offsets offsets;
	struct correlate_report report;
	char *text; /* as printed last */
	size_t size;
};

static void add_switch(struct fixture *f, uint32_t tid, uint64_t time)
{
	const uint32_t nobody[] = { 0, 0 };

	perf_build_kernel(&f->build, PERF_SWITCH_CPU_WIDE, 0, nobody, sizeof(nobody),
			  (struct build_trailer){ PID, tid, time, CPU_0, 1 });
}

static int set_up(void **state)
{
	static const uint64_t index[] = { 1, 2, 0, 0, NEXT, PID, 3 };
	static struct fixture fixture;
	struct fixture *f = &fixture;

	*f = (struct fixture){ 0 };
	perf_build_pt(&f->build, 0, 1);
	perf_build_record(&f->build, PERF_ID_INDEX, 0, index, sizeof(index));
	perf_build_aux(&f->build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	perf_build_aux(&f->build, 1, 0, "\0\0\0\0\0\0\0\0", 8);
	add_switch(f, TID, 2 * second);
	add_switch(f, NEXT, 3 * second);
	assert_int_equal(perf_data_open_bytes(perf_build_file(&f->build), &f->data, NULL), 0);
	assert_int_equal(sideband_build(&f->data, &f->sideband), 0);
	f->report = (struct correlate_report){ &f->data, f->sideband, &f->recorded, &f->offsets };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free(f->text);
	tsc_offsets_free(&f->offsets);
	sideband_free(f->sideband);
	perf_data_close(&f->data);
	perf_build_free(&f->build);
	return 0;
}

/* The host's TSC at a time of perf's clock: 2 GHz, as perf_build_pt() has it. */
static uint64_t tsc_at(const struct fixture *f, uint64_t ns)
{
	return time_conv_tsc(&f->data.pt.conv, ns);
}

static struct vmcs_offsets *add_guest(struct fixture *f, uint64_t vmcs)
{
	assert_true(vec_push(&f->offsets.guests, (struct vmcs_offsets){ .vmcs = vmcs }));
	return &f->offsets.guests.items[f->offsets.guests.count - 1];
}

/* A segment from one time to another, 0 where it is open. */
static struct tsc_segment *add_segment(const struct fixture *f, struct vmcs_offsets *guest,
				       uint64_t from_ns, uint64_t to_ns, int64_t offset)
{
	const struct tsc_segment segment = { .from = from_ns ? tsc_at(f, from_ns) : 0,
					     .to = to_ns ? tsc_at(f, to_ns) : UINT64_MAX,
					     .offset = (uint64_t)offset & PT_TSC_MASK,
					     .ratio = TSC_RATIO_ONE,
					     .host = tsc_at(f, 5 * second / 2) };

	assert_true(vec_push(&guest->segments, segment));
	return &guest->segments.items[guest->segments.count - 1];
}

/* A guest with one offset for all time. */
static struct tsc_segment *add_plain(struct fixture *f, int64_t offset)
{
	return add_segment(f, add_guest(f, 0x2664e), 0, 0, offset);
}

static const char *print(struct fixture *f)
{
	FILE *out;

	free(f->text);
	out = open_memstream(&f->text, &f->size);
	assert_non_null(out);
	report_print(&f->report, out);
	(void)fclose(out);
	return f->text;
}

static void expect_words(char *line, const char *const *words)
{
	char *rest = line;

	for (unsigned i = 0; i < WORDS; i++)
		assert_string_equal(strtok_r(NULL, " ", &rest), words[i]);
	assert_null(strtok_r(NULL, " ", &rest));
}

/* Line `number` of the table, from 0; below its head. */
static char *row(struct fixture *f, size_t number)
{
	static char line[512];
	const char *at = strstr(print(f), "confidence\n");

	for (size_t i = 0; at && i <= number; i++)
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	assert_non_null(at);
	(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	return line;
}

static json_t *print_json(struct fixture *f)
{
	FILE *out;
	json_t *root;

	free(f->text);
	out = open_memstream(&f->text, &f->size);
	assert_non_null(out);
	assert_int_equal(report_print_json(&f->report, out), 0);
	(void)fclose(out);
	root = json_loadb(f->text, f->size, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	return root;
}

static json_t *guest_of(json_t *root, size_t index)
{
	json_t *guest = json_array_get(json_object_get(root, "vmcs"), index);

	assert_non_null(guest);
	return guest;
}

static json_t *segment_of(json_t *root, size_t index)
{
	json_t *segment = json_array_get(json_object_get(guest_of(root, 0), "segments"), index);

	assert_non_null(segment);
	return segment;
}

static void assert_integer(const json_t *object, const char *key, json_int_t value)
{
	const json_t *found = json_object_get(object, key);

	assert_true(json_is_integer(found));
	assert_int_equal(json_integer_value(found), value);
}

static void assert_null_at(const json_t *object, const char *key)
{
	assert_true(json_is_null(json_object_get(object, key)));
}

static void assert_bool(const json_t *object, const char *key, bool value)
{
	const json_t *found = json_object_get(object, key);

	assert_true(json_is_boolean(found));
	assert_int_equal(json_is_true(found), value);
}

static void assert_string(const json_t *object, const char *key, const char *value)
{
	assert_string_equal(json_string_value(json_object_get(object, key)), value);
}

static void nothing_found_is_nothing_printed(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(print(f), "");
	(void)add_guest(f, 1);
	assert_string_equal(print(f), "");
}

static void an_offset_is_a_line_as_perf_prints_it(void **state)
{
	static const char *const expected = "VMCS: 0x2664e  TSC Offset 0xfffffff93f771e00\n"
					    "VMCS: 0x5  TSC Offset 0x7b\n"
					    "VMCS: 0x5  TSC Offset 0xffffffffffffffff\n"
					    "\n";
	struct fixture *f = *state;
	struct vmcs_offsets *guest;

	(void)add_plain(f, -29000000000);
	guest = add_guest(f, 5);
	(void)add_segment(f, guest, 0, 2 * second, 123);
	(void)add_segment(f, guest, 2 * second, 0, -1);
	assert_memory_equal(print(f), expected, strlen(expected));
}

static void the_table_has_all_of_a_segment(void **state)
{
	static const char *const words[] = { "0x2664e",
					     "vm1",
					     "0",
					     "77",
					     "1.999999999",
					     "2.000000000",
					     "0xffffffffffffff9c",
					     "-0.000000050",
					     "1.500000000",
					     "9",
					     "1.5",
					     "recorded",
					     "medium" };
	struct fixture *f = *state;
	struct tsc_segment *segment =
		add_segment(f, add_guest(f, 0x2664e), 2 * second - 1, 2 * second, -100);

	f->known = (struct offset_recorded){ .pid = 106, .tid = TID, .vcpu = 0, .name = "vm1" };
	f->recorded.entries.items = &f->known;
	f->recorded.entries.count = 1;
	segment->ratio = TSC_RATIO_ONE * 3 / 2;
	segment->observations = 9;
	segment->residual = 3;
	segment->source = TSC_RECORDED;
	segment->confidence = TSC_MEDIUM;
	expect_words(row(f, 0), words);
}

static void what_is_unknown_is_a_dash(void **state)
{
	static const char *const words[] = { "0x1",         "-", "-",   "-",
					     "begin",       "?", "0",   "+0.000000000",
					     "1.000000000", "0", "0.0", "inferred",
					     "low" };
	struct fixture *f = *state;

	(void)add_segment(f, add_guest(f, 1), 0, second, 0);
	f->data.pt.conv.valid = false;
	f->data.pt.nominal_hz = 0;
	expect_words(row(f, 0), words);
}

static void seconds_go_by_the_nominal_frequency_if_need_be(void **state)
{
	struct fixture *f = *state;

	(void)add_plain(f, 5000000000);
	f->data.pt.conv.valid = false;
	f->data.pt.nominal_hz = 2500000000;
	assert_non_null(strstr(row(f, 0), " +2.000000000 "));
	f->data.pt.conv.valid = true; /* 2 GHz */
	assert_non_null(strstr(row(f, 0), " +2.500000000 "));
}

static void each_source_and_confidence_has_a_name(void **state)
{
	struct fixture *f = *state;
	struct tsc_segment *segment = add_plain(f, 1);

	segment->source = TSC_GIVEN;
	segment->confidence = TSC_HIGH;
	assert_non_null(strstr(row(f, 0), " given    high"));
	segment->source = TSC_INFERRED;
	segment->confidence = TSC_LOW;
	assert_non_null(strstr(row(f, 0), " inferred low"));
}

static void a_thread_has_the_vcpu_that_the_recording_says(void **state)
{
	struct fixture *f = *state;

	add_plain(f, 1)->host = tsc_at(f, 4 * second);
	assert_non_null(strstr(row(f, 0), "        70    3      78 "));
}

static void columns_stand_below_their_heads(void **state)
{
	struct fixture *f = *state;
	const char *head;
	size_t width;

	(void)add_plain(f, -1);
	head = strstr(print(f), "\n\n") + 2;
	width = (size_t)(strstr(head, " source") - head);
	assert_int_equal(strstr(head, " confidence") - head, width + 9);
	assert_int_equal(strstr(row(f, 0), " inferred") - row(f, 0), width);
}

static int32_t thread_when(struct fixture *f, uint64_t segment_ns, uint64_t first_ns)
{
	struct vmcs_offsets guest = { .first_host = first_ns ? tsc_at(f, first_ns) : 0 };
	struct tsc_segment segment = { .host = segment_ns ? tsc_at(f, segment_ns) : 0 };

	guest.segments.items = &segment;
	guest.segments.count = segment_ns != 0;
	return report_thread(&f->report, &guest);
}

static void the_thread_is_the_one_that_had_the_cpu(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(thread_when(f, 2 * second - 1, 0), -1);
	assert_int_equal(thread_when(f, 2 * second, 0), TID);
	assert_int_equal(thread_when(f, 3 * second - 1, 0), TID);
	assert_int_equal(thread_when(f, 3 * second, 0), NEXT);
	assert_int_equal(thread_when(f, 100 * second, 0), NEXT);
}

static void without_a_segment_it_is_the_first_time_that_counts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(thread_when(f, 0, 5 * second / 2), TID);
	assert_int_equal(thread_when(f, 4 * second, 5 * second / 2), NEXT);
	assert_int_equal(thread_when(f, 0, 0), -1);
}

static void a_queue_of_a_thread_needs_no_time(void **state)
{
	struct fixture *f = *state;

	f->data.queues.items[0].tid = 4711;
	assert_int_equal(thread_when(f, 5 * second / 2, 0), 4711);
	assert_int_equal(thread_when(f, 0, 0), 4711);
}

static void without_perfs_clock_nobody_knows_the_thread(void **state)
{
	struct fixture *f = *state;

	f->data.pt.conv.valid = false;
	assert_int_equal(thread_when(f, 5 * second / 2, 0), -1);
}

static void a_cpu_without_switches_has_no_thread(void **state)
{
	struct fixture *f = *state;
	const struct vmcs_offsets guest = { .first_host = tsc_at(f, 5 * second / 2),
					    .queue = CPU_1 };

	assert_int_equal(report_thread(&f->report, &guest), -1);
}

static void json_has_all_of_a_segment(void **state)
{
	struct fixture *f = *state;
	struct vmcs_offsets *guest = add_guest(f, 0x2664e);
	struct tsc_segment *segment;
	json_t *root, *found;

	(void)add_segment(f, guest, 0, 2 * second, 5);
	segment = add_segment(f, guest, 2 * second, 0, -3000000000);
	segment->ratio = TSC_RATIO_ONE / 2;
	segment->observations = 4;
	segment->residual = 6;
	segment->confidence = TSC_HIGH;
	root = print_json(f);
	found = segment_of(root, 0);
	assert_null_at(found, "from_ns");
	assert_integer(found, "to_ns", (json_int_t)(2 * second));
	assert_string(found, "offset", "0x5");
	found = segment_of(root, 1);
	assert_integer(found, "from_ns", (json_int_t)(2 * second));
	assert_null_at(found, "to_ns");
	assert_string(found, "offset", "0xffffffff4d2fa200");
	assert_integer(found, "offset_ticks", -3000000000);
	assert_true(json_real_value(json_object_get(found, "offset_seconds")) == -1.5);
	assert_true(json_real_value(json_object_get(found, "ratio")) == 0.5);
	assert_integer(found, "multiplier", (json_int_t)(TSC_RATIO_ONE / 2));
	assert_integer(found, "observations", 4);
	assert_true(json_real_value(json_object_get(found, "residual_ns")) == 3);
	assert_string(found, "source", "inferred");
	assert_string(found, "confidence", "high");
	json_decref(root);
}

static void json_has_all_of_a_guest(void **state)
{
	struct fixture *f = *state;
	struct vmcs_offsets *guest;
	json_t *root;

	(void)add_plain(f, 5);
	guest = &f->offsets.guests.items[0];
	guest->packets = 12;
	guest->outliers = 3;
	guest->lost_ticks = 4;
	guest->disagrees = true;
	f->known = (struct offset_recorded){
		.pid = 106, .tid = TID, .vcpu = 0, .name = "vm \xc3\xa9\""
	};
	f->recorded.entries.items = &f->known;
	f->recorded.entries.count = 1;
	root = print_json(f);
	assert_string(guest_of(root, 0), "vmcs", "0x2664e");
	assert_string(guest_of(root, 0), "machine", "vm \xc3\xa9\"");
	assert_integer(guest_of(root, 0), "machine_pid", 106);
	assert_integer(guest_of(root, 0), "vcpu", 0);
	assert_integer(guest_of(root, 0), "tid", TID);
	assert_integer(guest_of(root, 0), "guest_tscs", 12);
	assert_integer(guest_of(root, 0), "outliers", 3);
	assert_integer(guest_of(root, 0), "lost_ticks", 4);
	assert_bool(guest_of(root, 0), "disagrees_with_recorded", true);
	assert_null(json_object_get(guest_of(root, 0), "reason"));
	assert_null(strchr(f->text, 0xc3)); /* ASCII, for any terminal */
	json_decref(root);
}

static void json_says_why_there_is_no_offset(void **state)
{
	struct fixture *f = *state;
	json_t *root;

	(void)add_guest(f, 9);
	root = print_json(f);
	assert_non_null(json_string_value(json_object_get(guest_of(root, 0), "reason")));
	assert_int_equal(json_array_size(json_object_get(guest_of(root, 0), "segments")), 0);
	assert_null_at(guest_of(root, 0), "machine_pid");
	assert_null_at(guest_of(root, 0), "vcpu");
	assert_null_at(guest_of(root, 0), "tid");
	assert_null(json_object_get(guest_of(root, 0), "machine"));
	assert_bool(root, "complete", false);
	json_decref(root);
}

static void json_without_guests_is_complete(void **state)
{
	struct fixture *f = *state;
	json_t *root = print_json(f);

	assert_int_equal(json_array_size(json_object_get(root, "vmcs")), 0);
	assert_integer(root, "tscs", 0);
	assert_integer(root, "guest_tscs_without_vmcs", 0);
	assert_bool(root, "complete", true);
	assert_bool(root, "nothing_to_do", true);
	json_decref(root);
}

static void json_sums_up(void **state)
{
	struct fixture *f = *state;
	json_t *root;

	(void)add_plain(f, 1000);
	f->offsets.packets = 100;
	f->offsets.no_vmcs = 3;
	f->offsets.dropped = 4;
	root = print_json(f);
	assert_integer(root, "tscs", 100);
	assert_integer(root, "guest_tscs_without_vmcs", 7);
	assert_bool(root, "complete", false);
	assert_bool(root, "nothing_to_do", false);
	assert_int_equal(f->text[f->size - 1], '\n');
	json_decref(root);
}

static void the_reason_is_what_is_missing(void **state)
{
	struct fixture *f = *state;
	struct vmcs_offsets guest = { .packets = 7, .without_tma = 6 };

	assert_true(f->data.pt.mtc && f->data.pt.ctc_n);
	assert_non_null(strstr(report_reason(&f->report, &guest), "no TSC packet of the host"));
	guest.without_tma = 7;
	assert_non_null(strstr(report_reason(&f->report, &guest), "SKZ84"));
	f->data.pt.mtc = false;
	assert_non_null(strstr(report_reason(&f->report, &guest), "no MTC"));
	f->data.pt.mtc = true;
	f->data.pt.ctc_n = 0;
	assert_non_null(strstr(report_reason(&f->report, &guest), "no MTC"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_found_is_nothing_printed),
		TEST(an_offset_is_a_line_as_perf_prints_it),
		TEST(the_table_has_all_of_a_segment),
		TEST(what_is_unknown_is_a_dash),
		TEST(seconds_go_by_the_nominal_frequency_if_need_be),
		TEST(each_source_and_confidence_has_a_name),
		TEST(a_thread_has_the_vcpu_that_the_recording_says),
		TEST(columns_stand_below_their_heads),
		TEST(the_thread_is_the_one_that_had_the_cpu),
		TEST(without_a_segment_it_is_the_first_time_that_counts),
		TEST(a_queue_of_a_thread_needs_no_time),
		TEST(without_perfs_clock_nobody_knows_the_thread),
		TEST(a_cpu_without_switches_has_no_thread),
		TEST(json_has_all_of_a_segment),
		TEST(json_has_all_of_a_guest),
		TEST(json_says_why_there_is_no_offset),
		TEST(json_without_guests_is_complete),
		TEST(json_sums_up),
		TEST(the_reason_is_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
