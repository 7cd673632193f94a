#include "decode/perf/perf_attr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/printed.h"

enum { ATTR = 136, RESERVED = 110 };

/* An event whose attr is `size` bytes of zeroes but for its size. */
struct bench {
	struct perf_event event;
	uint8_t *attr;
	struct printed printed;
};

static void make(struct bench *bench, uint32_t size)
{
	free(bench->attr);
	bench->attr = calloc(1, size);
	assert_non_null(bench->attr);
	memcpy(bench->attr + 4, &size, 4);
	memset(bench->attr + 8, 0xff, 40); /* printed as the event has it */
	if (size > RESERVED)
		bench->attr[RESERVED] = 0xff;
	bench->event = (struct perf_event){ .name = "", .attr = { bench->attr, size } };
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	make(bench, ATTR);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	printed_drop(&bench->printed);
	free(bench->attr);
	free(bench);
	return 0;
}

/* Prints the event, of which the size comes first. */
static void assert_text(struct bench *bench, const char *expected)
{
	const char *text;
	char size[40];

	perf_attr_print(&bench->event, printed_begin(&bench->printed));
	text = printed_end(&bench->printed);
	(void)snprintf(size, sizeof(size), ", size = %zu", bench->event.attr.size);
	assert_int_equal(strncmp(text, size, strlen(size)), 0);
	assert_string_equal(text + strlen(size), expected);
}

static void what_is_zero_is_left_out(void **state)
{
	assert_text(*state, "");
}

static void the_event_comes_before_its_options(void **state)
{
	struct bench *bench = *state;

	bench->event.type = 8;
	bench->event.config = 0x300e601;
	bench->event.sample_period = 1;
	bench->event.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_IDENTIFIER;
	bench->event.read_format = 4;
	bench->event.flags = 1 | PERF_FLAG_SAMPLE_ID_ALL;
	perf_attr_print(&bench->event, printed_begin(&bench->printed));
	assert_string_equal(printed_end(&bench->printed),
			    ", type = 8, size = 136, config = 0x300e601, "
			    "{ sample_period, sample_freq } = 1, sample_type = IP|TID|IDENTIFIER, "
			    "read_format = ID, disabled = 1, sample_id_all = 1");
}

static void the_bits_of_a_sample_are_joined(void **state)
{
	struct bench *bench = *state;

	bench->event.sample_type = PERF_SAMPLE_KNOWN;
	bench->event.read_format = 31;
	assert_text(bench,
		    ", sample_type = IP|TID|TIME|ADDR|READ|CALLCHAIN|ID|CPU|PERIOD|STREAM_ID|"
		    "RAW|BRANCH_STACK|REGS_USER|STACK_USER|WEIGHT|DATA_SRC|IDENTIFIER|"
		    "TRANSACTION|REGS_INTR|PHYS_ADDR|AUX|CGROUP|DATA_PAGE_SIZE|"
		    "CODE_PAGE_SIZE|WEIGHT_STRUCT, "
		    "read_format = TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING|ID|GROUP|LOST");
}

/* Those that came after Linux 6.2 have no names here. */
static void unknown_bits_are_passed_over(void **state)
{
	struct bench *bench = *state;

	bench->event.sample_type = 1ull << 25 | 1ull << 63;
	bench->event.read_format = 1ull << 5 | 1;
	bench->event.flags = 1ull << 38 | 1ull << 63;
	assert_text(bench, ", sample_type = , read_format = TOTAL_TIME_ENABLED");
}

static void each_flag_has_its_name(void **state)
{
	static const struct {
		unsigned bit;
		const char *name;
	} flags[] = { { 1, "inherit" },        { 4, "exclude_user" }, { 6, "exclude_hv" },
		      { 10, "freq" },          { 14, "watermark" },   { 17, "mmap_data" },
		      { 20, "exclude_guest" }, { 23, "mmap2" },       { 26, "context_switch" },
		      { 29, "ksymbol" },       { 33, "text_poke" },   { 37, "sigtrap" } };
	struct bench *bench = *state;
	char text[60];

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		bench->event.flags = 1ull << flags[i].bit;
		(void)snprintf(text, sizeof(text), ", %s = 1", flags[i].name);
		assert_text(bench, text);
	}
}

static void how_precise_an_ip_is_takes_two_bits(void **state)
{
	struct bench *bench = *state;
	char text[40];

	for (unsigned precise = 1; precise < 4; precise++) {
		bench->event.flags = (uint64_t)precise << 15;
		(void)snprintf(text, sizeof(text), ", precise_ip = %u", precise);
		assert_text(bench, text);
	}
}

static void fields_are_where_the_kernel_has_them(void **state)
{
	static const struct {
		unsigned offset, size;
		const char *name;
		bool is_hex;
	} fields[] = {
		{ 48, 4, "{ wakeup_events, wakeup_watermark }", false },
		{ 52, 4, "bp_type", false },
		{ 56, 8, "{ bp_addr, config1 }", true },
		{ 64, 8, "{ bp_len, config2 }", true },
		{ 72, 8, "branch_sample_type", true },
		{ 80, 8, "sample_regs_user", true },
		{ 88, 4, "sample_stack_user", false },
		{ 92, 4, "clockid", false },
		{ 96, 8, "sample_regs_intr", true },
		{ 104, 4, "aux_watermark", false },
		{ 108, 2, "sample_max_stack", false },
		{ 112, 4, "aux_sample_size", false },
		{ 120, 8, "sig_data", false },
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const uint64_t value = 0xabull << 8 * (fields[i].size - 1) | 1;
		char text[100];

		make(bench, ATTR);
		memcpy(bench->attr + fields[i].offset, &value, fields[i].size);
		(void)snprintf(text, sizeof(text), fields[i].is_hex ? ", %s = %#lx" : ", %s = %lu",
			       fields[i].name, value);
		assert_text(bench, text);
	}
}

static void an_old_attr_ends_before_new_fields(void **state)
{
	struct bench *bench = *state;

	make(bench, 64);
	bench->attr[56] = 1;
	assert_text(bench, ", { bp_addr, config1 } = 0x1");
	make(bench, 126); /* ends in a field */
	bench->attr[112] = 2;
	bench->attr[120] = 3;
	assert_text(bench, ", aux_sample_size = 2");
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(what_is_zero_is_left_out),
		WITH_FIXTURE(the_event_comes_before_its_options),
		WITH_FIXTURE(the_bits_of_a_sample_are_joined),
		WITH_FIXTURE(unknown_bits_are_passed_over),
		WITH_FIXTURE(each_flag_has_its_name),
		WITH_FIXTURE(how_precise_an_ip_is_takes_two_bits),
		WITH_FIXTURE(fields_are_where_the_kernel_has_them),
		WITH_FIXTURE(an_old_attr_ends_before_new_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
