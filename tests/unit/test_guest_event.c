#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/perf/perf_data.h"
#include "host/record/guest_event.h"
#include "tests/fake_tree.h"

enum { VM = 500 };

static const struct pt_pmu pmu = { .type = 8 };

/* A recording of the event and the records that tell of its ids. */
static void write_recording(const struct fake_tree *tree, const struct guest_event *event,
			    const char *path)
{
	const struct recording_event described = guest_event_describe(event);
	const struct recording_start start = { .ids = event->all,
					       .id_count = event->count,
					       .pmu = &pmu };
	struct recording_out out = { 0 };

	assert_int_equal(recording_out_create(&out, path, &described, 1, NULL), 0);
	assert_int_equal(recording_start_write(&tree->roots, &start, &out, NULL), 0);
	assert_int_equal(recording_out_finish(&out, NULL, 0, NULL), 0);
	recording_out_close(&out);
}

static void a_reader_learns_which_thread_runs_which_vcpu(void **state)
{
	const struct guest_vcpu vcpus[] = { { VM, 501, 0 }, { VM, 502, 1 }, { 600, 601, 0 } };
	struct guest_event event = { 0 };
	struct perf_data data = { 0 };
	struct fake_tree tree;
	char path[128];

	fake_tree_init(&tree);
	(void)snprintf(path, sizeof(path), "%s/data", tree.path);
	assert_int_equal(guest_event_make(true, vcpus, 3, &event), 0);
	write_recording(&tree, &event, path);
	assert_int_equal(perf_data_open(path, &data, NULL), 0);
	assert_int_equal(data.events.items[0].id_count, 3);
	assert_int_equal(data.events.items[0].flags, 1 << 18 | 1 << 19 | 1 << 5 | 1 << 6);
	assert_int_equal(data.events.items[0].read_format, 4 | 16);
	assert_int_equal(data.id_index.count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct perf_id_entry *entry = &data.id_index.items[i];

		assert_int_equal(entry->id, data.events.items[0].ids[i]);
		assert_int_equal(entry->machine_pid, vcpus[i].machine_pid);
		assert_int_equal(entry->tid, vcpus[i].tid);
		assert_int_equal(entry->vcpu, vcpus[i].index);
		assert_int_equal(entry->cpu, -1);
	}
	perf_data_close(&data);
	guest_event_free(&event);
	fake_tree_deinit(&tree);
}

static void without_guests_it_has_no_ids(void **state)
{
	struct guest_event event = { 0 };

	assert_int_equal(guest_event_make(false, NULL, 0, &event), 0);
	assert_int_equal(guest_event_describe(&event).id_count, 0);
	guest_event_free(&event);
	guest_event_free(&event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_learns_which_thread_runs_which_vcpu),
		cmocka_unit_test(without_guests_it_has_no_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
