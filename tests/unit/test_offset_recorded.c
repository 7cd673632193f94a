#include "correlate/offset_recorded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/pt/pt_offsets.h"

static const char example[] =
	"{\"version\": 1, \"machines\": [{\"pid\": 106, \"name\": \"vm1\", \"vcpus\": ["
	"{\"index\": 0, \"tid\": 113, \"tsc\": ["
	"  {\"time_ns\": 1000, \"offset\": -1000, \"ratio\": 281474976710656, \"frac_bits\": 48},"
	"  {\"time_ns\": 9000, \"offset\": 500}]},"
	"{\"index\": 1, \"tid\": 114}]}]}";

static const struct time_conv conv = { .valid = true, .mult = 1 };

static int parse(const char *text, struct offsets_recorded *ret)
{
	*ret = (struct offsets_recorded){ 0 };
	return offsets_recorded_parse((struct bytes){ (const uint8_t *)text, strlen(text) }, ret,
				      NULL);
}

static struct vmcs_offsets guest_with(uint64_t offset)
{
	struct vmcs_offsets guest = { .vmcs = 1 };

	guest.segments.items = calloc(1, sizeof(*guest.segments.items));
	assert_non_null(guest.segments.items);
	guest.segments.items[0] = (struct tsc_segment){ .to = UINT64_MAX,
							.offset = offset & PT_TSC_MASK,
							.ratio = TSC_RATIO_ONE,
							.confidence = TSC_MEDIUM };
	guest.segments.count = guest.segments.room = 1;
	return guest;
}

static void vcpus_and_offsets_are_read(void **state)
{
	struct offsets_recorded recorded;
	const struct offset_recorded *vcpu;

	assert_int_equal(parse(example, &recorded), 0);
	vcpu = offsets_recorded_find(&recorded, 114);
	assert_non_null(vcpu);
	assert_int_equal(vcpu->vcpu, 1);
	assert_int_equal(vcpu->pid, 106);
	assert_string_equal(vcpu->name, "vm1");
	assert_false(vcpu->have_offset);
	assert_null(offsets_recorded_find(&recorded, 115));
	assert_null(offsets_recorded_find(&recorded, -1));
	offsets_recorded_free(&recorded);
}

static void a_file_that_is_too_large_is_not_read(void **state)
{
	const struct bytes text = { (const uint8_t *)"{}", OFFSETS_RECORDED_BYTES + 1 };
	struct offsets_recorded recorded = { 0 };
	struct ptvm_error error = { 0 };

	assert_int_equal(offsets_recorded_parse(text, &recorded, &error), -PTVM_BAD_INPUT);
	assert_string_equal(error.message, "more than 64 MiB");
}

static void a_name_has_nothing_that_a_terminal_obeys(void **state)
{
	const char *text = "{\"machines\": [{\"pid\": 1, \"name\": \"v\\u001bm\\u009b\\u00e9\", "
			   "\"vcpus\": [{\"index\": 0, \"tid\": 2}]}]}";
	struct offsets_recorded recorded;

	assert_int_equal(parse(text, &recorded), 0);
	assert_string_equal(offsets_recorded_find(&recorded, 2)->name, "v?m??\xc3\xa9");
	offsets_recorded_free(&recorded);
}

