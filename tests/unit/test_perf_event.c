#include "decode/perf/perf_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/vec.h"

enum { FILE_SIZE = 1 << 10, ATTR = 136 };

/* A recording whose file has room for 128 ids. */
static int set_up(void **state)
{
	struct perf_data *data = calloc(1, sizeof(*data));

	assert_non_null(data);
	data->file.size = FILE_SIZE;
	*state = data;
	return 0;
}

static int tear_down(void **state)
{
	struct perf_data *data = *state;

	vec_free(&data->events);
	vec_free(&data->ids);
	vec_free(&data->id_index);
	arena_free(&data->arena);
	free(data);
	return 0;
}

/* An attr that says to be of `size` bytes, and of which each byte behind that is 0xff. */
static struct bytes make_attr(uint8_t attr[ATTR], uint32_t size)
{
	memset(attr, 0, ATTR);
	if (size < ATTR)
		memset(attr + size, 0xff, ATTR - size);
	memcpy(attr + 4, &size, 4);
	return (struct bytes){ attr, ATTR };
}

static void add_event(struct perf_data *data, uint32_t type, const uint64_t *ids, size_t count)
{
	uint8_t bytes[ATTR];
	struct bytes attr = make_attr(bytes, 128);

	memcpy(bytes, &type, 4);
	assert_int_equal(
		perf_event_add(data, attr, (struct bytes){ (const uint8_t *)ids, 8 * count }), 128);
	/* The attr is the caller's. */
	data->events.items[data->events.count - 1].attr = (struct bytes){ NULL, 0 };
}

static void an_attr_says_its_own_size(void **state)
{
	static const struct {
		uint32_t says, is;
	} cases[] = { { 0, 64 },    { 1, 0 },       { 63, 0 },   { 64, 64 },       { 128, 128 },
		      { 136, 136 }, { 4096, 4096 }, { 4097, 0 }, { UINT32_MAX, 0 } };
	static uint8_t attr[8192];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(attr + 4, &cases[i].says, 4);
		assert_int_equal(perf_event_attr_size((struct bytes){ attr, sizeof(attr) }),
				 cases[i].is);
	}
}

static void an_attr_must_be_all_there(void **state)
{
	uint8_t bytes[ATTR];
	struct bytes attr = make_attr(bytes, 72);

	assert_int_equal(perf_event_attr_size((struct bytes){ attr.data, 72 }), 72);
	assert_int_equal(perf_event_attr_size((struct bytes){ attr.data, 71 }), 0);
	assert_int_equal(perf_event_attr_size((struct bytes){ attr.data, 7 }), 0);
	assert_int_equal(perf_event_attr_size((struct bytes){ NULL, 0 }), 0);
	assert_int_equal(
		perf_event_add(*state, (struct bytes){ attr.data, 71 }, (struct bytes){ NULL, 0 }),
		-PTVM_BAD_INPUT);
	assert_int_equal(((struct perf_data *)*state)->events.count, 0);
}

static void put(uint8_t *attr, unsigned offset, uint64_t value)
{
	memcpy(attr + offset, &value, 8);
}

static void fields_are_where_the_kernel_has_them(void **state)
{
	struct perf_data *data = *state;
	const struct perf_event *event;
	uint8_t bytes[ATTR];
	struct bytes attr = make_attr(bytes, 128);

	memcpy(bytes, &(uint32_t){ 8 }, 4);
	for (unsigned offset = 8; offset <= 96; offset += 8)
		put(bytes, offset, offset);
	assert_int_equal(perf_event_add(data, attr, (struct bytes){ NULL, 0 }), 128);
	event = &data->events.items[0];
	assert_int_equal(event->type, 8);
	assert_int_equal(event->config, 8);
	assert_int_equal(event->sample_period, 16);
	assert_int_equal(event->sample_type, 24);
	assert_int_equal(event->read_format, 32);
	assert_int_equal(event->flags, 40);
	assert_int_equal(event->branch_sample_type, 72);
	assert_int_equal(event->sample_regs_user, 80);
	assert_int_equal(event->sample_regs_intr, 96);
	assert_string_equal(event->name, "");
	assert_int_equal(event->id_count, 0);
	assert_false(event->is_pt);
	assert_int_equal(event->attr.size, 128);
}

/* What follows an old, short attr is something else. */
static void what_an_old_attr_does_not_have_is_zero(void **state)
{
	struct perf_data *data = *state;
	uint8_t bytes[ATTR];

	assert_int_equal(perf_event_add(data, make_attr(bytes, 0), (struct bytes){ NULL, 0 }), 64);
	assert_int_equal(perf_event_add(data, make_attr(bytes, 72), (struct bytes){ NULL, 0 }), 72);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(data->events.items[i].branch_sample_type, 0);
		assert_int_equal(data->events.items[i].sample_regs_user, 0);
		assert_int_equal(data->events.items[i].sample_regs_intr, 0);
	}
}

