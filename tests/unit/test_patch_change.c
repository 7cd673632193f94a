#include "decode/code/patch_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A tracepoint with its label and call, a key with two labels, and functions that may be traced. */

enum { CALL = 10, LABEL = 20, OTHER = 30, ITERATOR = 500, HOOK = 600, PROBE = 1000 };

static const struct probe_entry entry = {
	.iterator = ITERATOR, .unit = 1, .probes = { { PROBE, PROBE_PERF } }, .count = 1
};
static struct tracepoint_site sites[] = {
	{ .ip = CALL, .size = 5, .entry = &entry, .copied = ITERATOR },
	{ .ip = LABEL, .size = 5, .entry = &entry, .copied = 25, .target = HOOK, .call = CALL },
	{ .ip = OTHER,
	  .size = 5,
	  .entry = &entry,
	  .copied = 35,
	  .target = HOOK,
	  .is_doubtful = true },
};
static const struct tracepoint_table tracepoints = { .items = sites, .count = 3 };
static struct label_entry entries[] = { { .site = 40, .target = 90, .next = 1, .size = 2 },
					{ .site = 50, .target = 90, .next = 0, .size = 2 } };
static const struct label_table labels = { .items = entries, .count = 2 };

static const struct patch_change single = { .insn = { .site = 40, .to = 90, .size = 2 } };
static const struct patch_change two = { .insn = { .site = 40, .to = 90, .size = 2 },
					 .also = { .site = 44, .to = 99, .size = 5 } };
static const struct patch_change group = { .group = { &tracepoints, 1, PROBE_PERF, true } };
static const struct patch_change key = { .key = { .table = &labels } };
static struct ftrace_site entry_sites[] = { { .ip = 60 },
					    { .ip = 70, .copied = 5000 },
					    { .ip = 80 } };
static const struct ftrace_table ftrace = {
	.items = entry_sites,
	.count = 3,
	.static_calls = { { .site = 65, .to = 6000, .size = 5 } },
	.static_call_count = 1
};
static const struct patch_change traced = {
	.ftrace = { .table = &ftrace, .tracer = { .address = 4000, .caller = 3000, .call = 3001 } }
};
static const struct patch_change one_traced = {
	.ftrace = { .table = &ftrace, .site = 60, .tracer = { .caller = 5000 } }
};
static const struct patch_change graph = {
	.ftrace = { .table = &ftrace, .site = 60, .tracer = { .caller = 5000, .is_graph = true } }
};

struct visited {
	uint64_t items[8];
	unsigned count, most;
};

static bool note(void *context, uint64_t site)
{
	struct visited *visited = context;

	visited->items[visited->count++] = site;
	return visited->count < visited->most;
}

/* Visits at most so many sites, and checks that it has them. */
static struct visited visit(const struct patch_change *change, unsigned most, bool want)
{
	struct visited visited = { .most = most };

	assert_int_equal(patch_change_visit(change, note, &visited), want);
	for (unsigned i = 0; i < visited.count; i++)
		assert_true(patch_change_has(change, visited.items[i]));
	return visited;
}

static void each_site_is_visited_until_that_is_enough(void **state)
{
	const struct patch_change *all[] = { &two, &group, &key };
	const uint64_t first[] = { 40, CALL, 40 }, second[] = { 44, LABEL, 50 };

	for (unsigned i = 0; i < 3; i++) {
		struct visited visited = visit(all[i], 8, true);

		assert_int_equal(visited.count, 2);
		assert_int_equal(visited.items[0], first[i]);
		assert_int_equal(visited.items[1], second[i]);
		assert_int_equal(visit(all[i], 1, false).count, 1);
		assert_false(patch_change_has(all[i], OTHER));
		assert_false(patch_change_has(all[i], 0x1000));
	}
	assert_int_equal(visit(&single, 8, true).count, 1);
	assert_int_equal(visit(&traced, 8, true).count, 3);
	assert_int_equal(visit(&traced, 1, false).count, 1);
	assert_int_equal(visit(&traced, 2, false).items[1], 60);
	assert_false(patch_change_has(&traced, 70));
	assert_int_equal(visit(&one_traced, 8, true).count, 1);
	assert_false(patch_change_has(&one_traced, 65));
	assert_int_equal(visit(&graph, 8, true).count, 2);
	assert_int_equal(visit(&graph, 1, false).items[0], 65);
}

static void check_insn(const struct patch_change *change, uint64_t site, uint64_t to)
{
	struct patched_insn insn;

	assert_true(patch_change_insn(change, site, &insn));
	assert_int_equal(insn.site, site);
	assert_int_equal(insn.to, to);
}

static void what_it_makes_of_each(void **state)
{
	const struct patch_change as_copied = { .insn = { .site = 40 } };
	struct patched_insn insn;

	check_insn(&two, 40, 90);
	check_insn(&two, 44, 99);
	check_insn(&group, CALL, PROBE);
	check_insn(&group, LABEL, HOOK);
	check_insn(&key, 50, 90);
	check_insn(&traced, 80, 3000);
	check_insn(&traced, 3001, 4000);
	check_insn(&one_traced, 60, 5000);
	check_insn(&graph, 60, 5000);
	check_insn(&graph, 65, 6000);
	assert_false(patch_change_insn(&as_copied, 40, &insn));
}

static void of_a_group_all_can_be_undone(void **state)
{
	struct patch_change undone = patch_change_undo(&key);
	struct patched_insn insn;

	assert_true(patch_change_has(&undone, 50));
	assert_false(patch_change_insn(&undone, 50, &insn));
	undone = patch_change_undo(&traced);
	assert_true(patch_change_has(&undone, 80));
	assert_false(patch_change_insn(&undone, 80, &insn));
	undone = patch_change_undo(&group);
	assert_true(patch_change_has(&undone, LABEL));
	assert_false(patch_change_insn(&undone, LABEL, &insn));
}

static void they_are_told_apart(void **state)
{
	const struct patch_change undone[] = { patch_change_undo(&group), patch_change_undo(&key),
					       patch_change_undo(&traced) };
	const struct patch_change *all[] = { &single, &two,       &one_traced, &group,    &key,
					     &traced, &undone[0], &undone[1],  &undone[2] };

	for (unsigned i = 0; i < 9; i++)
		for (unsigned k = 0; k < 9; k++)
			assert_int_equal(patch_change_is_same(all[i], all[k]), i == k);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(patch_change_is_group(all[i]), i > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_site_is_visited_until_that_is_enough),
		cmocka_unit_test(what_it_makes_of_each),
		cmocka_unit_test(of_a_group_all_can_be_undone),
		cmocka_unit_test(they_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
