#include "decode/flow/patch_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/flow_bench.h"

/* Patches of two machines, which are told apart by their addresses alone. */

struct fixture {
	struct machines machines;
	struct patch_list list;
	struct flow_patches patches;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_true(bench_machines_new(&f->machines));
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	patch_list_free(&f->list);
	machines_free(&f->machines);
	free(f);
	return 0;
}

static void patch(struct fixture *f, const struct machine *machine, uint64_t site)
{
	f->patches.items[f->patches.count++] =
		(struct flow_patch){ .machine = machine,
				     .change.insn = { .site = site, .to = site + 2 } };
}

static void each_site_counts_once(void **state)
{
	struct fixture *f = *state;
	const struct machine *host = f->machines.host, *guest = f->machines.guests[0];

	patch(f, host, 30);
	patch(f, host, 20);
	patch(f, guest, 20);
	patch(f, host, 30);
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).count, 3);
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).count, 3);
	assert_int_equal(f->list.count, 3);
	assert_ptr_equal(f->list.items[2].machine, guest);
	patch(f, guest, 10);
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).count, 4);
}

static void the_lowest_address_is_that_of_all(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(patch_list_sites(&f->list).lowest, 0);
	patch(f, f->machines.host, 30);
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).lowest, 30);
	patch(f, f->machines.guests[0], 10);
	patch(f, f->machines.host, 20);
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).lowest, 10);
}

static void what_does_not_fit_is_not_counted(void **state)
{
	struct fixture *f = *state;

	for (uint64_t site = 1; site <= PATCH_LIST_MAX + 10;) {
		assert_int_equal(patch_list_sites(&f->list).is_cut, site > PATCH_LIST_MAX + 1);
		for (f->patches.count = 0; f->patches.count < FLOW_PATCHES - 1; site++)
			patch(f, f->machines.host, site);
		patch_list_add(&f->list, f->patches.items, f->patches.count);
	}
	assert_true(patch_list_sites(&f->list).is_cut);
	assert_int_equal(patch_list_sites(&f->list).count, PATCH_LIST_MAX);
	assert_int_equal(f->list.items[PATCH_LIST_MAX - 1].change.insn.site, PATCH_LIST_MAX);
}

/* Of a group all count that it changes. */
static void a_group_counts_with_its_sites(void **state)
{
	const struct probe_entry entry = { .unit = 1,
					   .probes = { { 1000, PROBE_PERF } },
					   .count = 1 };
	struct tracepoint_site sites[] = {
		{ .ip = 10, .size = 5, .entry = &entry, .copied = 500, .call = 0 },
		{ .ip = 20, .size = 5, .entry = &entry, .copied = 25, .target = 600, .call = 10 },
		{ .ip = 30, .size = 5, .entry = &entry, .copied = 600, .target = 600, .call = 10 },
		{ .ip = 40, .size = 5, .entry = &entry, .copied = 45, .target = 600, .call = 10 },
	};
	const struct tracepoint_table table = { .items = sites, .count = 4 };
	struct fixture *f = *state;

	f->patches.items[f->patches.count++] =
		(struct flow_patch){ .machine = f->machines.host,
				     .change.group = { &table, 1, PROBE_PERF, true } };
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).count, 3);
	assert_int_equal(patch_list_sites(&f->list).lowest, 10);
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).count, 3);
}

/* So do functions that are traced, but not what differs in what stands for their trampoline.
 * Where there are too many, it is said. */
static void a_tracer_counts_with_its_functions(void **state)
{
	enum { FUNCTIONS = PATCH_LIST_SITES / 2 + 1 };
	struct ftrace_site *sites = calloc(FUNCTIONS, sizeof(*sites));
	const struct ftrace_table table = { .items = sites, .count = FUNCTIONS };
	struct fixture *f = *state;

	assert_non_null(sites);
	for (size_t i = 0; i < FUNCTIONS; i++)
		sites[i].ip = 0x1000 + 0x10 * i;
	for (uint64_t tracer = 0; tracer < 2; tracer++) {
		const struct ftrace_change change = { .table = &table,
						      .tracer = { .address = 0x100 + tracer,
								  .caller = 0x200,
								  .call = 0x208,
								  .jump = 0x20c } };
		const struct flow_patch item = { .machine = f->machines.host,
						 .change.ftrace = change };

		patch_list_add(&f->list, &item, 1);
		assert_int_equal(patch_list_sites(&f->list).count, FUNCTIONS);
		assert_int_equal(patch_list_sites(&f->list).lowest, 0x1000);
		assert_int_equal(patch_list_sites(&f->list).is_cut, tracer > 0);
	}
	free(sites);
}

/* So do those of a key. */
static void a_key_counts_with_its_labels(void **state)
{
	struct label_entry entries[] = { { .site = 10, .target = 90, .next = 1, .size = 2 },
					 { .site = 20, .target = 90, .next = 0, .size = 2 } };
	const struct label_table table = { .items = entries, .count = 2 };
	struct fixture *f = *state;

	f->patches.items[f->patches.count++] =
		(struct flow_patch){ .machine = f->machines.host,
				     .change.key = { .table = &table } };
	patch_list_add(&f->list, f->patches.items, f->patches.count);
	assert_int_equal(patch_list_sites(&f->list).count, 2);
	assert_int_equal(patch_list_sites(&f->list).lowest, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_site_counts_once),         TEST(the_lowest_address_is_that_of_all),
		TEST(a_group_counts_with_its_sites), TEST(a_tracer_counts_with_its_functions),
		TEST(a_key_counts_with_its_labels),  TEST(what_does_not_fit_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
