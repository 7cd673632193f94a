/* printer: lines of hand-made flow items, where no code is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/printer.h"
#include "tests/print_bench.h"

static void add(struct print_bench *bench, enum flow_kind kind, uint64_t value)
{
	struct flow_item item = { .kind = (uint8_t)kind };

	item.value = value;
	bench->batch.items[bench->batch.count++] = item;
}

static void add_context(struct print_bench *bench, struct pt_context context)
{
	add(bench, FLOW_CONTEXT, bench->batch.context_count);
	bench->batch.contexts[bench->batch.context_count++] = context;
}

static void add_event(struct print_bench *bench, enum pt_packet_kind kind, unsigned extra,
		      uint8_t flags, uint64_t ip, uint64_t payload)
{
	add(bench, FLOW_EVENT, ip);
	bench->batch.items[bench->batch.count - 1].count = kind;
	bench->batch.items[bench->batch.count - 1].extra = (uint16_t)extra;
	bench->batch.items[bench->batch.count - 1].flags = flags;
	add(bench, FLOW_VALUE, payload);
}

static void add_block(struct print_bench *bench, struct block *block)
{
	add(bench, FLOW_BLOCK, 0);
	bench->batch.items[bench->batch.count - 1].block = block;
	bench->batch.items[bench->batch.count - 1].count = block->count;
	bench->batch.items[bench->batch.count - 1].flags = FLOW_TAKEN;
}

/* A jump or nothing special, then a branch back to it. */
static struct block loop_of(struct insn insns[2], enum insn_class first)
{
	insns[0] = (struct insn){ .ip = 0x1000, .class = (uint8_t)first, .target = 0x1004 };
	insns[1] = (struct insn){ .ip = 0x1004, .class = INSN_JCC, .target = 0x1000 };
	return (struct block){
		.ip = 0x1000, .insns = insns, .count = 2, .end = BLOCK_CONDITIONAL, .target = 0x1000
	};
}

static void prints(struct print_bench *bench, const char *expected)
{
	printer_print(&bench->printer, &bench->batch);
	print_bench_expect(bench, expected);
	print_bench_free(bench);
}

static const struct pt_context host = { .bits = 64, .vmcs = UINT64_MAX };
static const struct pt_context guest = { .bits = 64, .nr = true, .vmcs = 0x1000 };

static void the_letters_choose_branches(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_IP | FIELD_ADDR, "c");

	add_context(bench, host);
	add(bench, FLOW_BEGIN, 0x1000);
	add(bench, FLOW_ASYNC, 0x2000);
	prints(bench, "             1000 =>             2000\n");
}

static void events_have_words(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_EVENT | FIELD_SYNTH | FIELD_IP, "wp");

	add_context(bench, host);
	add_event(bench, PT_PTW, 0, FLOW_TAKEN, 0x1234, 0xbeef);
	add_event(bench, PT_CBR, 0, 0, 0, 24);
	add_event(bench, PT_PWRX, 0, 0, 0, 0x136);
	prints(bench, "     ptwrite:  IP: 1 payload: 0xbeef                         1234\n"
		      "         cbr:  cbr: 24 freq: 2400 MHz                           0\n"
		      "        pwrx:  deepest cstate: 6 last cstate: 3 wake reason: 0x1            "
		      "     0\n");
}

static void the_data_of_a_control_flow_event_comes_with_it(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_EVENT | FIELD_SYNTH, "I");

	add_context(bench, host);
	add_event(bench, PT_EVD, 0, 0, 0, 0xabc0);
	add_event(bench, PT_EVD, 9, 0, 0, 1);
	add_event(bench, PT_CFE, 14, FLOW_TAKEN, 0x1000, 1);
	add_event(bench, PT_CFE, 0, 0, 0x1000, 2);
	prints(bench, "         evt:  cfe: INTR IP: 1 vector: 14 PFA: 0xabc0 EVD_9: 0x1\n"
		      "         evt:  cfe: IRET IP: 0 vector: 0        \n");
}

static void the_interrupt_flag_changes_by_a_branch_or_without(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_EVENT | FIELD_SYNTH | FIELD_FLAGS, "Ib");
	struct pt_context clear = host;

	clear.if_clear = true;
	add_context(bench, host);
	add(bench, FLOW_BEGIN, 0x1000);
	add_context(bench, clear);
	add(bench, FLOW_ASYNC, 0x2000);
	add_context(bench, host);
	prints(bench, "  branches:k:   tr strt               \n"
		      "       iflag:                          IFLAG: 1->0 via branch           \n"
		      "  branches:k:   hw int            (t) \n"
		      "       iflag:                          IFLAG: 0->1 non branch           \n");
}

