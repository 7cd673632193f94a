/* library: functions of libraries that are loaded when they are needed. */
#include "decode/base/library.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void functions_are_found_in_their_order(void **state)
{
	static const char *const names[] = { "labs", "toupper" };
	struct {
		long (*labs)(long);
		int (*toupper)(int);
	} calls;
	void *library = library_load("libc.so.6", names, (void **)&calls, 2);

	assert_non_null(library);
	assert_int_equal(calls.labs(-5), 5);
	assert_int_equal(calls.toupper('x'), 'X');
	assert_int_equal(dlclose(library), 0);
}

static void a_library_that_is_not_there_is_none(void **state)
{
	static const char *const names[] = { "labs" };
	void *call = NULL;

	assert_null(library_load("libnosuch.so.77", names, &call, 1));
	assert_null(call);
}

/* As with an old version of a library. */
static void a_library_that_lacks_a_function_is_none(void **state)
{
	static const char *const names[] = { "labs", "no_such_function", "toupper" };
	void *calls[3];

	assert_null(library_load("libc.so.6", names, calls, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_in_their_order),
		cmocka_unit_test(a_library_that_is_not_there_is_none),
		cmocka_unit_test(a_library_that_lacks_a_function_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
