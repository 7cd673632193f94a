#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/perf_record.h"
#include "guest/guest_modules.h"
#include "host/record/recording_start.h"
#include "tests/fake_tree.h"

enum { VM = 500, MANY_IDS = 400 };

struct bench {
	struct fake_tree tree;
	struct perf_data data;
	char path[128];
};

static const struct pt_pmu pmu = {
	.type = 8,
	.caps = { [PT_CAP_EVENT_TRACE] = 1 },
	.max_nonturbo_ratio = 28,
	.tsc_ratio = 294,
	.crystal_ratio = 2,
	.terms = { { "cyc", 1, 1 }, { "mtc", 9, 9 }, { "tsc", 10, 10 }, { "mtc_period", 14, 17 } },
	.term_count = 4,
};

static int set_up(void **state)
{
	static struct bench bench;

	memset(&bench, 0, sizeof(bench));
	fake_tree_init(&bench.tree);
	(void)snprintf(bench.path, sizeof(bench.path), "%s/data", bench.tree.path);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	perf_data_close(&bench->data);
	fake_tree_deinit(&bench->tree);
	return 0;
}

/* Write what a recording begins with, and read it. */
static void round_trip(struct bench *bench, struct recording_start *start)
{
	static uint8_t attr[RECORDING_ATTR_SIZE] = { 8, 0, 0, 0, RECORDING_ATTR_SIZE };
	const uint64_t flags = PERF_FLAG_SAMPLE_ID_ALL, config = 1 << 9 | 1 << 10 | 3 << 14;
	const uint64_t sampled = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	const struct recording_event event = { attr, NULL, 0, "intel_pt//" };
	const struct recording_feature none = { 7, "\2\0\0\0\2\0\0\0", 8 };
	struct recording_out out = { 0 };

	memcpy(attr + 8, &config, sizeof(config));
	memcpy(attr + 24, &sampled, sizeof(sampled));
	memcpy(attr + 40, &flags, sizeof(flags));
	start->pmu = &pmu;
	assert_int_equal(recording_out_create(&out, bench->path, &event, 1, NULL), 0);
	assert_int_equal(recording_start_write(&bench->tree.roots, start, &out, NULL), 0);
	assert_int_equal(recording_out_finish(&out, &none, 1, NULL), 0);
	recording_out_close(&out);
	assert_int_equal(perf_data_open(bench->path, &bench->data, NULL), 0);
	assert_null(bench->data.bad_reason);
	assert_int_equal(bench->data.bad_records, 0);
}

/* Record number `nth` of a type. */
static const struct perf_record *record(const struct bench *bench, unsigned type, size_t nth)
{
	for (size_t i = 0; i < bench->data.records.count; i++)
		if (bench->data.records.items[i].type == type && !nth--)
			return &bench->data.records.items[i];
	return NULL;
}

static void how_it_was_traced_is_told(void **state)
{
	struct bench *bench = *state;
	struct recording_start start = { .conv = { true, 31, 1000000, 77 } };
	const struct pt_config *pt = &bench->data.pt;

	round_trip(bench, &start);
	assert_true(bench->data.have_pt);
	assert_true(bench->data.events.items[0].is_pt);
	assert_true(pt->conv.valid && pt->tsc && pt->mtc && pt->per_cpu && pt->have_event_trace);
	assert_false(pt->cyc || pt->noretcomp || pt->snapshot);
	assert_int_equal(pt->conv.shift, 31);
	assert_int_equal(pt->conv.mult, 1000000);
	assert_int_equal(pt->conv.zero, 77);
	assert_int_equal(pt->mtc_shift, 3);
	assert_int_equal(pt->ctc_n, 294);
	assert_int_equal(pt->ctc_d, 2);
	assert_int_equal(pt->max_nonturbo, 28);
	assert_int_equal(pt->have_sched_switch, 3);
}

static void filters_are_told(void **state)
{
	static const char *const filters[] = { "filter 0x1/0x2", "filter 0x10/0x2",
					       "filter 0x100/0x2" };
	struct bench *bench = *state;
	char longest[300] = { 0 };

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		struct recording_start start = { .filter = filters[i] };

		round_trip(bench, &start);
		assert_string_equal(bench->data.pt.filter, filters[i]);
		assert_true(bench->data.pt.have_event_trace);
		perf_data_close(&bench->data);
		assert_int_equal(unlink(bench->path), 0);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	round_trip(bench, &(struct recording_start){ .filter = longest });
	assert_int_equal(strlen(bench->data.pt.filter), sizeof(bench->data.pt.filter) - 1);
	assert_true(bench->data.pt.have_event_trace);
	perf_data_close(&bench->data);
	assert_int_equal(unlink(bench->path), 0);
	round_trip(bench, &(struct recording_start){ 0 });
}

