#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guest/vmcoreinfo.h"

/* Of Linux 6.1 with KASLR and 5 levels, shortened. */
static const char text[] = "OSRELEASE=6.1.0-56-cloud-amd64\n"
			   "BUILD-ID=3b43fad5034874490492495d552c0af6a5fab235\n"
			   "PAGESIZE=4096\n"
			   "SYMBOL(init_uts_ns)=ffffffffa59f9b60\n"
			   "OFFSET(uts_namespace.name)=0\n"
			   "SYMBOL(swapper_pg_dir)=ffffffffa5810000\n"
			   "NUMBER(phys_base)=6159335424\n"
			   "SYMBOL(init_top_pgt)=ffffffffa5810000\n"
			   "NUMBER(pgtable_l5_enabled)=1\n"
			   "KERNELOFFSET=22e00000\n";

/* The same with one part of it replaced. */
static bool read_with(const char *part, const char *by, struct vmcoreinfo *ret)
{
	char changed[2 * sizeof(text)];
	const char *at = strstr(text, part);

	assert_non_null(at);
	(void)snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, by,
		       at + strlen(part));
	return vmcoreinfo_read(changed, ret);
}

static void it_leads_to_page_tables(void **state)
{
	struct vmcoreinfo info;

	assert_true(vmcoreinfo_read(text, &info));
	assert_string_equal(info.release, "6.1.0-56-cloud-amd64");
	assert_int_equal(info.root_address, 0xffffffffa5810000);
	assert_int_equal(info.uts_address, 0xffffffffa59f9b60);
	assert_int_equal(info.root.cr3, 0x25810000 + 6159335424);
	assert_true(info.root.is_5_level);
}

static void a_kernel_may_be_below_where_it_was_linked_for(void **state)
{
	struct vmcoreinfo info;

	assert_true(read_with("=6159335424", "=-629145600", &info));
	assert_int_equal(info.root.cr3, 0x10000);
}

static void levels_not_told_are_four(void **state)
{
	struct vmcoreinfo info;

	assert_true(read_with("NUMBER(pgtable_l5_enabled)=1\n", "", &info));
	assert_false(info.root.is_5_level);
	assert_true(read_with("pgtable_l5_enabled)=1\n", "pgtable_l5_enabled)=0\n", &info));
	assert_false(info.root.is_5_level);
}

static void the_root_has_another_name_elsewhere(void **state)
{
	struct vmcoreinfo info;

	assert_true(read_with("SYMBOL(init_top_pgt)=ffffffffa5810000\n", "", &info));
	assert_int_equal(info.root_address, 0xffffffffa5810000);
}

static void what_leads_nowhere_is_refused(void **state)
{
	static const struct {
		const char *part, *by;
	} cases[] = {
		{ "OSRELEASE=6", "RELEASE=6" },
		{ "6.1.0-56-cloud-amd64",
		  "a-name-of-65-bytes-0123456789-0123456789-0123456789-0123456789-01" },
		{ "SYMBOL(init_uts_ns)", "SYMBOL(uts)" },
		{ "NUMBER(phys_base)", "phys_base" },
		{ "=6159335424", "=" },
		{ "=6159335424", "=6159335424x" },
		{ "=6159335424", "=6159335425" },          /* no whole page */
		{ "=6159335424", "=4611686018427387904" }, /* no such address */
		{ "SYMBOL(init_top_pgt)=ffffffffa5810000", "SYMBOL(init_top_pgt)=a5810000" },
		{ "SYMBOL(init_top_pgt)=ffffffffa5810000",
		  "SYMBOL(init_top_pgt)=ffffffffa5810800" },
	};
	struct vmcoreinfo info;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_false(read_with(cases[i].part, cases[i].by, &info));
	assert_false(vmcoreinfo_read("", &info));
}

static void a_value_is_that_of_its_line(void **state)
{
	char value[8];

	assert_true(vmcoreinfo_value("A=1\nBA=2\nAB=3\nC=4", "C", value, sizeof(value)));
	assert_string_equal(value, "4");
	assert_true(vmcoreinfo_value("BA=2\nA=1\nA=5", "A", value, sizeof(value)));
	assert_string_equal(value, "1");
	assert_false(vmcoreinfo_value("A=12345678\n", "A", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(vmcoreinfo_value("A=\n", "A", value, sizeof(value)));
	assert_false(vmcoreinfo_value("A", "A", value, sizeof(value)));
}

static void its_page_begins_with_the_release(void **state)
{
	assert_true(vmcoreinfo_begins(text));
	assert_false(vmcoreinfo_begins(text + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_leads_to_page_tables),
		cmocka_unit_test(a_kernel_may_be_below_where_it_was_linked_for),
		cmocka_unit_test(levels_not_told_are_four),
		cmocka_unit_test(the_root_has_another_name_elsewhere),
		cmocka_unit_test(what_leads_nowhere_is_refused),
		cmocka_unit_test(a_value_is_that_of_its_line),
		cmocka_unit_test(its_page_begins_with_the_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
