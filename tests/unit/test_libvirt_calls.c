#include "host/vm/libvirt_calls.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void each_call_is_that_of_its_name(void **state)
{
	struct libvirt_calls calls = { 0 };
	struct ptvm_error error = { 0 };

	if (libvirt_load(&calls, &error)) {
		assert_null(calls.library);
		assert_string_equal(error.message, "libvirt-qemu.so.0: not installed "
						   "(libvirt-clients brings it), or too old");
		skip();
	}
#define CHECK(name) assert_ptr_equal(*(void **)&calls.name, dlsym(calls.library, #name));
	LIBVIRT_CALLS(CHECK)
#undef CHECK
	libvirt_unload(&calls);
	assert_null(calls.library);
	libvirt_unload(&calls);
}

static void nothing_is_unloaded_where_nothing_was_loaded(void **state)
{
	struct libvirt_calls calls = { 0 };

	libvirt_unload(&calls);
	assert_null(calls.library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_is_that_of_its_name),
		cmocka_unit_test(nothing_is_unloaded_where_nothing_was_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