static void threads_and_snapshots_are_told(void **state)
{
	struct bench *bench = *state;
	struct recording_start start = { .is_snapshot = true, .is_per_thread = true };

	round_trip(bench, &start);
	assert_true(bench->data.pt.snapshot);
	assert_false(bench->data.pt.per_cpu || bench->data.pt.conv.valid);
	assert_int_equal(bench->data.pt.have_sched_switch, 0);
}

static void ids_name_queues_and_guests(void **state)
{
	static struct start_id ids[MANY_IDS];
	struct bench *bench = *state;
	struct recording_start start = { .ids = ids, .id_count = MANY_IDS };
	const struct perf_id_entry *last;

	for (int i = 0; i < MANY_IDS; i++)
		ids[i] = (struct start_id){ 1000 + (unsigned)i, (unsigned)i, i, -1, 0, -1 };
	ids[MANY_IDS - 1] = (struct start_id){ 9999, 0, -1, 501, VM, 2 };
	round_trip(bench, &start);
	assert_int_equal(bench->data.id_index.count, MANY_IDS);
	assert_int_equal(bench->data.id_index.items[7].idx, 7);
	assert_int_equal(bench->data.id_index.items[7].tid, -1);
	assert_int_equal(bench->data.id_index.items[7].vcpu, -1);
	last = &bench->data.id_index.items[MANY_IDS - 1];
	assert_int_equal(last->id, 9999);
	assert_int_equal(last->cpu, -1);
	assert_int_equal(last->tid, 501);
	assert_int_equal(last->machine_pid, VM);
	assert_int_equal(last->vcpu, 2);
}

static void assert_map(const struct perf_record *found, uint64_t start, uint64_t size,
		       uint64_t offset, const char *name)
{
	struct perf_mmap map;

	assert_non_null(found);
	assert_int_equal(perf_mmap_read(found, &map), 0);
	assert_int_equal(map.start, start);
	assert_int_equal(map.size, size);
	assert_int_equal(map.page_offset, offset);
	assert_string_equal(map.filename, name);
}

static void the_kernel_and_its_modules_are_mapped(void **state)
{
	struct bench *bench = *state;
	struct recording_start start = { .is_snapshot = false };

	fake_tree_file(&bench->tree,
		       "ffffffff81000000 T _text\nffffffff81000040 T _stext\n"
		       "ffffffff82000000 T _etext\nffffffff83000000 D _edata\n",
		       "proc/kallsyms");
	fake_tree_file(&bench->tree,
		       "kvm_intel 380928 4 - Live 0xffffffffc0a00000\n"
		       "hidden 4096 0 - Live 0x0000000000000000\nshort\n"
		       "kvm 1142784 1 kvm_intel, Live 0xffffffffc0800000 (OE)\n",
		       "proc/modules");
	round_trip(bench, &start);
	assert_map(record(bench, PERF_MMAP, 0), 0xffffffff81000000, 0x2000000, 0xffffffff81000000,
		   "[kernel.kallsyms]_text");
	assert_map(record(bench, PERF_MMAP, 1), 0xffffffffc0a00000, 380928, 0, "[kvm_intel]");
	assert_map(record(bench, PERF_MMAP, 2), 0xffffffffc0800000, 1142784, 0, "[kvm]");
	assert_null(record(bench, PERF_MMAP, 3));
	assert_int_equal(record(bench, PERF_MMAP, 0)->misc, PERF_CPUMODE_KERNEL);
}

static void a_kernel_that_hides_is_left_out(void **state)
{
	struct bench *bench = *state;
	struct recording_start start = { .is_snapshot = false };

	fake_tree_file(&bench->tree, "0000000000000000 T _text\n0000000000000000 D _edata\n",
		       "proc/kallsyms");
	round_trip(bench, &start);
	assert_null(record(bench, PERF_MMAP, 0));
}

