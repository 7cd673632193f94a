#include "decode/flow/flow_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/flow_fixture.h"

/* From 1000 and from 1010 on there are eight nops and a jmp *%rax. */
enum { BASE = 0x1000, MIDST = 0x1003, OTHER = 0x1010 };

static int set_up(void **state)
{
	static const char bytes[] =
		"\x90\x90\x90\x90\x90\x90\x90\x90\xff\xe0\xcc\xcc\xcc\xcc\xcc\xcc"
		"\x90\x90\x90\x90\x90\x90\x90\x90\xff\xe0";
	static struct flow_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	flow_fixture_init(&fixture);
	flow_fixture_code(&fixture, BASE, bytes, sizeof(bytes) - 1);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	flow_fixture_deinit(*state);
	return 0;
}

static void put_ip(void **state, enum pt_packet_kind kind, uint64_t ip)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, kind, ip, 6);
}

static void put(void **state, struct pt_packet packet)
{
	struct flow_fixture *f = *state;

	pt_put(&f->trace, &packet);
}

/* The flow that is at BASE before these packets has these items; begins anew. */
static void expect(void **state, const char *items)
{
	struct flow_fixture *f = *state;

	flow_fixture_begin(f, BASE, false);
	while (!flow_next(&f->run))
		;
	flow_fixture_expect(f, items);
	pt_bytes_free(&f->trace);
	f->trace = (struct pt_bytes){ 0 };
}

static void a_tip_is_of_the_next_branch_or_of_the_fup_before_it(void **state)
{
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:9+) TO(1010)");
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	put_ip(state, PT_TIP, BASE);
	expect(state, "BLOCK(1000:3) ASYNC(1010) BLOCK(1010:9+) TO(1000)");
}

static void tracing_ends_by_a_branch_or_where_a_fup_says(void **state)
{
	put_ip(state, PT_TIP_PGD, OTHER);
	put_ip(state, PT_TIP_PGE, BASE);
	expect(state, "BLOCK(1000:9+) END(1010) BEGIN(1000)");
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP_PGD, OTHER);
	put_ip(state, PT_FUP, MIDST); /* while it is off: of no effect */
	put_ip(state, PT_TIP_PGE, BASE);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) END_ASYNC(1010) BEGIN(1000) BLOCK(1000:9+) TO(1010)");
}

static void an_overflow_lasts_until_an_address_is_told(void **state)
{
	put(state, (struct pt_packet){ .kind = PT_OVF });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "TIME(0) GAP(3) AT(1000) BEGIN(1003) BLOCK(1003:6+) TO(1010)");
}

static void a_transaction_ends_well_or_is_aborted(void **state)
{
	enum { COMMIT = 0, ABORT = 2 };

	put(state, (struct pt_packet){ .kind = PT_MODE_TSX, .payload = ABORT });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) ABORT(0) ASYNC(1010)");
	put(state, (struct pt_packet){ .kind = PT_MODE_TSX, .payload = ABORT });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP_PGD, OTHER); /* its handler is not traced */
	put_ip(state, PT_TIP_PGE, BASE);
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) END_ASYNC(1010) BEGIN(1000) BLOCK(1000:3) ASYNC(1010)");
	put(state, (struct pt_packet){ .kind = PT_MODE_TSX, .payload = COMMIT });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) BLOCK(1003:6+) TO(1010)");
}

static void an_event_is_told_where_its_fup_says(void **state)
{
	put(state, (struct pt_packet){ .kind = PT_PTW, .payload = 0x55, .count = 4 });
	expect(state, "EVENT(1000) VALUE(55)");
	put(state, (struct pt_packet){ .kind = PT_PTW, .payload = 0x55, .count = 4, .flag = true });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) EVENT(1003) VALUE(55) BLOCK(1003:6+) TO(1010)");
	put_ip(state, PT_TIP_PGD, OTHER); /* while packets about flow are off, too */
	put(state, (struct pt_packet){ .kind = PT_PTW, .payload = 0x55, .count = 4, .flag = true });
	put_ip(state, PT_FUP, MIDST);
	expect(state, "BLOCK(1000:9+) END(1010) EVENT(1003) VALUE(55)");
}

