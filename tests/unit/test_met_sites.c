#include "decode/flow/met_sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "decode/flow/pt_flow.h"
#include "tests/flow_bench.h"

/* A kernel: at 0 xor; nop2; test; jne; at 0x10 xor; jmp 0x30; at 0x20 ret; at 0x30 call 0; ... */

static const uint64_t base = 0xffffffff81000000;

struct fixture {
	struct machines machines;
	struct code code;
	struct met_sites sites;
};

static void make(struct fixture *f)
{
	uint8_t image[0x50];

	memset(image, 0xcc, sizeof(image));
	memcpy(image, "\x31\xc0\x66\x90\x85\xc0\x75\x00", 8);
	memcpy(image + 0x10, "\x31\xc0\xe9\x19\x00\x00\x00", 7);
	memcpy(image + 0x20, "\xc3", 1);
	memcpy(image + 0x30, "\x31\xc0\xff\xd0", 4);
	memcpy(image + 0x40, "\xe8\xbb\xff\xff\xff", 5);
	*f = (struct fixture){ 0 };
	assert_true(bench_machines_new(&f->machines));
	assert_true(bench_add_code(f->machines.host, base, image, sizeof(image)));
	code_init(&f->code, &f->machines);
	met_sites_begin(&f->sites, 1);
}

static void finish(struct fixture *f)
{
	met_sites_free(&f->sites);
	code_free(&f->code);
	machines_free(&f->machines);
}

static void note(struct fixture *f, uint64_t at)
{
	struct code_space *space = code_space_get(&f->code, f->machines.host, -1, base + at, 64);
	struct block *block = block_get(&f->code, space, base + at, 0);

	assert_non_null(block);
	met_sites_note(&f->sites, block);
}

static bool has(const struct fixture *f, uint64_t site, uint64_t also)
{
	struct patch_change change = { 0 };

	change.insn.site = base + site;
	change.also.site = also ? base + also : 0;
	return met_sites_have(&f->sites, &change);
}

static void what_may_be_patched_is_noted(void **state)
{
	struct fixture f;

	make(&f);
	note(&f, 0);
	note(&f, 0x10);
	note(&f, 0x40);
	met_sites_settle(&f.sites);
	assert_true(has(&f, 0x2, 0));  /* a label */
	assert_true(has(&f, 0x12, 0)); /* one that jumps */
	assert_true(has(&f, 0x40, 0)); /* a call */
	assert_false(has(&f, 0x0, 0));
	assert_false(has(&f, 0x20, 0));
	finish(&f);
}

static void either_place_of_a_patch_will_do(void **state)
{
	struct fixture f;

	make(&f);
	note(&f, 0);
	met_sites_settle(&f.sites);
	assert_true(has(&f, 0x60, 0x2));
	assert_true(has(&f, 0x2, 0x60));
	assert_false(has(&f, 0x60, 0x70));
	finish(&f);
}

/* Instructions of blocks that were found patched may have any form. */
static void all_of_a_patched_block_is_noted(void **state)
{
	struct fixture f;

	make(&f);
	code_add_sites(&f.code, &(struct code_site){ f.machines.host, base + 0x30 }, 1);
	note(&f, 0x30);
	met_sites_settle(&f.sites);
	assert_true(has(&f, 0x30, 0));
	assert_true(has(&f, 0x32, 0));
	finish(&f);
}

static void a_block_is_noted_once_in_a_segment(void **state)
{
	struct fixture f;
	size_t count;

	make(&f);
	note(&f, 0x40);
	count = f.sites.count;
	note(&f, 0x40);
	assert_int_equal(f.sites.count, count);
	met_sites_begin(&f.sites, 2);
	note(&f, 0x40);
	assert_int_equal(f.sites.count, 2 * count);
	met_sites_settle(&f.sites);
	assert_int_equal(f.sites.count, count);
	finish(&f);
}

/* What flows met before is not forgotten. */
static void later_flows_add_to_it(void **state)
{
	struct fixture f;

	make(&f);
	note(&f, 0x40);
	met_sites_settle(&f.sites);
	met_sites_begin(&f.sites, 2);
	note(&f, 0x10);
	met_sites_settle(&f.sites);
	assert_true(has(&f, 0x40, 0));
	assert_true(has(&f, 0x12, 0));
	finish(&f);
}

static void a_group_is_met_where_one_of_its_sites_is(void **state)
{
	const struct probe_entry entries[] = { { .unit = 1 }, { .unit = 2 } };
	struct tracepoint_site items[] = {
		{ .ip = base + 0x2, .entry = &entries[0], .target = base + 8, .size = 2 },
		{ .ip = base + 0x22, .entry = &entries[1], .target = base + 8, .size = 2 },
	};
	struct tracepoint_table table = { .items = items, .count = 2 };
	struct fixture f;

	make(&f);
	note(&f, 0);
	met_sites_settle(&f.sites);
	for (uint32_t unit = 1; unit <= 2; unit++) {
		const struct patch_change change = { .group = { .table = &table, .unit = unit } };

		assert_int_equal(met_sites_have(&f.sites, &change), unit == 1);
	}
	finish(&f);
}

static void a_key_is_met_where_one_of_its_labels_is(void **state)
{
	struct label_entry items[] = { { .site = base + 0x2, .next = 1, .size = 2 },
				       { .site = base + 0x42, .next = 0, .size = 2 },
				       { .site = base + 0x44, .next = 2, .size = 2 } };
	struct label_table table = { .items = items, .count = 3 };
	struct fixture f;

	make(&f);
	note(&f, 0);
	met_sites_settle(&f.sites);
	for (uint32_t first = 0; first <= 2; first += 2) {
		const struct patch_change change = { .key = { .table = &table, .first = first } };

		assert_int_equal(met_sites_have(&f.sites, &change), first == 0);
	}
	finish(&f);
}

static void where_memory_was_out_anything_may_have_been_met(void **state)
{
	struct fixture f;

	make(&f);
	assert_false(has(&f, 0x2, 0));
	f.sites.is_cut = true;
	assert_true(has(&f, 0x2, 0));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_be_patched_is_noted),
		cmocka_unit_test(either_place_of_a_patch_will_do),
		cmocka_unit_test(all_of_a_patched_block_is_noted),
		cmocka_unit_test(a_block_is_noted_once_in_a_segment),
		cmocka_unit_test(later_flows_add_to_it),
		cmocka_unit_test(a_group_is_met_where_one_of_its_sites_is),
		cmocka_unit_test(a_key_is_met_where_one_of_its_labels_is),
		cmocka_unit_test(where_memory_was_out_anything_may_have_been_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