static void the_kernels_of_guests_are_mapped(void **state)
{
	struct bench *bench = *state;
	char directory[128], nowhere[] = "/nonexistent";
	struct guest_module known[] = { { .name = "known", .path = "/lib/modules/known.ko" } };
	const struct guest_modules modules = { .items = known, .count = 1 };
	const struct start_guest guests[] = { { VM, directory, &modules },
					      { VM + 1, nowhere, NULL } };
	struct recording_start start = { .guests = guests, .guest_count = 2 };

	(void)snprintf(directory, sizeof(directory), "%s/kcore_dir__500", bench->tree.path);
	fake_tree_file(&bench->tree,
		       "ffffffff96000000 T _stext\nffffffff97000000 T _etext\n"
		       "ffffffff98000000 D _edata\n",
		       "kcore_dir__500/kallsyms");
	fake_tree_file(&bench->tree,
		       "virtio 4096 0 - Live 0xffffffffc0a00000\n"
		       "known 8192 0 - Live 0xffffffffc0a01000\n"
		       "\033[2J 4096 0 - Live 0xffffffffc0b00000\n"
		       "b/../ad 4096 0 - Live 0xffffffffc0c00000\n",
		       "kcore_dir__500/modules");
	round_trip(bench, &start);
	assert_map(record(bench, PERF_MMAP, 0), 0xffffffffc0a00000, 4096, 0, "[virtio]");
	assert_map(record(bench, PERF_MMAP, 1), 0xffffffffc0a01000, 8192, 0,
		   "/lib/modules/known.ko");
	assert_map(record(bench, PERF_MMAP, 2), 0xffffffff96000000, 0x2000000, 0xffffffff96000000,
		   "[guest.kernel.kallsyms.500]_stext");
	assert_null(record(bench, PERF_MMAP, 3));
	for (size_t i = 0; i < 3; i++) {
		struct perf_mmap map;

		assert_int_equal(perf_mmap_read(record(bench, PERF_MMAP, i), &map), 0);
		assert_int_equal(map.pid, VM);
		assert_int_equal(record(bench, PERF_MMAP, i)->misc, PERF_CPUMODE_GUEST_KERNEL);
	}
}

static void a_process_has_its_threads_and_code(void **state)
{
	const pid_t pids[] = { VM, 4711 };
	struct bench *bench = *state;
	struct recording_start start = { .pids = pids, .pid_count = 2 };
	struct perf_comm comm;

	fake_tree_process(&bench->tree, VM, "qemu-system-x86\n", "", 0);
	fake_tree_thread(&bench->tree, VM, 501, "CPU 0/KVM\n");
	fake_tree_file(&bench->tree,
		       "5600-5700 r--p 00000000 fd:01 42    /usr/bin/qemu\n"
		       "5700-5900 r-xp 00000100 fd:01 42    /usr/bin/qemu system\n"
		       "6000-6100 rwxp 00000000 00:00 0 \n"
		       "7000-6000 r-xp 00000000 00:00 0 backwards\nno map\n",
		       "proc/500/maps");
	round_trip(bench, &start);
	assert_int_equal(perf_comm_read(record(bench, PERF_COMM, 0), &comm), 0);
	assert_int_equal(comm.tid, VM);
	assert_string_equal(comm.name, "qemu-system-x86");
	assert_int_equal(perf_comm_read(record(bench, PERF_COMM, 1), &comm), 0);
	assert_int_equal(comm.pid, VM);
	assert_int_equal(comm.tid, 501);
	assert_string_equal(comm.name, "CPU 0/KVM");
	assert_null(record(bench, PERF_COMM, 2));
	assert_map(record(bench, PERF_MMAP2, 0), 0x5700, 0x200, 0x100, "/usr/bin/qemu system");
	assert_map(record(bench, PERF_MMAP2, 1), 0x6000, 0x100, 0, "//anon");
	assert_null(record(bench, PERF_MMAP2, 2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(how_it_was_traced_is_told),
		TEST(filters_are_told),
		TEST(threads_and_snapshots_are_told),
		TEST(ids_name_queues_and_guests),
		TEST(the_kernel_and_its_modules_are_mapped),
		TEST(a_kernel_that_hides_is_left_out),
		TEST(the_kernels_of_guests_are_mapped),
		TEST(a_process_has_its_threads_and_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
