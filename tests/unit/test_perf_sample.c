#include "decode/perf/perf_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/error.h"

enum { MOST_WORDS = 64 };

/* A sample's body as it grows, and the same in memory of just its size. */
struct body {
	uint64_t words[MOST_WORDS];
	size_t count;
	uint8_t *exact;
};

static void add(struct body *body, uint64_t word)
{
	assert_true(body->count < MOST_WORDS);
	body->words[body->count++] = word;
}

/* The first `size` bytes. */
static struct bytes cut(struct body *body, size_t size)
{
	free(body->exact);
	body->exact = malloc(size ? size : 1);
	assert_non_null(body->exact);
	memcpy(body->exact, body->words, size);
	return (struct bytes){ body->exact, size };
}

static struct bytes all(struct body *body)
{
	return cut(body, 8 * body->count);
}

static void drop(struct body *body)
{
	free(body->exact);
	*body = (struct body){ 0 };
}

static struct perf_event event_of(uint64_t sample_type)
{
	return (struct perf_event){ .sample_type = sample_type, .flags = PERF_FLAG_SAMPLE_ID_ALL };
}

static void the_front_is_in_the_kernels_order(void **state)
{
	const struct perf_event event = event_of(
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		PERF_SAMPLE_ADDR | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD);
	struct perf_sample sample;
	struct body body = { 0 };

	add(&body, 91);
	add(&body, 0xffffffff81000000);
	add(&body, 12 | 13ull << 32);
	add(&body, 1000);
	add(&body, 0x1234);
	add(&body, 55); /* stream */
	add(&body, 3 | 0xfull << 32);
	add(&body, 7);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.id, 91);
	assert_int_equal(sample.ip, 0xffffffff81000000);
	assert_int_equal(sample.pid, 12);
	assert_int_equal(sample.tid, 13);
	assert_int_equal(sample.time, 1000);
	assert_int_equal(sample.address, 0x1234);
	assert_int_equal(sample.cpu, 3);
	assert_int_equal(sample.period, 7);
	drop(&body);
}

static void what_is_not_recorded_is_zero_or_unknown(void **state)
{
	const struct perf_event event = event_of(0);
	struct perf_sample sample;
	struct body body = { 0 };

	memset(&sample, 0xff, sizeof(sample));
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.pid, -1);
	assert_int_equal(sample.tid, -1);
	assert_int_equal(sample.cpu, -1);
	assert_true(!sample.ip && !sample.time && !sample.address && !sample.id && !sample.period);
	assert_true(!sample.raw.size && !sample.aux.size);
	assert_true(!sample.callchain.size && !sample.branches.size);
	drop(&body);
}

/* Words that the kernel writes for a read_format, with `members` in the group. */
static size_t read_words(uint64_t format, size_t members)
{
	const bool enabled = format & 1, running = format & 2, id = format & 4,
		   is_group = format & 8, lost = format & 16;
	const size_t each = 1u + id + lost;

	return enabled + (size_t)running + (is_group ? 1 + members * each : each);
}

static void counters_of_any_format_are_stepped_over(void **state)
{
	enum { MEMBERS = 3, ADDRESS = 0x77 };

	for (uint64_t format = 0; format < 32; format++) {
		struct perf_event event = event_of(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN);
		const size_t words = read_words(format, MEMBERS);
		struct perf_sample sample;
		struct body body = { 0 };

		event.read_format = format;
		for (size_t i = 0; i < words; i++)
			add(&body, format & 8 ? MEMBERS : 1000);
		add(&body, 1);
		add(&body, ADDRESS);
		assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
		assert_int_equal(sample.callchain.size, 8);
		assert_int_equal(load_le(sample.callchain.data, 8), ADDRESS);
		drop(&body);
	}
}

