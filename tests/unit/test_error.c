/* error: the first story is kept, and handed on unchanged. */
#include "decode/base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_first_story_is_kept(void **state)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(ptvm_fail(&error, PTVM_BAD_INPUT, "%s: %d", "file", 7), -PTVM_BAD_INPUT);
	assert_int_equal(ptvm_fail(&error, PTVM_SYSTEM, "later"), -PTVM_SYSTEM);
	assert_int_equal(error.code, PTVM_BAD_INPUT);
	assert_string_equal(error.message, "file: 7");
	assert_int_equal(ptvm_fail(NULL, PTVM_BAD_USAGE, "nobody listens"), -PTVM_BAD_USAGE);
}

static void a_system_call_tells_its_errno(void **state)
{
	struct ptvm_error error = { 0 };

	errno = ENOENT;
	assert_int_equal(ptvm_fail_errno(&error, "file"), -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ENOENT);
	assert_string_equal(error.message, "file: No such file or directory");
}

static void what_another_call_told_is_handed_on(void **state)
{
	struct ptvm_error why = { 0 }, error = { 0 };

	assert_int_equal(ptvm_fail_as(&error, &why, -PTVM_NO_MEMORY), -PTVM_NO_MEMORY);
	assert_int_equal(error.code, PTVM_OK);
	errno = EIO;
	(void)ptvm_fail_errno(&why, "disk");
	assert_int_equal(ptvm_fail_as(&error, &why, -PTVM_SYSTEM), -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, EIO);
	assert_string_equal(ptvm_error_text(&error), why.message);
	assert_int_equal(ptvm_fail_as(NULL, &why, -PTVM_SYSTEM), -PTVM_SYSTEM);
}

static void lack_of_memory_needs_no_story(void **state)
{
	const struct ptvm_error none = { 0 };

	assert_string_equal(ptvm_error_text(&none), "out of memory");
}

/* A guest's agent words what libvirt says went wrong. */
static void what_it_quotes_does_nothing_to_a_terminal(void **state)
{
	struct ptvm_error error = { 0 };

	(void)ptvm_fail(&error, PTVM_SYSTEM, "agent: %s", "\033]0;x\007\n\302\233m \303\251");
	assert_string_equal(error.message, "agent: ?]0;x????m \303\251");
	error = (struct ptvm_error){ 0 };
	errno = ENOENT;
	(void)ptvm_fail_errno(&error, "%s", "a\rb");
	assert_string_equal(error.message, "a?b: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_story_is_kept),
		cmocka_unit_test(a_system_call_tells_its_errno),
		cmocka_unit_test(what_another_call_told_is_handed_on),
		cmocka_unit_test(what_it_quotes_does_nothing_to_a_terminal),
		cmocka_unit_test(lack_of_memory_needs_no_story),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