static void transactions_begin_and_end(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_EVENT | FIELD_IP, "x");
	struct pt_context inside = host;

	inside.in_tx = true;
	add_context(bench, host);
	add(bench, FLOW_BEGIN, 0x1000);
	add_context(bench, inside);
	add_context(bench, host);
	prints(bench, "transactions:              1000\ntransactions:              1000\n");
}

static void cycles_belong_to_the_branches_before_which_they_are_told(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_IP | FIELD_IPC, "b");
	struct insn insn = { .ip = 0x1000, .class = INSN_JCC, .target = 0x1000 };
	struct block block = {
		.ip = 0x1000,
		.insns = &insn,
		.count = 1,
		.end = BLOCK_CONDITIONAL,
		.target = 0x1000,
	};

	add_context(bench, host);
	add(bench, FLOW_BEGIN, 0x1000);
	for (uint32_t cycles = 2; cycles <= 4; cycles += 2) {
		add(bench, FLOW_TIME, 100);
		bench->batch.items[bench->batch.count - 1].count = cycles;
		add_block(bench, &block);
	}
	add(bench, FLOW_TIME, 100);
	bench->batch.items[bench->batch.count - 1].count = 8;
	add(bench, FLOW_ASYNC, 0x2000); /* nothing ran */
	prints(bench, "                0\n"
		      "             1000 \t IPC: 0.50 (1/2) \n"
		      "             1000 \t IPC: 0.25 (1/4) \n"
		      "             1000\n");
}

/* Also where the instruction is one of many, or its flags are not those that it has as a rule. */
static void cycles_of_an_instruction_stand_behind_its_bytes(void **state)
{
	struct print_bench *bench =
		print_bench_new(FIELD_FLAGS | FIELD_IP | FIELD_INSN | FIELD_IPC, "i1i");
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_JMP);
	struct pt_context inside = host;

	inside.in_tx = true;
	insns[0].bytes = (const uint8_t *)"\xeb\2";
	insns[1].bytes = (const uint8_t *)"\x74\xfa";
	insns[0].length = insns[1].length = 2;
	for (unsigned i = 0; i < 2; i++) {
		add_context(bench, i ? inside : host);
		add(bench, FLOW_TIME, 100);
		bench->batch.items[bench->batch.count - 1].count = 4;
		add_block(bench, &block);
	}
	prints(bench,
	       "  jmp                                1000 insn: eb 02\n"
	       "  jcc                                1004 insn: 74 fa \t IPC: 0.50 (2/4) \n"
	       "  jmp               (x)              1000 insn: eb 02\n"
	       "  jcc               (x)              1004 insn: 74 fa \t IPC: 0.50 (2/4) \n");
}

static void the_time_of_a_packet_is_that_of_the_branch_it_tells(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_TIME | FIELD_IP, "b");
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_JMP);

	bench->config.nanoseconds = true;
	add_context(bench, host);
	add(bench, FLOW_TIME, 100);
	add(bench, FLOW_BEGIN, 0x1000);
	for (uint64_t time = 200; time <= 300; time += 100) {
		add(bench, FLOW_TIME, time);
		add_block(bench, &block);
	}
	add(bench, FLOW_TIME, 400);
	add(bench, FLOW_ASYNC, 0x2000);
	prints(bench, "    0.000000100:                 0\n"
		      "    0.000000100:              1000\n"
		      "    0.000000200:              1004\n"
		      "    0.000000200:              1000\n"
		      "    0.000000300:              1004\n"
		      "    0.000000400:              1000\n");
}

/* The loop runs three times, in a transaction the second time; its last branch then goes on to what
 * the test adds. */
static struct print_bench *bench_of_loop(uint32_t fields, const char *letters, struct block *block)
{
	struct print_bench *bench = print_bench_new(fields, letters);
	struct pt_context inside = host;

	inside.in_tx = true;
	add_context(bench, host);
	add_block(bench, block);
	add(bench, FLOW_TIME, 0);
	add_context(bench, inside);
	add_block(bench, block);
	add_context(bench, host);
	add_block(bench, block);
	return bench;
}