static void registers_are_there_when_their_abi_is(void **state)
{
	struct perf_event event = event_of(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |
					   PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_AUX);
	struct perf_sample sample;
	struct body body = { 0 };

	event.sample_regs_user = 0x8000000000000005;
	event.sample_regs_intr = 0x3;
	add(&body, 2); /* abi, then three registers */
	for (unsigned i = 0; i < 3; i++)
		add(&body, 100);
	add(&body, 1); /* abi, then two */
	add(&body, 100);
	add(&body, 100);
	add(&body, 200); /* physical address */
	add(&body, 8);
	add(&body, 0xaaaa);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.aux.size, 8);
	assert_int_equal(load_le(sample.aux.data, 8), 0xaaaa);
	drop(&body);
	add(&body, 0);
	add(&body, 0);
	add(&body, 200);
	add(&body, 8);
	add(&body, 0xbbbb);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.aux.size, 8);
	assert_int_equal(load_le(sample.aux.data, 8), 0xbbbb);
	drop(&body);
}

static void a_stack_is_followed_by_its_true_size(void **state)
{
	const struct perf_event event = event_of(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX);
	struct perf_sample sample;
	struct body body = { 0 };

	add(&body, 16);
	add(&body, 1);
	add(&body, 2);
	add(&body, 9); /* that much of it was written */
	add(&body, 8);
	add(&body, 0xcc);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(load_le(sample.aux.data, 8), 0xcc);
	drop(&body);
	add(&body, 0);
	add(&body, 8);
	add(&body, 0xdd);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(load_le(sample.aux.data, 8), 0xdd);
	drop(&body);
}

static void raw_data_end_where_their_size_says(void **state)
{
	const struct perf_event event = event_of(PERF_SAMPLE_RAW | PERF_SAMPLE_AUX);
	struct perf_sample sample;
	struct body body = { 0 };

	add(&body, 12 | 0x11111111ull << 32);
	add(&body, 0x2222222222222222);
	add(&body, 8);
	add(&body, 0xee);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.raw.size, 12);
	assert_memory_equal(sample.raw.data, "\x11\x11\x11\x11\x22\x22\x22\x22\x22\x22\x22\x22",
			    12);
	assert_int_equal(load_le(sample.aux.data, 8), 0xee);
	drop(&body);
}

static void branches_may_have_an_index_before_them(void **state)
{
	struct perf_event event = event_of(PERF_SAMPLE_BRANCH_STACK);

	for (unsigned has_index = 0; has_index < 2; has_index++) {
		struct perf_sample sample;
		struct body body = { 0 };

		event.branch_sample_type = (uint64_t)has_index << 17;
		add(&body, 2);
		if (has_index)
			add(&body, 999);
		for (unsigned i = 0; i < 6; i++)
			add(&body, 0x10 + i);
		assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
		assert_int_equal(sample.branches.size, 48);
		assert_int_equal(load_le(sample.branches.data, 8), 0x10);
		drop(&body);
	}
}

/* A counter for each of them. */
static void branches_may_have_counters_behind_them(void **state)
{
	struct perf_event event = event_of(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_AUX);
	struct perf_sample sample;
	struct body body = { 0 };

	event.branch_sample_type = 1 << 19;
	add(&body, 2);
	for (uint64_t i = 0; i < 2 * 3 + 2; i++)
		add(&body, 0x10 + i);
	add(&body, 8);
	add(&body, 0xabc);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.branches.size, 48);
	assert_int_equal(sample.aux.size, 8);
	assert_int_equal(load_le(sample.aux.data, 8), 0xabc);
	drop(&body);
}

/* WEIGHT and WEIGHT_STRUCT are two readings of one word. */
static void each_field_behind_is_one_word(void **state)
{
	static const uint64_t fields[] = { PERF_SAMPLE_WEIGHT,
					   PERF_SAMPLE_WEIGHT_STRUCT,
					   PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT,
					   PERF_SAMPLE_DATA_SRC,
					   PERF_SAMPLE_TRANSACTION,
					   PERF_SAMPLE_PHYS_ADDR,
					   PERF_SAMPLE_CGROUP,
					   PERF_SAMPLE_DATA_PAGE_SIZE,
					   PERF_SAMPLE_CODE_PAGE_SIZE };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct perf_event event = event_of(fields[i] | PERF_SAMPLE_AUX);
		struct perf_sample sample;
		struct body body = { 0 };

		add(&body, 1000);
		add(&body, 8);
		add(&body, 0x99);
		assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
		assert_int_equal(sample.aux.size, 8);
		assert_int_equal(load_le(sample.aux.data, 8), 0x99);
		drop(&body);
	}
}