static struct pt_packet write_with_ip(uint64_t value)
{
	return (struct pt_packet){ .kind = PT_PTW, .payload = value, .count = 4, .flag = true };
}

static void an_event_whose_fup_does_not_come_is_told_without_it(void **state)
{
	put(state, write_with_ip(1));
	put(state, (struct pt_packet){ .kind = PT_OVF });
	expect(state, "EVENT(1000) VALUE(1) TIME(0) GAP(3) AT(1000)");
	put(state, write_with_ip(1));
	put_ip(state, PT_TIP_PGD, OTHER);
	expect(state, "EVENT(1000) VALUE(1) BLOCK(1000:9+) END(1010)");
}

/* More events than one FUP can belong to are damage. */
static void events_may_have_one_fup(void **state)
{
	for (uint64_t i = 0; i < FLOW_ANNOUNCED; i++)
		put(state, write_with_ip(i));
	put_ip(state, PT_FUP, BASE);
	expect(state, "EVENT(1000) VALUE(0) EVENT(1000) VALUE(1) EVENT(1000) VALUE(2) "
		      "EVENT(1000) VALUE(3)");
	for (uint64_t i = 0; i <= FLOW_ANNOUNCED; i++)
		put(state, write_with_ip(i));
	put_ip(state, PT_FUP, MIDST);
	expect(state, "EVENT(1000) VALUE(0) EVENT(1000) VALUE(1) EVENT(1000) VALUE(2) "
		      "EVENT(1000) VALUE(3) BLOCK(1000:3) EVENT(1003) VALUE(4)");
}

static void the_fup_behind_an_overflow_may_be_that_of_an_event(void **state)
{
	put(state, (struct pt_packet){ .kind = PT_OVF });
	put(state, write_with_ip(1));
	put_ip(state, PT_FUP, BASE);
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "TIME(0) GAP(3) AT(1000) BEGIN(1000) EVENT(1000) VALUE(1) BLOCK(1000:3) "
		      "ASYNC(1010)");
}

/* An interrupt, and iret, as the SDM numbers them. */
static void only_some_events_are_branches_themselves(void **state)
{
	enum { INTR = 1, IRET = 2 };

	put(state, (struct pt_packet){ .kind = PT_CFE, .payload = INTR, .flag = true });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) EVENT(1003) VALUE(1) ASYNC(1010)");
	put(state, (struct pt_packet){ .kind = PT_CFE, .payload = IRET, .flag = true });
	put_ip(state, PT_FUP, MIDST);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "BLOCK(1000:3) EVENT(1003) VALUE(2) BLOCK(1003:6+) TO(1010)");
}

static void behind_what_is_no_packet_the_next_psb_counts(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_bytes(&f->trace, "\x02\xff", 2);
	put_ip(state, PT_TIP, OTHER);
	pt_put_psb(&f->trace);
	put_ip(state, PT_FUP, MIDST);
	pt_put_value(&f->trace, PT_PSBEND, 0);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "TIME(0) GAP(0) AT(1000) BEGIN(1003) EVENT(1003) VALUE(b) BLOCK(1003:6+) "
		      "TO(1010)");
}

static void without_an_address_nobody_knows_where_it_goes_on(void **state)
{
	struct flow_fixture *f = *state;

	pt_put_ip(&f->trace, PT_TIP, 0, 0);
	put_ip(state, PT_TIP, OTHER);
	expect(state, "TIME(0) GAP(2) AT(1000) BEGIN(1010)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tip_is_of_the_next_branch_or_of_the_fup_before_it),
		TEST(tracing_ends_by_a_branch_or_where_a_fup_says),
		TEST(an_overflow_lasts_until_an_address_is_told),
		TEST(a_transaction_ends_well_or_is_aborted),
		TEST(an_event_is_told_where_its_fup_says),
		TEST(an_event_whose_fup_does_not_come_is_told_without_it),
		TEST(events_may_have_one_fup),
		TEST(the_fup_behind_an_overflow_may_be_that_of_an_event),
		TEST(only_some_events_are_branches_themselves),
		TEST(behind_what_is_no_packet_the_next_psb_counts),
		TEST(without_an_address_nobody_knows_where_it_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
