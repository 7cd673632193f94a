#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/demangle.h"

/* A name after it went through. */
static void becomes(const char *before, const char *after)
{
	struct symbols symbols = { 0 };
	const struct symbol symbol = { .start = 1, .end = 2, .name = before };

	assert_int_equal(symbols_add(&symbols, &symbol), 0);
	demangle_symbols(&symbols);
	assert_string_equal(symbols.items[0].name, after);
	symbols_free(&symbols);
}

static void functions_lose_their_parameters(void **state)
{
	becomes("_Z12c_parse_filev", "c_parse_file");
	becomes("_ZN5clang4Sema13ActOnPopScopeE14SourceLocationPNS_5ScopeE",
		"clang::Sema::ActOnPopScope");
	becomes("_ZNSt6vectorIiSaIiEE9push_backERKi",
		"std::vector<int, std::allocator<int> >::push_back");
	becomes("_ZTV5thing", "vtable for thing");
}

static void rust_is_known_in_both_forms(void **state)
{
	becomes("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	becomes("_RNvCs1234_7mycrate3foo", "mycrate::foo");
}

static void other_names_stay(void **state)
{
	becomes("main", "main");
	becomes("_start", "_start");
	becomes("_Zebra", "_Zebra");
	becomes("_Z", "_Z");
	becomes("_RNv", "_RNv");
	becomes("_RC0", "_RC0"); /* of nothing */
	becomes("_RC0@plt", "_RC0@plt");
	becomes("", "");
}

static void a_stub_is_that_of_a_function(void **state)
{
	becomes("_ZdlPv@plt", "operator delete@plt");
	becomes("memcpy@plt", "memcpy@plt");
	becomes("@plt", "@plt");
}

/* Each parameter is a pair of the one before, so a few bytes stand for billions of names. */
static void a_name_that_becomes_too_long_stays(void **state)
{
	char name[1024] = "_Z1fI4pairI";
	char *p = name + strlen(name);

	p += sprintf(p, "iiE");
	for (char c = '0'; c < '9'; c++)
		p += sprintf(p, "S_IS%c_S%c_E", c, c);
	for (char c = 'A'; c < 'Z'; c++)
		p += sprintf(p, "S_IS%c_S%c_E", c, c);
	strcpy(p, "Evv");
	becomes(name, name);
}

static void a_file_of_such_names_is_given_up(void **state)
{
	struct symbols symbols = { 0 };
	char name[1024] = "_ZN", *p = name + 3;

	while (p < name + 900)
		p += sprintf(p, "1aI");
	for (unsigned i = 0; i < 100; i++) {
		const struct symbol symbol = { .start = i, .end = i + 1, .name = name };

		assert_int_equal(symbols_add(&symbols, &symbol), 0);
	}
	demangle_symbols(&symbols);
	for (unsigned i = 0; i < 100; i++)
		assert_string_equal(symbols.items[i].name, name);
	symbols_free(&symbols);
}

/* The demangler refuses them anyway, but only after a look at all of each. */
static void names_that_are_too_long_from_the_start_are_passed_over(void **state)
{
	enum { LONG = 70000, COUNT = 40 };
	struct symbols symbols = { 0 };
	char *name = malloc(LONG + 64);
	int head;

	assert_non_null(name);
	head = snprintf(name, 64, "_ZN%d", LONG);
	assert_in_range(head, 4, 63);
	memset(name + head, 'a', LONG);
	strcpy(name + head + LONG, "17h0123456789abcdefE");
	for (unsigned i = 0; i <= COUNT; i++) {
		const struct symbol symbol = { .start = i,
					       .end = i + 1,
					       .name = i < COUNT ? name : "_ZdlPv" };

		assert_int_equal(symbols_add(&symbols, &symbol), 0);
	}
	demangle_symbols(&symbols);
	assert_ptr_equal(symbols.items[0].name, name);
	assert_string_equal(symbols.items[COUNT].name, "operator delete");
	symbols_free(&symbols);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_lose_their_parameters),
		cmocka_unit_test(rust_is_known_in_both_forms),
		cmocka_unit_test(other_names_stay),
		cmocka_unit_test(a_stub_is_that_of_a_function),
		cmocka_unit_test(a_name_that_becomes_too_long_stays),
		cmocka_unit_test(a_file_of_such_names_is_given_up),
		cmocka_unit_test(names_that_are_too_long_from_the_start_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
