#include "decode/flow/return_sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/flow_fixture.h"

/* 1000: xor; ret. 1010: xor; jmp 1030. 1020: xor; jmp 1030. 1030: ret */
static void make(struct flow_fixture *f)
{
	uint8_t code[0x40];

	memset(code, 0xcc, sizeof(code));
	memcpy(code, "\x31\xc0\xc3", 3);
	memcpy(code + 0x10, "\x31\xc0\xeb\x1c", 4);
	memcpy(code + 0x20, "\x31\xc0\xeb\x0c", 4);
	code[0x30] = 0xc3;
	*f = (struct flow_fixture){ 0 };
	flow_fixture_init(f);
	flow_fixture_code(f, 0x1000, code, sizeof(code));
}

static void it_is_known_where_a_return_was_seen_to_go(void **state)
{
	struct return_sites sites = { 0 };
	const struct return_entry *entry;
	struct flow_fixture f;

	make(&f);
	assert_null(return_sites_find(&sites, flow_fixture_block(&f, 0x1000)));
	return_sites_note(&sites, flow_fixture_block(&f, 0x1000), 0x2000);
	return_sites_note(&sites, flow_fixture_block(&f, 0x1000), 0x3000);
	return_sites_note(&sites, flow_fixture_block(&f, 0x1000), 0x2000);
	entry = return_sites_find(&sites, flow_fixture_block(&f, 0x1002));
	assert_non_null(entry);
	assert_int_equal(entry->count, 2);
	assert_int_equal(entry->items[0], 0x2000);
	assert_int_equal(entry->items[1], 0x3000);
	assert_null(return_sites_find(&sites, flow_fixture_block(&f, 0x1010)));
	return_sites_free(&sites);
	flow_fixture_deinit(&f);
}

static void functions_that_share_a_return_are_told_apart(void **state)
{
	struct return_sites sites = { 0 };
	struct flow_fixture f;

	make(&f);
	return_sites_note(&sites, flow_fixture_block(&f, 0x1010), 0x2000);
	return_sites_note(&sites, flow_fixture_block(&f, 0x1020), 0x3000);
	assert_int_equal(return_sites_find(&sites, flow_fixture_block(&f, 0x1010))->items[0],
			 0x2000);
	assert_int_equal(return_sites_find(&sites, flow_fixture_block(&f, 0x1020))->items[0],
			 0x3000);
	assert_null(return_sites_find(&sites, flow_fixture_block(&f, 0x1030)));
	return_sites_free(&sites);
	flow_fixture_deinit(&f);
}

static void too_many_places_are_seen_as_such(void **state)
{
	struct return_sites sites = { 0 };
	struct flow_fixture f;

	make(&f);
	for (unsigned i = 0; i < 3 * RETURN_SITES; i++)
		return_sites_note(&sites, flow_fixture_block(&f, 0x1000), 0x2000 + i);
	assert_int_equal(return_sites_find(&sites, flow_fixture_block(&f, 0x1000))->count,
			 RETURN_SITES + 1);
	return_sites_free(&sites);
	flow_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_known_where_a_return_was_seen_to_go),
		cmocka_unit_test(functions_that_share_a_return_are_told_apart),
		cmocka_unit_test(too_many_places_are_seen_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
