#include "decode/code/probe_table.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void add(struct symbols *symbols, uint64_t start, const char *name)
{
	struct symbol symbol = { .start = start, .name = name, .is_global = true };

	assert_int_equal(symbols_add(symbols, &symbol), 0);
}

static struct probe_table read_all(struct symbols *symbols)
{
	struct probe_table ret;

	assert_int_equal(symbols_finish(symbols, true), 0);
	assert_int_equal(probe_table_read(symbols, &ret), 0);
	symbols_free(symbols);
	return ret;
}

static void assert_first(const struct probe_table *table, uint64_t callee, uint64_t probe)
{
	const struct probe_entry *entry = probe_table_find(table, callee);

	assert_non_null(entry);
	assert_true(entry->count > 0);
	assert_int_equal(entry->probes[0].address, probe);
}

static void a_class_of_the_same_name_is_the_only_one(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_kfree");
	add(&symbols, 0x1100, "__traceiter_kmalloc");
	add(&symbols, 0x2000, "trace_event_raw_event_kmalloc");
	add(&symbols, 0x2100, "trace_event_raw_event_kfree");
	add(&symbols, 0x2200, "perf_trace_kfree");
	add(&symbols, 0x2300, "perf_trace_kfree.cold");
	table = read_all(&symbols);
	assert_first(&table, 0x1000, 0x2100);
	assert_int_equal(probe_table_find(&table, 0x1000)->count, 2);
	assert_int_equal(probe_table_find(&table, 0x1000)->probes[1].address, 0x2200);
	assert_first(&table, 0x1100, 0x2000);
	assert_int_equal(probe_table_find(&table, 0x1100)->count, 1);
	probe_table_free(&table);
}

/* Names alone would make of sched_wait_task a sched_wakeup_template. */
static void a_shared_class_is_where_its_events_are(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_sched_waking");
	add(&symbols, 0x1100, "__traceiter_sched_migrate_task");
	add(&symbols, 0x1200, "__traceiter_sched_wait_task");
	add(&symbols, 0x1300, "__traceiter_sched_process_wait");
	add(&symbols, 0x2000, "trace_event_raw_event_sched_wakeup_template");
	add(&symbols, 0x2100, "trace_event_raw_event_sched_migrate_task");
	add(&symbols, 0x2200, "trace_event_raw_event_sched_process_template");
	add(&symbols, 0x2300, "trace_event_raw_event_sched_process_wait");
	table = read_all(&symbols);
	assert_first(&table, 0x1000, 0x2000);
	assert_first(&table, 0x1200, 0x2200);
	probe_table_free(&table);
}

/* The compiler has put some of ftrace's probes, not those of perf, in an order of its own. */
static void where_classes_are_is_asked_of_who_has_them_in_order(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_kmem_cache_alloc");
	add(&symbols, 0x1100, "__traceiter_kfree");
	add(&symbols, 0x1200, "__traceiter_mm_page_free");
	add(&symbols, 0x1300, "__traceiter_mm_page_free_batched");
	add(&symbols, 0x2000, "perf_trace_kmem_alloc");
	add(&symbols, 0x2100, "perf_trace_kmem_free");
	add(&symbols, 0x2200, "perf_trace_mm_page_free");
	add(&symbols, 0x2300, "perf_trace_mm_page_free_batched");
	add(&symbols, 0x3000, "trace_event_raw_event_kmem_free");
	add(&symbols, 0x3100, "trace_event_raw_event_mm_page_free_batched");
	add(&symbols, 0x3200, "trace_event_raw_event_mm_page_free");
	add(&symbols, 0x3300, "trace_event_raw_event_kmem_alloc");
	table = read_all(&symbols);
	assert_first(&table, 0x1000, 0x3300);
	assert_first(&table, 0x1100, 0x3000);
	probe_table_free(&table);
}

static void names_are_alike_that_begin_or_end_alike(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_kmem_cache_alloc");
	add(&symbols, 0x1100, "__traceiter_kfree");
	add(&symbols, 0x2000, "trace_event_raw_event_kmem_free");
	add(&symbols, 0x2100, "trace_event_raw_event_kmem_alloc");
	table = read_all(&symbols);
	assert_first(&table, 0x1000, 0x2100);
	assert_first(&table, 0x1100, 0x2000);
	probe_table_free(&table);
}

static void another_files_classes_are_not_asked(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_softirq_raise");
	add(&symbols, 0x1100, "trace_event_raw_event_softirq");
	add(&symbols, 0x2000, "__traceiter_alone");
	table = read_all(&symbols);
	assert_first(&table, 0x1000, 0x1100);
	assert_null(probe_table_find(&table, 0x2000));
	assert_null(probe_table_find(&table, 0x1001));
	probe_table_free(&table);
}

static void some_probes_have_names_of_their_own(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_sys_enter");
	add(&symbols, 0x2000, "__traceiter_sys_exit");
	add(&symbols, 0x3000, "ftrace_syscall_exit");
	add(&symbols, 0x4000, "ftrace_syscall_enter");
	table = read_all(&symbols);
	assert_first(&table, 0x1000, 0x4000);
	assert_first(&table, 0x2000, 0x3000);
	probe_table_free(&table);
}

