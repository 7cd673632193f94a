#include "decode/flow/replaced_module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* A kernel that jumps into a module which has one function: xor eax, eax; nop...; ret. Another
 * module that came to its place may have a branch where that returns. */

enum { INSIDE = 1, MIDDLE = 16, SIZE = 18, TIMES = 6 };

static const uint64_t kernel = 0xffffffff81000000, module = 0xffffffffc0200000;

static bool add_function(struct machine *machine, const char *of)
{
	const struct symbol symbol = { .start = module, .name = "function", .module = of };

	return !symbols_add(&machine->symbols, &symbol) && !symbols_finish(&machine->symbols, true);
}

static void load(struct machines *machines, const char *name)
{
	uint8_t code[SIZE];

	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x31\xc0", 2);
	code[SIZE - 1] = 0xc3;
	assert_true(bench_machines_new(machines));
	assert_true(bench_add_code(machines->host, kernel, "\xff\xe0", 2));
	assert_true(bench_add_code(machines->host, module, code, sizeof(code)));
	assert_true(add_function(machines->host, name));
}

/* Jump to `place` of the module, TIMES times; `branches` follow that it has not. Returns how many
 * gaps were of the kind, and how many instructions of the module ran. */
static unsigned decode(const char *name, size_t place, uint8_t branches, enum gap_kind kind,
		       unsigned *ret_insns)
{
	const struct pt_config config = { .have_event_trace = false };
	struct pt_bytes trace = { 0 };
	struct bench_queue queue = { 0 };
	struct bench_list list = { 0 };
	struct machines machines;
	unsigned gaps = 0;

	load(&machines, name);
	pt_put_psb(&trace);
	pt_put_value(&trace, PT_PSBEND, 0);
	pt_put_ip(&trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
	for (unsigned i = 0; i < TIMES; i++) {
		pt_put_ip(&trace, PT_TIP, module + place, PT_IP_AUTO);
		if (branches)
			pt_put(&trace, &(struct pt_packet){
					       .kind = PT_TNT, .payload = 0, .count = branches });
		pt_put_ip(&trace, PT_TIP, kernel, PT_IP_AUTO);
	}
	bench_queue_add(&queue, trace.data, trace.size, false);
	bench_decode(&queue.queue, &config, &machines, 0, &list);
	*ret_insns = 0;
	for (size_t i = 0; i < list.count; i++) {
		gaps += list.items[i].is_gap && list.items[i].gap == kind;
		*ret_insns += !list.items[i].is_gap && list.items[i].ip >= module;
	}
	bench_list_free(&list);
	bench_queue_free(&queue);
	machines_free(&machines);
	pt_bytes_free(&trace);
	return gaps;
}

static void what_was_replaced_is_not_believed(void **state)
{
	unsigned insns;

	assert_int_equal(decode("[old]", MIDDLE, 1, GAP_NO_CODE, &insns), TIMES);
	assert_int_equal(insns, 0);
}

static void nor_where_it_would_agree_if_that_is_inside_of_an_instruction(void **state)
{
	unsigned insns;

	assert_int_equal(decode("[old]", INSIDE, 0, GAP_NO_CODE, &insns), TIMES);
	assert_int_equal(insns, 0);
	assert_int_equal(decode(NULL, INSIDE, 0, GAP_NO_CODE, &insns), 0);
	assert_true(insns > TIMES);
}

/* The function is entered at its beginning, so the mismatch has another reason. */
static void a_module_that_is_entered_as_it_should_be_is_believed(void **state)
{
	unsigned insns;

	assert_int_equal(decode("[old]", 0, 1, GAP_MISMATCH, &insns), TIMES);
	assert_true(insns > 2 * SIZE);
	assert_int_equal(decode("[old]", MIDDLE, 0, GAP_MISMATCH, &insns), 0);
	assert_int_equal(insns, TIMES * (SIZE - MIDDLE));
}

/* Each of them is doubted in the same segment. */
static void any_number_of_modules_may_be_replaced(void **state)
{
	enum { MODULES = 9, APART = 0x1000 };
	static const char *const names[MODULES] = { "[a]", "[b]", "[c]", "[d]", "[e]",
						    "[f]", "[g]", "[h]", "[i]" };
	const struct pt_config config = { .have_event_trace = false };
	struct pt_bytes trace = { 0 };
	struct bench_queue queue = { 0 };
	struct bench_list list = { 0 };
	struct machines machines;

	load(&machines, "[old]");
	pt_put_psb(&trace);
	pt_put_value(&trace, PT_PSBEND, 0);
	pt_put_ip(&trace, PT_TIP_PGE, kernel, PT_IP_AUTO);
	for (uint64_t i = 0; i < MODULES * 2; i++) {
		const struct symbol symbol = { .start = module + (i / 2 + 1) * APART,
					       .name = "function",
					       .module = names[i / 2] };

		assert_true(bench_add_code(machines.host, symbol.start, "\x31\xc0\xc3", 3));
		assert_int_equal(symbols_add(&machines.host->symbols, &symbol), 0);
		pt_put_ip(&trace, PT_TIP, symbol.start + INSIDE, PT_IP_AUTO);
		pt_put_ip(&trace, PT_TIP, kernel, PT_IP_AUTO);
	}
	assert_int_equal(symbols_finish(&machines.host->symbols, true), 0);
	bench_queue_add(&queue, trace.data, trace.size, false);
	bench_decode(&queue.queue, &config, &machines, 0, &list);
	assert_int_equal(list.gaps, MODULES * 2);
	for (size_t i = 0; i < list.count; i++)
		assert_true(list.items[i].is_gap || list.items[i].ip < module);
	bench_list_free(&list);
	bench_queue_free(&queue);
	machines_free(&machines);
	pt_bytes_free(&trace);
}

static void the_kernel_is_never_replaced(void **state)
{
	unsigned insns;

	assert_int_equal(decode(NULL, MIDDLE, 1, GAP_MISMATCH, &insns), TIMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_replaced_is_not_believed),
		cmocka_unit_test(nor_where_it_would_agree_if_that_is_inside_of_an_instruction),
		cmocka_unit_test(a_module_that_is_entered_as_it_should_be_is_believed),
		cmocka_unit_test(any_number_of_modules_may_be_replaced),
		cmocka_unit_test(the_kernel_is_never_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