/* DATA_SRC (0 here) before the interrupt's registers, PHYS_ADDR after them: in the other order the
 * registers would be taken for trace. */
static void the_interrupts_registers_lie_between_the_words(void **state)
{
	struct perf_event event = event_of(PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_REGS_INTR |
					   PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_AUX);
	struct perf_sample sample;
	struct body body = { 0 };

	event.sample_regs_intr = 1;
	add(&body, 0);
	add(&body, 2);
	add(&body, 70);
	add(&body, 0);
	add(&body, 8);
	add(&body, 0x42);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.aux.size, 8);
	assert_int_equal(load_le(sample.aux.data, 8), 0x42);
	drop(&body);
}

/* One of each: counters, callchain, raw data, branches, registers, stack, words and trace. */
static struct perf_event event_of_everything(struct body *body)
{
	static const uint64_t words[] = {
		0x100,
		0x101,
		0x102,
		0x103,
		0x104,
		0x105,
		0x106,
		0x107,
		0x108, /* IDENTIFIER to PERIOD */
		1000,  /* the counter */
		1,
		0x200,               /* callchain */
		4 | 0xabcdull << 32, /* raw data */
		1,
		0x210,
		0x220,
		0x230, /* branches */
		1,
		0x300, /* the user's registers */
		8,
		0x400,
		8, /* stack */
		0x410,
		0x420,
		0x430,
		1,
		0x500, /* the interrupt's registers */
		0x600,
		0x610,
		0x620,
		0x630,
		16,
		0x700,
		0x710, /* trace */
	};
	struct perf_event event = event_of(PERF_SAMPLE_KNOWN);

	event.sample_regs_user = event.sample_regs_intr = 1;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		add(body, words[i]);
	return event;
}

static void a_sample_of_everything_is_read_to_its_end(void **state)
{
	struct body body = { 0 };
	const struct perf_event event = event_of_everything(&body);
	struct perf_sample sample;
	struct bytes bytes = all(&body);

	assert_int_equal(perf_sample_read(&event, bytes, &sample), 0);
	assert_int_equal(sample.id, 0x105);
	assert_int_equal(sample.period, 0x108);
	assert_int_equal(sample.callchain.size, 8);
	assert_int_equal(sample.raw.size, 4);
	assert_int_equal(sample.branches.size, 24);
	assert_int_equal(sample.aux.size, 16);
	assert_ptr_equal(sample.aux.data + 16, bytes.data + bytes.size);
	drop(&body);
}

static void a_sample_cut_anywhere_is_refused(void **state)
{
	struct body body = { 0 };
	const struct perf_event event = event_of_everything(&body);
	struct perf_sample sample;

	for (size_t size = 0; size < 8 * body.count; size++) {
		assert_int_equal(perf_sample_read(&event, cut(&body, size), &sample),
				 -PTVM_BAD_INPUT);
		assert_int_equal(sample.ip, size < 16 ? 0 : 0x101);
		assert_int_equal(sample.pid, size < 24 ? -1 : 0x102);
		assert_int_equal(sample.cpu, size < 64 ? -1 : 0x107);
	}
	drop(&body);
}