static void branches_have_flags_of_their_context(void **state)
{
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_JMP);
	struct print_bench *bench = bench_of_loop(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b", &block);

	prints(bench, "  jmp                                1000 =>             1004\n"
		      "  jcc                                1004 =>             1000\n"
		      "  jmp               (x)              1000 =>             1004\n"
		      "  jcc               (x)              1004 =>             1000\n"
		      "  jmp                                1000 =>             1004\n"
		      "  jcc                                1004 =>             1000\n");
}

static void branches_that_are_skipped_count(void **state)
{
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_JMP);
	struct print_bench *bench = bench_of_loop(FIELD_IP, "bs3", &block);

	bench->printer.skip = 3;
	prints(bench, "             1004\n"
		      "             1000\n"
		      "             1004\n");
}

static void tracing_ends_with_a_branch_or_behind_it(void **state)
{
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_PLAIN);
	struct print_bench *bench = print_bench_new(FIELD_FLAGS | FIELD_IP | FIELD_ADDR, "b");

	add_context(bench, host);
	add_block(bench, &block);
	add_block(bench, &block);
	add(bench, FLOW_END_ASYNC, 0);
	add(bench, FLOW_BEGIN, 0x1000);
	add_block(bench, &block);
	add(bench, FLOW_END, 0x1000);
	add(bench, FLOW_BEGIN, 0x1000);
	prints(bench, "  jcc                                1004 =>             1000\n"
		      "  jcc                                1004 =>             1000\n"
		      "  tr end  async                      1000 =>                0\n"
		      "  tr strt                               0 =>             1000\n"
		      "  tr end  jcc                        1004 =>             1000\n"
		      "  tr strt                               0 =>             1000\n");
}

static void a_branch_may_go_elsewhere_than_the_flow_does(void **state)
{
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_PLAIN);
	struct insn ret = { .ip = 0x3000, .class = INSN_RET };
	struct block function = { .ip = 0x3000, .insns = &ret, .count = 1, .end = BLOCK_RETURN };
	struct print_bench *bench = print_bench_new(FIELD_IP | FIELD_ADDR, "b");

	add_context(bench, host);
	add_block(bench, &block);
	add_block(bench, &function); /* after an error in the trace */
	add(bench, FLOW_TO, 0x1000);
	add(bench, FLOW_TIME, 0);
	add_block(bench, &block);
	add_block(bench, &function);
	add(bench, FLOW_TO, 0x2000);
	add_block(bench, &function);
	add(bench, FLOW_TO, 0x1000);
	prints(bench, "             1004 =>             1000\n"
		      "             3000 =>             1000\n"
		      "             1004 =>             1000\n"
		      "             3000 =>             2000\n"
		      "             3000 =>             1000\n");
}

static void the_interrupt_flag_changes_at_the_branch(void **state)
{
	struct insn iret = { .ip = 0x3000, .class = INSN_IRET };
	struct block handler = {
		.ip = 0x3000, .insns = &iret, .count = 1, .end = BLOCK_FAR, .next = 0x3002
	};
	struct print_bench *bench = print_bench_new(FIELD_IP | FIELD_ADDR, "Ib");
	struct pt_context clear = host;

	clear.if_clear = true;
	add_context(bench, clear);
	add(bench, FLOW_BEGIN, 0x3000);
	add_block(bench, &handler);
	add_context(bench, host);
	add(bench, FLOW_TO, 0x1000);
	bench->config.insn_addr = true;
	prints(bench, "                0 =>             3000\n"
		      "            1000             3000\n"
		      "             3000 =>             1000\n");
}

/* What was told of the context since the last branch is no matter of the next one. */
static void an_interrupt_is_from_where_the_last_branch_was(void **state)
{
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_PLAIN);
	struct block nops = {
		.ip = 0x1000, .insns = insns, .count = 1, .end = BLOCK_GOES_ON, .next = 0x1004
	};
	struct print_bench *bench = print_bench_new(FIELD_NR | FIELD_IP | FIELD_ADDR, "b");

	add_context(bench, host);
	add(bench, FLOW_BEGIN, 0x1000);
	add_context(bench, guest);
	add_block(bench, &block);
	add_block(bench, &nops);
	add(bench, FLOW_ASYNC, 0x2000);
	prints(bench, "host                 0 =>             1000\n"
		      "guest              1004 =>             1000\n"
		      "guest              1004 =>             2000\n");
}