static void ids_are_copied_from_any_place(void **state)
{
	struct perf_data *data = *state;
	uint8_t bytes[ATTR], odd[1 + 2 * 8 + 7] = { 0 };
	struct bytes attr = make_attr(bytes, 128);

	put(odd, 1, 5);
	put(odd, 9, 6);
	assert_int_equal(perf_event_add(data, attr, (struct bytes){ odd + 1, sizeof(odd) - 1 }),
			 128);
	memset(odd, 0, sizeof(odd));
	assert_int_equal(data->events.items[0].id_count, 2);
	assert_int_equal(data->events.items[0].ids[0], 5);
	assert_int_equal(data->events.items[0].ids[1], 6);
	assert_int_equal(data->id_total, 2);
}

/* Events that all point to the same list of ids would make a small file take much memory. */
static void there_are_no_more_ids_than_the_file_has_room_for(void **state)
{
	static const uint64_t ids[FILE_SIZE / 8 + 1];
	struct perf_data *data = *state;

	add_event(data, 1, ids, FILE_SIZE / 8 - 1);
	add_event(data, 1, ids, 2);
	add_event(data, 1, ids, 1);
	add_event(data, 1, ids, 1);
	assert_int_equal(data->events.count, 4);
	assert_int_equal(data->events.items[0].id_count, FILE_SIZE / 8 - 1);
	assert_int_equal(data->events.items[1].id_count, 0);
	assert_int_equal(data->events.items[2].id_count, 1);
	assert_int_equal(data->events.items[3].id_count, 0);
}

static void ids_lead_to_their_events(void **state)
{
	static const uint64_t first[] = { 30, UINT64_MAX, 10 }, second[] = { 20, 0 };
	struct perf_data *data = *state;

	add_event(data, 1, first, 3);
	add_event(data, 2, second, 2);
	assert_null(perf_event_find_id(data, 10));
	assert_int_equal(perf_event_index_ids(data), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(perf_event_find_id(data, first[i])->event, 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(perf_event_find_id(data, second[i])->event, 1);
	assert_int_equal(perf_event_find_id(data, 20)->index, -1);
	assert_int_equal(perf_event_find_id(data, 20)->machine_pid, 0);
	for (uint64_t id = 1; id < 40; id++)
		if (id % 10)
			assert_null(perf_event_find_id(data, id));
	assert_null(perf_event_find_id(data, UINT64_MAX - 1));
}

static void an_id_of_two_events_is_the_first_ones(void **state)
{
	static const uint64_t ids[] = { 7 };
	struct perf_data *data = *state;

	for (uint32_t i = 0; i < 20; i++)
		add_event(data, i, ids, 1);
	assert_int_equal(perf_event_index_ids(data), 0);
	assert_int_equal(perf_event_find_id(data, 7)->event, 0);
}

static void an_event_is_named_by_any_of_its_ids(void **state)
{
	static const uint64_t first[] = { 1, 2 }, second[] = { 3 };
	struct perf_data *data = *state;

	add_event(data, 1, first, 2);
	add_event(data, 2, second, 1);
	assert_int_equal(perf_event_index_ids(data), 0);
	perf_event_name(data, 2, "cycles");
	perf_event_name(data, 4, "nobody");
	assert_string_equal(data->events.items[0].name, "cycles");
	assert_string_equal(data->events.items[1].name, "");
}

static void the_index_tells_the_machine_and_the_queue_of_an_id(void **state)
{
	static const uint64_t ids[] = { 1, 2, 3, 4 };
	static const struct perf_id_entry entries[] = {
		{ .id = 9, .idx = 1, .machine_pid = 1 },
		{ .id = 1, .idx = 0, .machine_pid = 4711 },
		{ .id = 2, .idx = (1 << 20) - 1 },
		{ .id = 3, .idx = 1 << 20 },
		{ .id = 4, .idx = -2, .machine_pid = 5 },
	};
	static const int32_t queues[] = { 0, (1 << 20) - 1, -1, -1 };
	static const int32_t machines[] = { 4711, 0, 0, 5 };
	struct perf_data *data = *state;

	add_event(data, 1, ids, 4);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		assert_true(vec_push(&data->id_index, entries[i]));
	assert_int_equal(perf_event_index_ids(data), 0);
	assert_int_equal(data->ids.count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(perf_event_find_id(data, ids[i])->index, queues[i]);
		assert_int_equal(perf_event_find_id(data, ids[i])->machine_pid, machines[i]);
	}
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(an_attr_says_its_own_size),
		WITH_FIXTURE(an_attr_must_be_all_there),
		WITH_FIXTURE(fields_are_where_the_kernel_has_them),
		WITH_FIXTURE(what_an_old_attr_does_not_have_is_zero),
		WITH_FIXTURE(ids_are_copied_from_any_place),
		WITH_FIXTURE(there_are_no_more_ids_than_the_file_has_room_for),
		WITH_FIXTURE(ids_lead_to_their_events),
		WITH_FIXTURE(an_id_of_two_events_is_the_first_ones),
		WITH_FIXTURE(an_event_is_named_by_any_of_its_ids),
		WITH_FIXTURE(the_index_tells_the_machine_and_the_queue_of_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