/* A count that the sample cannot hold, also one whose size in bytes wraps. */
static void impossible_counts_give_nothing(void **state)
{
	static const uint64_t counts[] = { 3, 1ull << 61, UINT64_MAX };
	static const uint64_t types[] = { PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (size_t k = 0; k < 2; k++) {
			const struct perf_event event = event_of(types[k]);
			struct perf_sample sample;
			struct body body = { 0 };

			add(&body, counts[i]);
			add(&body, 1);
			assert_int_equal(perf_sample_read(&event, all(&body), &sample),
					 -PTVM_BAD_INPUT);
			assert_int_equal(sample.branches.size, 0);
			drop(&body);
		}
}

/* Where one field ends is where the next begins: what is there is not what it would be. */
static void behind_an_impossible_count_there_is_nothing(void **state)
{
	const struct perf_event event = event_of(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_AUX);
	struct perf_sample sample;
	struct body body = { 0 };

	add(&body, UINT64_MAX);
	add(&body, 8);
	add(&body, 0x8282828282828282);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), -PTVM_BAD_INPUT);
	assert_int_equal(sample.aux.size, 0);
	drop(&body);
}

static void an_impossible_group_is_refused(void **state)
{
	struct perf_event event = event_of(PERF_SAMPLE_READ);
	struct perf_sample sample;
	struct body body = { 0 };

	event.read_format = 8;
	add(&body, 1ull << 61);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), -PTVM_BAD_INPUT);
	drop(&body);
}

static void with_unknown_fields_only_the_front_is_sure(void **state)
{
	const struct perf_event event =
		event_of(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | 1ull << 25);
	struct perf_sample sample;
	struct body body = { 0 };

	add(&body, 0x10);
	add(&body, 1);
	add(&body, 0x20);
	assert_int_equal(perf_sample_read(&event, all(&body), &sample), -PTVM_BAD_INPUT);
	assert_int_equal(sample.ip, 0x10);
	assert_int_equal(sample.callchain.size, 0);
	drop(&body);
}

static const uint64_t trailer_fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				       PERF_SAMPLE_IDENTIFIER;

/* Of all fields, behind a word of the record. */
static void make_trailer(struct body *body)
{
	add(body, 0xdead);
	add(body, 21 | 22ull << 32);
	add(body, 2000);
	add(body, 31); /* ID */
	add(body, 32); /* stream */
	add(body, 4 | 5ull << 32);
	add(body, 33); /* IDENTIFIER */
}

static void a_trailer_is_at_the_end_of_its_record(void **state)
{
	const struct perf_event event = event_of(trailer_fields | PERF_SAMPLE_IP | PERF_SAMPLE_RAW);
	struct perf_sample sample;
	struct body body = { 0 };

	make_trailer(&body);
	assert_int_equal(perf_trailer_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.pid, 21);
	assert_int_equal(sample.tid, 22);
	assert_int_equal(sample.time, 2000);
	assert_int_equal(sample.cpu, 4);
	assert_int_equal(sample.id, 33);
	assert_int_equal(sample.ip, 0);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 33);
	drop(&body);
}

static void a_trailer_of_few_fields_is_short(void **state)
{
	const struct perf_event event = event_of(PERF_SAMPLE_TIME | PERF_SAMPLE_ID);
	struct perf_sample sample;
	struct body body = { 0 };

	add(&body, 1);
	add(&body, 3000);
	add(&body, 44);
	assert_int_equal(perf_trailer_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.time, 3000);
	assert_int_equal(sample.id, 44);
	assert_int_equal(sample.pid, -1);
	assert_int_equal(sample.tid, -1);
	assert_int_equal(sample.cpu, -1);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 44);
	drop(&body);
}

static void only_events_that_say_so_have_trailers(void **state)
{
	struct perf_event event = event_of(trailer_fields);
	struct perf_sample sample;
	struct body body = { 0 };

	event.flags = ~(uint64_t)PERF_FLAG_SAMPLE_ID_ALL;
	make_trailer(&body);
	assert_int_equal(perf_trailer_read(&event, all(&body), &sample), 0);
	assert_int_equal(sample.pid, -1);
	assert_int_equal(sample.time | sample.id, 0);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 0);
	drop(&body);
}

