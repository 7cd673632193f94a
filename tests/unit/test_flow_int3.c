#include "decode/flow/flow_int3.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "decode/flow/flow_packet.h"
#include "tests/flow_fixture.h"

/* A kernel with jump labels, all of them NOPs (from KERNEL on):
 *	00 label; nop; label; ret		a function
 *	20 nop; label; ret; push; jmp 26	a function
 *	40 label; int3				a function
 *	60 iret					the handler of INT3 */
enum {
	JUMPING = 0x20,
	OUT_OF_LINE = 0x27,
	OTHER = 0x40,
	HANDLER = 0x60,
	SIZE = 0x70,
};

#define LABEL "\x0f\x1f\x44\0\0"

static const uint64_t kernel = 0xffffffff81000000;

static void set_code(struct flow_fixture *f)
{
	uint8_t code[SIZE];

	memset(code, 0xcc, sizeof(code));
	memcpy(code, LABEL "\x90" LABEL "\xc3", 12);
	memcpy(code + JUMPING, "\x90" LABEL "\xc3", 7);
	memcpy(code + OUT_OF_LINE, "\x50\xeb\xfc", 3);
	memcpy(code + OTHER, LABEL "\xcc", 6);
	memcpy(code + HANDLER, "\x48\xcf", 2);
	flow_fixture_code(f, kernel, code, sizeof(code));
}

static int set_up(void **state)
{
	static struct flow_fixture fixture;
	const struct symbol handler = { .start = kernel + HANDLER,
					.name = "asm_exc_int3",
					.is_global = true };
	struct symbols *symbols;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture);
	set_code(&fixture);
	symbols = &fixture.machines.host->symbols;
	assert_int_equal(symbols_add(symbols, &handler), 0);
	for (uint64_t at = 0; at < HANDLER; at += JUMPING)
		assert_true(bench_add_function(fixture.machines.host, kernel + at));
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	flow_fixture_deinit(*state);
	return 0;
}

static void follow(struct flow_fixture *f, uint64_t from, uint64_t back)
{
	pt_put_ip(&f->trace, PT_TIP, kernel + HANDLER, PT_IP_AUTO);
	pt_put_value(&f->trace, PT_PSB, 0);
	pt_put_value(&f->trace, PT_PSBEND, 0);
	pt_put_ip(&f->trace, PT_TIP, back, 6);
	flow_fixture_begin(f, from, false);
	while (f->flow.ip != kernel + HANDLER && !flow_next(&f->run))
		;
}

static void the_handler_returns_behind_the_instruction(void **state)
{
	struct flow_fixture *f = *state;

	follow(f, kernel, kernel + 11);
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:2) BLOCK(ffffffff81000006:1+) "
			       "TO(ffffffff81000060)");
	assert_int_equal(f->flow.addresses, 1);
}

static void it_may_be_the_first_there_is(void **state)
{
	struct flow_fixture *f = *state;

	follow(f, kernel, kernel + 5);
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:1+) TO(ffffffff81000060)");
}

static void the_handler_returns_to_where_the_other_form_leads(void **state)
{
	struct flow_fixture *f = *state;

	follow(f, kernel + JUMPING, kernel + OUT_OF_LINE);
	flow_fixture_expect(f, "BLOCK(ffffffff81000020:1) BLOCK(ffffffff81000021:1+) "
			       "TO(ffffffff81000060)");
}

/* As before: it is the return that went there. */
static void without_such_a_return_nothing_is_known(void **state)
{
	struct flow_fixture *f = *state;

	follow(f, kernel, kernel + OUT_OF_LINE + 1);
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:4+) TO(ffffffff81000060)");
}

static void an_int3_in_the_code_is_the_one(void **state)
{
	struct flow_fixture *f = *state;

	follow(f, kernel + OTHER, kernel + OTHER + 5);
	flow_fixture_expect(f, "BLOCK(ffffffff81000040:2+) TO(ffffffff81000060)");
}

static void nobody_looks_behind_an_overflow(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP, kernel + HANDLER, PT_IP_AUTO);
	pt_put_value(&f->trace, PT_OVF, 0);
	pt_put_ip(&f->trace, PT_TIP, kernel + 11, 6);
	flow_fixture_begin(f, kernel, false);
	while (f->flow.ip != kernel + HANDLER && !flow_next(&f->run))
		;
	flow_fixture_expect(f, "BLOCK(ffffffff81000000:4+) TO(ffffffff81000060)");
}

/* Blocks of the handler are found each time, so that no return is linked to it. */
static void nothing_leads_to_the_handler_by_itself(void **state)
{
	struct flow_fixture *f = *state;
	struct block *handler = flow_fixture_block(f, kernel + HANDLER);
	struct block *ret = flow_fixture_block(f, kernel + 11);

	assert_non_null(handler);
	assert_null(block_follow(ret, kernel + HANDLER));
	assert_ptr_equal(block_follow(flow_fixture_block(f, kernel + 5), kernel + 11), ret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_handler_returns_behind_the_instruction, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(it_may_be_the_first_there_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_handler_returns_to_where_the_other_form_leads,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_such_a_return_nothing_is_known, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_int3_in_the_code_is_the_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_looks_behind_an_overflow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_leads_to_the_handler_by_itself, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
