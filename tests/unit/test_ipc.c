#include "decode/print/ipc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect_text(struct ipc_count count, const char *expected)
{
	struct text text = { 0 };

	ipc_text(&text, &count);
	text_putc(&text, 0);
	assert_string_equal(text.data, expected);
	text_free(&text);
}

static void instructions_per_cycle_have_two_digits(void **state)
{
	expect_text((struct ipc_count){ 3, 2 }, " \t IPC: 1.50 (3/2) ");
	expect_text((struct ipc_count){ 1, 100 }, " \t IPC: 0.01 (1/100) ");
	expect_text((struct ipc_count){ 199, 100 }, " \t IPC: 1.99 (199/100) ");
	expect_text((struct ipc_count){ 2, 3 }, " \t IPC: 0.66 (2/3) ");
}

static void without_both_there_is_no_text(void **state)
{
	expect_text((struct ipc_count){ 0, 3 }, "");
	expect_text((struct ipc_count){ 3, 0 }, "");
}

static void expect_count(struct ipc_count count, uint64_t insns, uint64_t cycles)
{
	assert_int_equal(count.insns, insns);
	assert_int_equal(count.cycles, cycles);
}

static void a_line_without_ipc_takes_none(void **state)
{
	const struct ipc ipc = { .total = { 15, 120 } };
	struct ipc_count mark = { 10, 100 };

	expect_count(ipc_take(&ipc, &mark), 0, 0);
	expect_count(mark, 10, 100);
}

static void cycles_count_from_the_last_that_were_told(void **state)
{
	struct ipc ipc = { .total = { 15, 120 }, .in_line = true };
	struct ipc_count mark = { 10, 100 };

	expect_count(ipc_take(&ipc, &mark), 5, 20);
	expect_count(mark, 15, 120);
	ipc.total.insns = 18;
	expect_count(ipc_take(&ipc, &mark), 3, 0);
	expect_count(mark, 15, 120);
	ipc.total = (struct ipc_count){ 20, 125 };
	expect_count(ipc_take(&ipc, &mark), 5, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_per_cycle_have_two_digits),
		cmocka_unit_test(without_both_there_is_no_text),
		cmocka_unit_test(a_line_without_ipc_takes_none),
		cmocka_unit_test(cycles_count_from_the_last_that_were_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
