#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/machine/kmod_calls.h"

static void the_library_can_be_loaded_twice(void **state)
{
	struct kmod_calls calls = { 0 };

	for (int i = 0; i < 2; i++) {
		const char *const no_config[] = { NULL };
		struct kmod_ctx *context;

		assert_int_equal(kmod_calls_load(&calls), 0);
		context = calls.kmod_new("/nonexistent", no_config);
		assert_non_null(context);
		assert_null(calls.kmod_unref(context));
		kmod_calls_unload(&calls);
		assert_null(calls.library);
	}
}

static void what_was_not_loaded_can_be_unloaded(void **state)
{
	struct kmod_calls calls = { 0 };

	kmod_calls_unload(&calls);
	assert_null(calls.library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_can_be_loaded_twice),
		cmocka_unit_test(what_was_not_loaded_can_be_unloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