static void what_agrees_is_exact(void **state)
{
	struct vmcs_offsets guest = guest_with((uint64_t)-1002);
	struct offsets_recorded recorded;

	assert_int_equal(parse(example, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, true, &conv, 160, &guest), 0);
	assert_true(guest.segments.items[0].offset == ((uint64_t)-1000 & PT_TSC_MASK));
	assert_int_equal(guest.segments.items[0].source, TSC_RECORDED);
	assert_true(guest.disagrees); /* the second is not what the packets show */
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

static void packets_are_right_against_records(void **state)
{
	struct vmcs_offsets guest = guest_with(77777);
	struct offsets_recorded recorded;

	assert_int_equal(parse(example, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, true, &conv, 160, &guest), 0);
	assert_true(guest.disagrees);
	assert_int_equal(guest.segments.items[0].offset, 77777);
	assert_int_equal(guest.segments.items[0].source, TSC_INFERRED);
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

static void records_alone_make_segments(void **state)
{
	struct vmcs_offsets guest = { .vmcs = 1 };
	struct offsets_recorded recorded;

	assert_int_equal(parse(example, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, true, &conv, 160, &guest), 0);
	assert_int_equal(guest.segments.count, 2);
	assert_int_equal(guest.segments.items[0].from, 0);
	assert_int_equal(guest.segments.items[0].to, 9000);
	assert_int_equal(guest.segments.items[1].offset, 500);
	assert_false(guest.disagrees);
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

/* By one time stamp, or a few that are close, nobody sees how fast a TSC goes. */
static void a_ratio_that_packets_do_not_show_is_taken(void **state)
{
	static const char text[] =
		"{\"machines\": [{\"pid\": 1, \"vcpus\": [{\"tid\": 113, \"tsc\": ["
		"{\"time_ns\": 1000, \"offset\": 5, \"ratio\": 8589934592, "
		"\"frac_bits\": 32}]}]}]}";
	const uint64_t noon = 1000000000000;
	struct vmcs_offsets guest = guest_with(noon + 3); /* twice as fast */
	struct offsets_recorded recorded;

	guest.segments.items[0].host = noon;
	assert_int_equal(parse(text, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, true, &conv, 160, &guest), 0);
	assert_false(guest.disagrees);
	assert_int_equal(guest.segments.items[0].offset, 5);
	assert_true(guest.segments.items[0].ratio == 2 * TSC_RATIO_ONE);
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

static void what_was_recorded_is_better_than_an_estimate(void **state)
{
	struct vmcs_offsets guest = guest_with(77777);
	struct offsets_recorded recorded;

	guest.first_host = 1;
	guest.segments.items[0].host = 2;
	guest.segments.items[0].confidence = TSC_LOW;
	assert_int_equal(parse(example, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, true, &conv, 160, &guest), 0);
	assert_int_equal(guest.segments.count, 2);
	assert_true(guest.segments.items[0].offset == ((uint64_t)-1000 & PT_TSC_MASK));
	assert_int_equal(guest.segments.items[0].source, TSC_RECORDED);
	assert_int_equal(guest.segments.items[0].host, 2);
	assert_int_equal(guest.segments.items[1].offset, 500);
	assert_false(guest.disagrees);
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

/* It may be of another guest. */
static void of_two_guests_an_estimate_stays(void **state)
{
	struct vmcs_offsets guest = guest_with(77777);
	struct offsets_recorded recorded;

	guest.segments.items[0].confidence = TSC_LOW;
	assert_int_equal(parse(example, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, false, &conv, 160, &guest), 0);
	assert_int_equal(guest.segments.items[0].offset, 77777);
	assert_false(guest.is_unclear || guest.disagrees);
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

/* A nested guest runs in the thread of the guest that it is in. */
static void of_two_guests_of_a_thread_only_what_packets_confirm_is_used(void **state)
{
	struct vmcs_offsets seen = guest_with((uint64_t)-1001 & PT_TSC_MASK);
	struct vmcs_offsets other = guest_with(77777), unseen = { .vmcs = 1 };
	struct offsets_recorded recorded;

	assert_int_equal(parse(example, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, false, &conv, 160, &seen), 0);
	assert_true(seen.segments.items[0].offset == ((uint64_t)-1000 & PT_TSC_MASK));
	assert_int_equal(seen.segments.items[0].source, TSC_RECORDED);
	assert_int_equal(offsets_recorded_use(&recorded, 113, false, &conv, 160, &other), 0);
	assert_int_equal(other.segments.items[0].offset, 77777);
	assert_false(seen.disagrees || other.disagrees);
	assert_int_equal(offsets_recorded_use(&recorded, 113, false, &conv, 160, &unseen), 0);
	assert_int_equal(unseen.segments.count, 0);
	assert_true(unseen.is_unclear);
	assert_false(seen.is_unclear || other.is_unclear);
	free(seen.segments.items);
	free(other.segments.items);
	offsets_recorded_free(&recorded);
}

/* Intel's multipliers have 48 bits behind the point, AMD's 32; KVM may be asked again and again. */
static void the_same_in_other_words_is_no_change(void **state)
{
	static const char text[] =
		"{\"machines\": [{\"pid\": 1, \"vcpus\": [{\"tid\": 113, \"tsc\": ["
		"{\"time_ns\": 1000, \"offset\": 5, \"ratio\": 281474976710656, \"frac_bits\": 48},"
		"{\"time_ns\": 2000, \"offset\": 5, \"ratio\": 4294967296, \"frac_bits\": 32},"
		"{\"time_ns\": 3000, \"offset\": 5, \"ratio\": 1125899906842624, \"frac_bits\": "
		"50},"
		"{\"time_ns\": 4000, \"offset\": 5, \"ratio\": 8589934592, \"frac_bits\": "
		"32}]}]}]}";
	struct vmcs_offsets guest = { .vmcs = 1 };
	struct offsets_recorded recorded;

	assert_int_equal(parse(text, &recorded), 0);
	assert_int_equal(offsets_recorded_use(&recorded, 113, true, &conv, 64, &guest), 0);
	assert_int_equal(guest.segments.count, 2);
	assert_true(guest.segments.items[0].ratio == TSC_RATIO_ONE);
	assert_int_equal(guest.segments.items[0].to, 4000);
	assert_true(guest.segments.items[1].ratio == 2 * TSC_RATIO_ONE);
	free(guest.segments.items);
	offsets_recorded_free(&recorded);
}

static void other_shapes_record_nothing(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"machines\": 5}",
		"{\"machines\": [1, {\"vcpus\": [7]}]}",
		"{\"machines\": [{\"vcpus\": [{\"tid\": 1, \"tsc\": [{\"offset\": \"x\"}]}]}]}",
		("{\"machines\": [{\"vcpus\": [{\"tid\": 1, \"tsc\": [{\"offset\": 1, "
		 "\"ratio\": -1}]}]}]}"),
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct vmcs_offsets guest = { .vmcs = 1 };
		struct offsets_recorded recorded;

		assert_int_equal(parse(texts[i], &recorded), 0);
		assert_int_equal(offsets_recorded_use(&recorded, 1, true, &conv, 160, &guest), 0);
		assert_int_equal(guest.segments.count, 0);
		offsets_recorded_free(&recorded);
	}
}

static void what_is_no_json_is_an_error(void **state)
{
	struct offsets_recorded recorded;

	assert_int_equal(parse("{\"machines\": [", &recorded), -PTVM_BAD_INPUT);
	offsets_recorded_free(&recorded);
	assert_int_equal(parse("", &recorded), -PTVM_BAD_INPUT);
	offsets_recorded_free(&recorded);
}

static void what_is_no_json_is_told_by_line_and_in_print(void **state)
{
	const char text[] = "{\n\x1b[31m";
	const struct bytes bytes = { (const uint8_t *)text, sizeof(text) - 1 };
	struct offsets_recorded recorded = { 0 };
	struct ptvm_error error = { 0 };

	assert_int_equal(offsets_recorded_parse((struct bytes){ NULL, 0 }, &recorded, &error),
			 -PTVM_BAD_INPUT);
	assert_memory_equal(error.message, "line 1: ", 8);
	offsets_recorded_free(&recorded);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(offsets_recorded_parse(bytes, &recorded, &error), -PTVM_BAD_INPUT);
	assert_memory_equal(error.message, "line 2: ", 8);
	assert_null(strchr(error.message, '\x1b'));
	offsets_recorded_free(&recorded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vcpus_and_offsets_are_read),
		cmocka_unit_test(a_file_that_is_too_large_is_not_read),
		cmocka_unit_test(a_name_has_nothing_that_a_terminal_obeys),
		cmocka_unit_test(what_agrees_is_exact),
		cmocka_unit_test(packets_are_right_against_records),
		cmocka_unit_test(records_alone_make_segments),
		cmocka_unit_test(a_ratio_that_packets_do_not_show_is_taken),
		cmocka_unit_test(what_was_recorded_is_better_than_an_estimate),
		cmocka_unit_test(of_two_guests_an_estimate_stays),
		cmocka_unit_test(of_two_guests_of_a_thread_only_what_packets_confirm_is_used),
		cmocka_unit_test(the_same_in_other_words_is_no_change),
		cmocka_unit_test(other_shapes_record_nothing),
		cmocka_unit_test(what_is_no_json_is_an_error),
		cmocka_unit_test(what_is_no_json_is_told_by_line_and_in_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