static void a_trampoline_leads_to_the_same(void **state)
{
	const struct probe_entry *entry;
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_kfree");
	add(&symbols, 0x2000, "trace_event_raw_event_kfree");
	add(&symbols, 0x9000, "__SCT__tp_func_kfree");
	add(&symbols, 0x9008, "__SCT__tp_func_alone");
	table = read_all(&symbols);
	assert_first(&table, 0x9000, 0x2000);
	entry = probe_table_find(&table, 0x9000);
	assert_int_equal(entry->callee, 0x9000);
	assert_int_equal(entry->iterator, 0x1000);
	assert_null(probe_table_find(&table, 0x9008));
	probe_table_free(&table);
}

static void events_of_one_file_are_a_unit(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_kfree");
	add(&symbols, 0x1100, "__traceiter_kmalloc");
	add(&symbols, 0x2000, "trace_event_raw_event_kfree");
	add(&symbols, 0x2100, "trace_event_raw_event_kmalloc");
	add(&symbols, 0x3000, "__traceiter_softirq_raise");
	add(&symbols, 0x4000, "trace_event_raw_event_softirq");
	table = read_all(&symbols);
	assert_int_equal(probe_table_find(&table, 0x1000)->unit,
			 probe_table_find(&table, 0x1100)->unit);
	assert_int_not_equal(probe_table_find(&table, 0x1000)->unit,
			     probe_table_find(&table, 0x3000)->unit);
	probe_table_free(&table);
}

/* ftrace remembers what threads are called with a probe besides that of the event. */
static void every_user_has_a_probe_of_its_own(void **state)
{
	const struct probe_entry *entry;
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_sched_switch");
	add(&symbols, 0x1100, "__traceiter_sched_process_exec");
	add(&symbols, 0x2000, "trace_event_raw_event_sched_switch");
	add(&symbols, 0x2100, "perf_trace_sched_switch");
	add(&symbols, 0x2200, "trace_event_raw_event_sched_process_exec");
	add(&symbols, 0x3000, "probe_sched_switch");
	table = read_all(&symbols);
	entry = probe_table_find(&table, 0x1000);
	assert_int_equal(probe_entry_of(entry, PROBE_FTRACE), 0x1000);
	assert_int_equal(probe_entry_of(entry, PROBE_PERF), 0x2100);
	assert_int_equal(probe_entry_of(entry, PROBE_COMMANDS), 0x3000);
	assert_int_equal(probe_entry_of(entry, PROBE_BPF), 0);
	entry = probe_table_find(&table, 0x1100);
	assert_int_equal(probe_entry_of(entry, PROBE_FTRACE), 0x2200);
	assert_int_equal(probe_entry_of(entry, PROBE_COMMANDS), 0);
	probe_table_free(&table);
}

/* Tracepoints without an event are for BPF and modules alone. */
static void what_is_no_event_has_no_class_of_others(void **state)
{
	const struct probe_entry *entry;
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "__traceiter_pelt_cfs_tp");
	add(&symbols, 0x1100, "__traceiter_sched_waking");
	add(&symbols, 0x2000, "trace_event_raw_event_sched_wakeup_template");
	add(&symbols, 0x2100, "__bpf_trace_pelt_cfs_tp");
	add(&symbols, 0x2200, "__bpf_trace_sched_wakeup_template");
	table = read_all(&symbols);
	entry = probe_table_find(&table, 0x1000);
	assert_int_equal(probe_entry_of(entry, PROBE_FTRACE), 0);
	assert_int_equal(probe_entry_of(entry, PROBE_BPF), 0x2100);
	entry = probe_table_find(&table, 0x1100);
	assert_int_equal(probe_entry_of(entry, PROBE_FTRACE), 0x2000);
	assert_int_equal(probe_entry_of(entry, PROBE_BPF), 0x2200);
	probe_table_free(&table);
}

static void without_tracepoints_there_is_nothing(void **state)
{
	struct symbols symbols = { 0 };
	struct probe_table table;

	add(&symbols, 0x1000, "schedule");
	table = read_all(&symbols);
	assert_int_equal(table.count, 0);
	assert_null(probe_table_find(&table, 0x1000));
	probe_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_class_of_the_same_name_is_the_only_one),
		cmocka_unit_test(a_shared_class_is_where_its_events_are),
		cmocka_unit_test(where_classes_are_is_asked_of_who_has_them_in_order),
		cmocka_unit_test(names_are_alike_that_begin_or_end_alike),
		cmocka_unit_test(another_files_classes_are_not_asked),
		cmocka_unit_test(some_probes_have_names_of_their_own),
		cmocka_unit_test(a_trampoline_leads_to_the_same),
		cmocka_unit_test(events_of_one_file_are_a_unit),
		cmocka_unit_test(every_user_has_a_probe_of_its_own),
		cmocka_unit_test(what_is_no_event_has_no_class_of_others),
		cmocka_unit_test(without_tracepoints_there_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
