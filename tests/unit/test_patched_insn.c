#include "decode/code/patched_insn.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const uint64_t site = 0xffffffff81000000;

static void assert_insn(const struct patched_insn *insn, uint64_t to, const char *bytes,
			uint8_t size)
{
	assert_int_equal(insn->site, site);
	assert_int_equal(insn->to, to);
	assert_int_equal(insn->size, size);
	assert_memory_equal(insn->bytes, bytes, size);
}

static void a_label_jumps_ahead_and_back(void **state)
{
	struct patched_insn insn;

	insn = patched_insn_label(site, 2, site + 0x12);
	assert_insn(&insn, site + 0x12, "\xeb\x10", 2);
	insn = patched_insn_label(site, 5, site + 0x1005);
	assert_insn(&insn, site + 0x1005, "\xe9\0\x10\0\0", 5);
	insn = patched_insn_label(site, 5, site);
	assert_insn(&insn, site, "\xe9\xfb\xff\xff\xff", 5);
}

static void a_label_that_goes_on_is_a_nop(void **state)
{
	struct patched_insn insn;

	insn = patched_insn_label(site, 2, site + 2);
	assert_insn(&insn, site + 2, "\x66\x90", 2);
	insn = patched_insn_label(site, 5, site + 5);
	assert_insn(&insn, site + 5, "\x0f\x1f\x44\0\0", 5);
}

static void a_call_has_five_bytes(void **state)
{
	struct patched_insn insn = patched_insn_call(site, site + 0x105);

	assert_insn(&insn, site + 0x105, "\xe8\0\x01\0\0", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_jumps_ahead_and_back),
		cmocka_unit_test(a_label_that_goes_on_is_a_nop),
		cmocka_unit_test(a_call_has_five_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