static void a_record_shorter_than_its_trailer_is_refused(void **state)
{
	const struct perf_event event = event_of(trailer_fields);
	struct perf_sample sample;
	struct body body = { 0 };

	make_trailer(&body);
	for (size_t size = 0; size < 48; size++) {
		assert_int_equal(perf_trailer_read(&event, cut(&body, size), &sample),
				 -PTVM_BAD_INPUT);
		assert_int_equal(sample.pid, -1);
		assert_int_equal(sample.time, 0);
	}
	assert_int_equal(perf_trailer_read(&event, cut(&body, 48), &sample), 0);
	drop(&body);
}

/* Looked for before it is known whose sample it is. */
static void the_id_of_a_sample_comes_after_what_is_before_it(void **state)
{
	struct body body = { 0 };
	struct perf_event event;

	for (unsigned i = 0; i < 6; i++)
		add(&body, 50 + i);
	event = event_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID | PERF_SAMPLE_IP);
	assert_int_equal(perf_sample_id(&event, all(&body)), 50);
	event = event_of(PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD);
	assert_int_equal(perf_sample_id(&event, all(&body)), 50);
	event = event_of(PERF_SAMPLE_ID | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	assert_int_equal(perf_sample_id(&event, all(&body)), 52);
	event = event_of(PERF_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			 PERF_SAMPLE_ADDR);
	assert_int_equal(perf_sample_id(&event, all(&body)), 54);
	assert_int_equal(perf_sample_id(&event, cut(&body, 39)), 0);
	event = event_of(PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	assert_int_equal(perf_sample_id(&event, all(&body)), 0);
	drop(&body);
}

static void the_id_of_a_trailer_is_counted_from_the_end(void **state)
{
	struct body body = { 0 };
	struct perf_event event;

	for (unsigned i = 0; i < 6; i++)
		add(&body, 50 + i);
	event = event_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CPU);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 55);
	event = event_of(PERF_SAMPLE_ID | PERF_SAMPLE_TIME);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 55);
	event = event_of(PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_TIME);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 54);
	event = event_of(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 53);
	assert_int_equal(perf_trailer_id(&event, cut(&body, 24)), 50);
	assert_int_equal(perf_trailer_id(&event, cut(&body, 23)), 0);
	event = event_of(PERF_SAMPLE_TID);
	assert_int_equal(perf_trailer_id(&event, all(&body)), 0);
	drop(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_front_is_in_the_kernels_order),
		cmocka_unit_test(what_is_not_recorded_is_zero_or_unknown),
		cmocka_unit_test(counters_of_any_format_are_stepped_over),
		cmocka_unit_test(registers_are_there_when_their_abi_is),
		cmocka_unit_test(a_stack_is_followed_by_its_true_size),
		cmocka_unit_test(raw_data_end_where_their_size_says),
		cmocka_unit_test(branches_may_have_an_index_before_them),
		cmocka_unit_test(branches_may_have_counters_behind_them),
		cmocka_unit_test(each_field_behind_is_one_word),
		cmocka_unit_test(the_interrupts_registers_lie_between_the_words),
		cmocka_unit_test(a_sample_of_everything_is_read_to_its_end),
		cmocka_unit_test(a_sample_cut_anywhere_is_refused),
		cmocka_unit_test(impossible_counts_give_nothing),
		cmocka_unit_test(behind_an_impossible_count_there_is_nothing),
		cmocka_unit_test(an_impossible_group_is_refused),
		cmocka_unit_test(with_unknown_fields_only_the_front_is_sure),
		cmocka_unit_test(a_trailer_is_at_the_end_of_its_record),
		cmocka_unit_test(a_trailer_of_few_fields_is_short),
		cmocka_unit_test(only_events_that_say_so_have_trailers),
		cmocka_unit_test(a_record_shorter_than_its_trailer_is_refused),
		cmocka_unit_test(the_id_of_a_sample_comes_after_what_is_before_it),
		cmocka_unit_test(the_id_of_a_trailer_is_counted_from_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
