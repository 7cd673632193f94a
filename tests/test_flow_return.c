#include "decode/flow_return.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/flow_packet.h"
#include "decode/patch_inference.h"
#include "tests/flow_fixture.h"

/* 1000: call 9000, which is not known. 1005: call *rax. 1007: jne 1005; jmp *rax. 1040: ret */
struct fixture {
	struct flow_fixture f;
	struct patch_inference inference;
	struct pt_offsets offsets;
};

enum { ROUNDS = 8 };

static void make(struct fixture *fixture)
{
	struct flow_fixture *f = &fixture->f;
	uint8_t code[0x50];

	memset(code, 0xcc, sizeof(code));
	memcpy(code, "\xe8\xfb\x7f\0\0\xff\xd0\x75\xfc\xff\xe0", 11);
	code[0x40] = 0xc3;
	*fixture = (struct fixture){ 0 };
	flow_fixture_init(f);
	flow_fixture_code(f, 0x1000, code, sizeof(code));
	patch_inference_init(&fixture->inference, &f->config, &f->machines, &fixture->offsets);
}

static void tip(struct fixture *fixture, uint64_t ip)
{
	pt_put_ip(&fixture->f.trace, PT_TIP, ip, PT_IP_AUTO);
}

static void tnt(struct fixture *fixture, unsigned bits, unsigned count)
{
	pt_put(&fixture->f.trace,
	       &(struct pt_packet){ .kind = PT_TNT, .payload = bits, .count = (uint16_t)count });
}

/* The function at 1040 is called from 1005 again and again. */
static void go_round(struct fixture *fixture)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		tip(fixture, 0x1040);
		tnt(fixture, 3, 2);
	}
	tip(fixture, 0x1040);
}

/* Follow what the trace has from `ip`, to the end. */
static void follow(struct fixture *fixture, uint64_t ip)
{
	struct flow_fixture *f = &fixture->f;

	flow_fixture_begin(f, ip, false);
	f->flow.where.inference = &fixture->inference;
	while (!flow_next(&f->run))
		;
	patch_inference_free(&fixture->inference);
}

/* How often the flow has an item of this kind and value. */
static unsigned count(const struct fixture *fixture, enum flow_kind kind, uint64_t value)
{
	const struct flow_batch *batch = &fixture->f.batch;
	unsigned ret = 0;

	for (uint32_t i = 0; i < batch->count; i++)
		ret += batch->items[i].kind == kind && batch->items[i].value == value;
	return ret;
}

static void the_call_of_unknown_code_returns(void **state)
{
	struct fixture fixture;

	make(&fixture);
	tnt(&fixture, 1, 3); /* not taken, not taken, return */
	go_round(&fixture);
	follow(&fixture, 0x1000);
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(count(&fixture, FLOW_AT, 0x9000), 1);
	assert_int_equal(count(&fixture, FLOW_BEGIN, 0x1005), 1);
	assert_int_equal(count(&fixture, FLOW_TO, 0x1007), ROUNDS);
	flow_fixture_deinit(&fixture.f);
}

static void it_returns_packets_later(void **state)
{
	struct fixture fixture;

	make(&fixture);
	tnt(&fixture, 0, 1);
	tnt(&fixture, 0, 3);
	tnt(&fixture, 1, 2); /* not taken, return */
	go_round(&fixture);
	follow(&fixture, 0x1000);
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(count(&fixture, FLOW_BEGIN, 0x1005), 1);
	flow_fixture_deinit(&fixture.f);
}

/* The TIP of an indirect branch may come behind the TNT packet. */
static void one_of_two_returns_is_not_chosen(void **state)
{
	struct fixture fixture;

	make(&fixture);
	tnt(&fixture, 3, 2);
	go_round(&fixture);
	follow(&fixture, 0x1000);
	assert_int_equal(count(&fixture, FLOW_BEGIN, 0x1005), 0);
	assert_int_equal(count(&fixture, FLOW_BEGIN, 0x1040), 1);
	flow_fixture_deinit(&fixture.f);
}

static void what_agrees_for_a_moment_is_not_believed(void **state)
{
	struct fixture fixture;

	make(&fixture);
	tnt(&fixture, 1, 1);
	tip(&fixture, 0x1040);
	tnt(&fixture, 0, 2); /* no return is a branch that is not taken */
	go_round(&fixture);
	follow(&fixture, 0x1000);
	assert_int_equal(count(&fixture, FLOW_BEGIN, 0x1005), 0);
	flow_fixture_deinit(&fixture.f);
}

static void a_function_returns_to_a_call_from_before_the_gap(void **state)
{
	struct fixture fixture;

	make(&fixture);
	tip(&fixture, 0x9000); /* it jumps to 1040 */
	tip(&fixture, 0x1040);
	tnt(&fixture, 3, 2);
	go_round(&fixture);
	follow(&fixture, 0x1005);
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(count(&fixture, FLOW_TO, 0x1007), ROUNDS + 1);
	flow_fixture_deinit(&fixture.f);
}

static void a_function_returns_to_where_it_did_before(void **state)
{
	struct return_sites *returns;
	struct fixture fixture;

	make(&fixture);
	returns = &fixture.inference.returns;
	return_sites_note(returns, flow_fixture_block(&fixture.f, 0x1040), 0x1041);
	return_sites_note(returns, flow_fixture_block(&fixture.f, 0x1040), 0x1007);
	tip(&fixture, 0x1040);
	tnt(&fixture, 3, 2);
	go_round(&fixture);
	follow(&fixture, 0x9000); /* where no code is */
	assert_int_equal(fixture.f.flow.gaps, 1);
	assert_int_equal(count(&fixture, FLOW_TO, 0x1007), ROUNDS + 1);
	flow_fixture_deinit(&fixture.f);
}

static void nothing_is_known_of_others(void **state)
{
	struct fixture fixture;

	make(&fixture);
	tip(&fixture, 0x1040);
	tnt(&fixture, 3, 2);
	go_round(&fixture);
	follow(&fixture, 0x9000);
	assert_true(fixture.f.flow.gaps > 1);
	assert_int_equal(count(&fixture, FLOW_TO, 0x1007), 0);
	flow_fixture_deinit(&fixture.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_call_of_unknown_code_returns),
		cmocka_unit_test(it_returns_packets_later),
		cmocka_unit_test(one_of_two_returns_is_not_chosen),
		cmocka_unit_test(what_agrees_for_a_moment_is_not_believed),
		cmocka_unit_test(a_function_returns_to_a_call_from_before_the_gap),
		cmocka_unit_test(a_function_returns_to_where_it_did_before),
		cmocka_unit_test(nothing_is_known_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
