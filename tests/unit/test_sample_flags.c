#include "decode/print/sample_flags.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_flags(uint32_t flags, const char *expected)
{
	struct text text = { 0 };

	sample_flags_text(&text, flags);
	text_putc(&text, 0);
	assert_string_equal(text.data, expected);
	text_free(&text);
}

static void branches_have_perfs_names(void **state)
{
	assert_flags(sample_flags_of(INSN_JMP), "  jmp                   ");
	assert_flags(sample_flags_of(INSN_CALL), "  call                  ");
	assert_flags(sample_flags_of(INSN_CALL_INDIRECT), "  call                  ");
	assert_flags(sample_flags_of(INSN_JCC), "  jcc                   ");
	assert_flags(sample_flags_of(INSN_RET), "  return                ");
	assert_flags(sample_flags_of(INSN_INT), "  int                   ");
	assert_flags(sample_flags_of(INSN_IRET), "  iret                  ");
	assert_flags(sample_flags_of(INSN_SYSCALL), "  syscall               ");
	assert_flags(sample_flags_of(INSN_SYSRET), "  sysret                ");
	assert_flags(sample_flags_of(INSN_VMENTRY), "  vmentry               ");
	assert_flags(SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_VMEXIT, "  vmexit                ");
	assert_flags(SAMPLE_BRANCH | SAMPLE_CALL | SAMPLE_ASYNC | SAMPLE_INTERRUPT,
		     "  hw int                ");
}

static void begin_and_end_of_tracing_have_a_second_name(void **state)
{
	assert_flags(SAMPLE_BRANCH | SAMPLE_TRACE_BEGIN, "  tr strt               ");
	assert_flags(SAMPLE_BRANCH | SAMPLE_TRACE_END, "  tr end                ");
	assert_flags(SAMPLE_BRANCH | SAMPLE_SYSCALL | SAMPLE_CALL | SAMPLE_TRACE_END,
		     "  tr end  syscall       ");
	assert_flags(SAMPLE_BRANCH | SAMPLE_TRACE_END | SAMPLE_ASYNC, "  tr end  async         ");
}

static void modifiers_stand_in_parentheses(void **state)
{
	assert_flags(SAMPLE_BRANCH | SAMPLE_CONDITIONAL | SAMPLE_IN_TX, "  jcc               (x) ");
	assert_flags(SAMPLE_BRANCH | SAMPLE_IF_CLEAR | SAMPLE_IF_TOGGLE,
		     "  jmp              (Dt) ");
}

static void what_has_no_name_is_letters(void **state)
{
	assert_flags(0, "                        ");
	assert_flags(SAMPLE_CALL | SAMPLE_RETURN, "  cr                    ");
	assert_flags(0x7fff, "  bcrosyiABExghDt       ");
}

static void plain_instructions_have_no_flags(void **state)
{
	assert_int_equal(sample_flags_of(INSN_PLAIN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_have_perfs_names),
		cmocka_unit_test(begin_and_end_of_tracing_have_a_second_name),
		cmocka_unit_test(modifiers_stand_in_parentheses),
		cmocka_unit_test(what_has_no_name_is_letters),
		cmocka_unit_test(plain_instructions_have_no_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