/* Without code, what a FUP tells is an instruction; that which an interrupt came at has its flags
 * and is where it was. */
static void instructions_may_be_known_by_packets_only(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_NR | FIELD_FLAGS | FIELD_IP, "i");

	add_context(bench, guest);
	add(bench, FLOW_IP, 0x1000);
	add(bench, FLOW_IP, 0x2000);
	bench->batch.items[bench->batch.count - 1].flags = FLOW_TAKEN;
	add_context(bench, host);
	add(bench, FLOW_ASYNC, 0x3000);
	add(bench, FLOW_IP, 0x4000);
	bench->batch.items[bench->batch.count - 1].flags = FLOW_TAKEN;
	add(bench, FLOW_END_ASYNC, 0);
	prints(bench, "guest                                      1000\n"
		      "guest   bcyh                               2000\n"
		      "host   tr end  async                      4000\n");
}

static void a_branch_that_is_not_taken_is_none(void **state)
{
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_JMP);
	struct print_bench *bench = print_bench_new(FIELD_IP, "b");

	add_context(bench, host);
	add_block(bench, &block);
	bench->batch.items[bench->batch.count - 1].flags = 0;
	prints(bench, "             1000\n");
}

static void a_period_is_due_where_tracing_was_on_for_all_of_it(void **state)
{
	enum { TICKS = 64, OFF = 14 };
	struct print_bench *bench = print_bench_new(FIELD_TIME | FIELD_PERIOD, "i64t");
	struct insn insns[2];
	struct block block = loop_of(insns, INSN_PLAIN);

	bench->config.nanoseconds = true;
	add_context(bench, host);
	for (uint64_t time = 10; time < 17; time++) {
		add(bench, FLOW_TIME, time * TICKS);
		if (time == OFF)
			add(bench, FLOW_END_ASYNC, 0);
		if (time == 10 || time == OFF)
			add(bench, FLOW_BEGIN, 0x1000);
		add_block(bench, &block);
	}
	prints(bench, "    0.000000640:          3 \n"
		      "    0.000000704:          2 \n"
		      "    0.000000768:          2 \n"
		      "    0.000000896:          4 \n"
		      "    0.000000960:          2 \n");
}

/* In blocks of any length, each instruction is counted once. */
static void every_so_many_instructions_have_a_line(void **state)
{
	struct insn insns[8];
	struct block block = { .ip = 0x1000, .insns = insns, .count = 8, .end = BLOCK_GOES_ON };

	for (unsigned i = 0; i < 8; i++)
		insns[i] = (struct insn){ .ip = 0x1000 + i };
	for (unsigned period = 2; period < 20; period++) {
		struct text expected = { 0 };
		char letters[8];
		struct print_bench *bench;

		(void)snprintf(letters, sizeof(letters), "i%ui", period);
		bench = print_bench_new(FIELD_IP, letters);
		add_context(bench, host);
		for (unsigned i = 0; i < 9; i++)
			add_block(bench, &block);
		for (unsigned i = period; i <= 72; i += period) {
			text_putc(&expected, ' ');
			text_hex(&expected, 0x1000 + (i - 1) % 8, 16);
			text_putc(&expected, '\n');
		}
		text_putc(&expected, 0);
		block.lines = NULL;
		prints(bench, expected.data);
		text_free(&expected);
	}
}

static void a_gap_is_told_in_words_of_perf(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_IP, "e");

	add_context(bench, host);
	add(bench, FLOW_GAP, 0);
	bench->batch.items[bench->batch.count - 1].count = GAP_NO_CODE;
	add(bench, FLOW_AT, 0x1000);
	prints(bench, " instruction trace error type 1 time 0.000000000 cpu 1 pid 7 tid 8"
		      " ip 0x1000 code 5: Failed to get instruction (queue 0, file offset 0)\n");
}

static void add_thunk(struct print_bench *bench, uint64_t ip)
{
	add(bench, FLOW_GAP, 0);
	bench->batch.items[bench->batch.count - 1].count = GAP_THUNK;
	add(bench, FLOW_AT, ip);
}

static void a_thunk_that_is_in_no_copy_is_only_counted(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_IP, "e");

	add_context(bench, host);
	add_thunk(bench, 0x1000);
	prints(bench, "");
}

static struct insn call = { .ip = 0x1000, .class = INSN_CALL, .target = 0x9000, .length = 5 };
static struct insn ret = { .ip = 0x2000, .class = INSN_RET, .length = 1 };

/* Each at the time of the packet that tells it. */
static void branches_by_thunks_go_where_these_lead(void **state)
{
	struct block block = { .ip = 0x1000, .insns = &call, .count = 1, .end = BLOCK_NO_CODE };
	struct print_bench *bench = print_bench_new(FIELD_TIME | FIELD_IP | FIELD_ADDR, "b");

	bench->config.nanoseconds = true;
	add_context(bench, host);
	for (uint64_t time = 100; time <= 200; time += 100) {
		add(bench, FLOW_TIME, time);
		add_block(bench, &block);
		add(bench, FLOW_TO, 0x1000);
		add_thunk(bench, 0x9000);
	}
	prints(bench, "    0.000000100:              1000 =>             1000\n"
		      "    0.000000200:              1000 =>             1000\n");
}

/* A call by a trampoline, and the return to it. */
static void branches_by_what_is_left_out_go_where_that_leads(void **state)
{
	struct block blocks[] = {
		{ .ip = 0x1000, .insns = &call, .count = 1, .end = BLOCK_GOES_ON, .next = 0x9000 },
		{ .ip = 0x2000, .insns = &ret, .count = 1, .end = BLOCK_RETURN },
	};
	struct print_bench *bench = print_bench_new(FIELD_TIME | FIELD_IP | FIELD_ADDR, "b");
	const uint64_t to[] = { 0x2000, 0x1005, 0 };

	bench->config.nanoseconds = true;
	add_context(bench, host);
	for (unsigned i = 0; i < 3; i++) {
		add(bench, FLOW_TIME, 100 * i);
		add_block(bench, &blocks[i > 0]);
		add(bench, FLOW_TO, 0);
		add(bench, FLOW_TIME, 100 * i + 50);
		add_thunk(bench, 0x9000);
		if (to[i])
			add(bench, FLOW_TO, to[i]);
	}
	prints(bench, "    0.000000000:              1000 =>             2000\n"
		      "    0.000000100:              2000 =>             1005\n"
		      "    0.000000200:              2000 =>                0\n");
}

static void only_wanted_sides_are_printed(void **state)
{
	struct print_bench *bench = print_bench_new(FIELD_IP | FIELD_ADDR, "b");

	bench->config.guest_only = true;
	add_context(bench, guest);
	add(bench, FLOW_BEGIN, 0x1000);
	add_context(bench, host);
	add(bench, FLOW_ASYNC, 0x2000);
	prints(bench, "                0 =>             1000\n"
		      "             1000 =>                0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_letters_choose_branches),
		cmocka_unit_test(events_have_words),
		cmocka_unit_test(the_data_of_a_control_flow_event_comes_with_it),
		cmocka_unit_test(the_interrupt_flag_changes_by_a_branch_or_without),
		cmocka_unit_test(transactions_begin_and_end),
		cmocka_unit_test(cycles_belong_to_the_branches_before_which_they_are_told),
		cmocka_unit_test(cycles_of_an_instruction_stand_behind_its_bytes),
		cmocka_unit_test(the_time_of_a_packet_is_that_of_the_branch_it_tells),
		cmocka_unit_test(branches_have_flags_of_their_context),
		cmocka_unit_test(branches_that_are_skipped_count),
		cmocka_unit_test(tracing_ends_with_a_branch_or_behind_it),
		cmocka_unit_test(a_branch_may_go_elsewhere_than_the_flow_does),
		cmocka_unit_test(the_interrupt_flag_changes_at_the_branch),
		cmocka_unit_test(an_interrupt_is_from_where_the_last_branch_was),
		cmocka_unit_test(instructions_may_be_known_by_packets_only),
		cmocka_unit_test(a_branch_that_is_not_taken_is_none),
		cmocka_unit_test(a_period_is_due_where_tracing_was_on_for_all_of_it),
		cmocka_unit_test(every_so_many_instructions_have_a_line),
		cmocka_unit_test(a_gap_is_told_in_words_of_perf),
		cmocka_unit_test(a_thunk_that_is_in_no_copy_is_only_counted),
		cmocka_unit_test(branches_by_thunks_go_where_these_lead),
		cmocka_unit_test(branches_by_what_is_left_out_go_where_that_leads),
		cmocka_unit_test(only_wanted_sides_are_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
