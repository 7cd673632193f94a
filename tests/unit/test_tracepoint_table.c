#include "decode/code/tracepoint_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* A function with a label, and code apart from that which calls the probes of a tracepoint. */

enum {
	SIZE = 0x400,
	LABEL = 2, /* of 5 bytes */
	NEXT = LABEL + 5,
	APART = 0x20,
	CALL = APART + 2,
	OTHER = 0x80, /* another function */
	ITERATOR = 0x300,
	SECOND = 0x310,
	PROBE = 0x320,
	SECOND_PROBE = 0x330,
};

static const uint64_t base = 0xffffffff81000000;

struct fixture {
	uint8_t code[SIZE];
	struct machines machines;
	struct tracepoint_table table;
};

static void put(struct fixture *f, size_t at, const char *bytes, size_t size)
{
	memcpy(f->code + at, bytes, size);
}

static void put_branch(struct fixture *f, size_t at, uint8_t opcode, size_t to)
{
	uint32_t distance = (uint32_t)(to - (at + 5));

	f->code[at] = opcode;
	memcpy(f->code + at + 1, &distance, 4);
}

static void name(struct fixture *f, size_t at, const char *name)
{
	struct symbol symbol = { .start = base + at, .name = name, .is_global = true };

	assert_int_equal(symbols_add(&f->machines.host->symbols, &symbol), 0);
}

/* xor; the label; ret; and APART: xor; call ITERATOR; jmp NEXT */
static void make(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	memset(f->code, 0xcc, SIZE);
	put(f, 0, "\x31\xc0\x0f\x1f\x44\0\0\xc3", 8);
	put(f, APART, "\x31\xc0", 2);
	put_branch(f, CALL, 0xe8, ITERATOR);
	put_branch(f, CALL + 5, 0xe9, NEXT);
	assert_true(bench_machines_new(&f->machines));
	name(f, 0, "function");
	name(f, OTHER, "other");
	name(f, ITERATOR, "__traceiter_sched_switch");
	name(f, SECOND, "__traceiter_sched_waking");
	name(f, PROBE, "trace_event_raw_event_sched_switch");
	name(f, SECOND_PROBE, "trace_event_raw_event_sched_waking");
}

static void read_all(struct fixture *f)
{
	struct machine *machine = f->machines.host;

	assert_true(bench_add_code(machine, base, f->code, SIZE));
	assert_int_equal(symbols_finish(&machine->symbols, true), 0);
	assert_int_equal(tracepoint_table_read(machine, machine_probes(machine), &f->table), 0);
}

static void finish(struct fixture *f)
{
	tracepoint_table_free(&f->table);
	machines_free(&f->machines);
}

static const struct tracepoint_site *find(struct fixture *f, size_t at)
{
	return tracepoint_table_find(&f->table, base + at);
}

static struct tracepoint_group group_of(struct fixture *f, size_t at, bool is_on)
{
	return (struct tracepoint_group){ &f->table, find(f, at)->entry->unit, PROBE_FTRACE,
					  is_on };
}

static void assert_label(struct fixture *f, size_t at, size_t target, size_t call)
{
	const struct tracepoint_site *site = find(f, at);

	assert_non_null(site);
	assert_int_equal(site->target, base + target);
	assert_int_equal(site->call, call ? base + call : 0);
	assert_false(site->is_doubtful);
}

static void a_call_and_its_label_are_found(void **state)
{
	struct fixture f;

	make(&f);
	read_all(&f);
	assert_int_equal(f.table.count, 2);
	assert_label(&f, LABEL, APART, CALL);
	assert_int_equal(find(&f, LABEL)->copied, base + NEXT);
	assert_int_equal(find(&f, CALL)->target, 0);
	assert_int_equal(find(&f, CALL)->entry->iterator, base + ITERATOR);
	assert_null(find(&f, 0));
	finish(&f);
}

static void a_group_is_switched_on(void **state)
{
	struct tracepoint_group group;
	struct patched_insn insn;
	struct fixture f;

	make(&f);
	read_all(&f);
	group = group_of(&f, LABEL, true);
	assert_true(tracepoint_group_has(&group, find(&f, LABEL)));
	assert_true(tracepoint_group_insn(&group, find(&f, LABEL), &insn));
	assert_int_equal(insn.to, base + APART);
	assert_int_equal(insn.bytes[0], 0xe9);
	assert_true(tracepoint_group_insn(&group, find(&f, CALL), &insn));
	assert_int_equal(insn.to, base + PROBE);
	assert_int_equal(insn.bytes[0], 0xe8);
	group.is_on = false;
	assert_false(tracepoint_group_insn(&group, find(&f, LABEL), &insn));
	assert_false(tracepoint_group_insn(&group, find(&f, CALL), &insn));
	group.user = PROBE_PERF;
	assert_false(tracepoint_group_has(&group, find(&f, LABEL)));
	group = group_of(&f, LABEL, true);
	group.unit++;
	assert_false(tracepoint_group_has(&group, find(&f, LABEL)));
	finish(&f);
}

/* When it was copied, there were several probes. */
static void a_group_is_switched_off(void **state)
{
	struct tracepoint_group group;
	struct patched_insn insn;
	struct fixture f;

	make(&f);
	put_branch(&f, LABEL, 0xe9, APART);
	read_all(&f);
	assert_label(&f, LABEL, APART, CALL);
	group = group_of(&f, LABEL, false);
	assert_true(tracepoint_group_insn(&group, find(&f, LABEL), &insn));
	assert_int_equal(insn.to, base + NEXT);
	assert_false(tracepoint_group_insn(&group, find(&f, CALL), &insn));
	group.is_on = true;
	assert_false(tracepoint_group_insn(&group, find(&f, LABEL), &insn));
	finish(&f);
}

/* Another label comes first, and goes on here when it is a NOP. */
static void of_two_the_one_that_is_come_back_to_is_likelier(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, NEXT, "\x0f\x1f\x44\0\0\xc3", 6);
	put_branch(&f, CALL + 5, 0xe9, NEXT + 5);
	read_all(&f);
	assert_label(&f, NEXT, APART, CALL);
	assert_non_null(find(&f, LABEL));
	assert_true(find(&f, LABEL)->is_doubtful);
	finish(&f);
}

/* Behind the call is a NOP of 5 bytes, where the kernel may preempt. */
static void what_follows_the_call_is_no_label_of_it(void **state)
{
	struct fixture f;

	make(&f);
	put(&f, CALL + 5, "\x74\x05", 2); /* je to the NOP */
	put_branch(&f, CALL + 7, 0xe9, NEXT);
	put(&f, CALL + 12, "\x0f\x1f\x44\0\0", 5);
	put_branch(&f, CALL + 17, 0xe9, NEXT);
	read_all(&f);
	assert_label(&f, LABEL, APART, CALL);
	assert_null(find(&f, CALL + 12));
	finish(&f);
}

/* What follows the label is a jump, which the code apart from it has, too. */
static void who_comes_back_to_where_a_jump_leads_comes_back(void **state)
{
	struct fixture f;

	make(&f);
	put_branch(&f, NEXT, 0xe9, 0x10);
	put(&f, 0x10, "\xc3", 1);
	put_branch(&f, CALL + 5, 0xe9, 0x10);
	read_all(&f);
	assert_label(&f, LABEL, APART, CALL);
	finish(&f);
}

/* label; jmp; xor; call; ret */
static void a_label_may_skip_nothing_but_a_jump(void **state)
{
	struct fixture f;

	make(&f);
	memset(f.code + APART, 0xcc, 0x20);
	put_branch(&f, NEXT, 0xe9, 0x30);
	put(&f, NEXT + 5, "\x31\xc0", 2);
	put_branch(&f, NEXT + 7, 0xe8, ITERATOR);
	put(&f, NEXT + 12, "\xc3", 1);
	put(&f, 0x30, "\xc3", 1);
	read_all(&f);
	assert_label(&f, LABEL, NEXT + 5, NEXT + 7);
	finish(&f);
}

/* Another function: xor; xor; xor; 2 bytes each: label; label; label; jmp over; what they lead to
 */
static void labels_in_a_row_are_of_the_unit_that_is_next(void **state)
{
	struct tracepoint_group group;
	struct patched_insn insn;
	struct fixture f;

	make(&f);
	put(&f, OTHER,
	    "\x31\xc0\x31\xc0\x31\xc0\x66\x90\x66\x90\x66\x90\xeb\x02\x31\xdb\x31\xc9\xc3", 19);
	read_all(&f);
	assert_label(&f, OTHER + 6, OTHER + 14, 0);
	assert_null(find(&f, OTHER + 12));
	group = group_of(&f, LABEL, true);
	assert_true(tracepoint_group_has(&group, find(&f, OTHER + 6)));
	assert_true(tracepoint_group_insn(&group, find(&f, OTHER + 6), &insn));
	assert_memory_equal(insn.bytes, "\xeb\x06", 2);
	finish(&f);
}

static void without_calls_a_row_is_nobodys(void **state)
{
	struct fixture f;

	make(&f);
	put_branch(&f, CALL, 0xe8, OTHER);
	put(&f, OTHER,
	    "\x31\xc0\x31\xc0\x31\xc0\x66\x90\x66\x90\x66\x90\xeb\x02\x31\xdb\x31\xc9\xc3", 19);
	read_all(&f);
	assert_int_equal(f.table.count, 0);
	finish(&f);
}

/* The call is in the part of a function that lies elsewhere. */
static void the_labels_of_a_cold_part_are_in_the_function(void **state)
{
	struct fixture f;

	make(&f);
	put_branch(&f, 8, 0xe9, OTHER + 0x40);
	memset(f.code + APART, 0xcc, 0x20);
	put(&f, OTHER + 0x40, "\x90\xc3\x31\xc0", 4);
	put_branch(&f, OTHER + 0x44, 0xe8, SECOND);
	put_branch(&f, OTHER + 0x49, 0xe9, NEXT);
	name(&f, OTHER + 0x40, "function.cold");
	read_all(&f);
	assert_label(&f, LABEL, OTHER + 0x42, OTHER + 0x44);
	finish(&f);
}

static void modules_are_left_out(void **state)
{
	struct fixture f;

	make(&f);
	for (size_t i = 0; i < f.machines.host->symbols.count; i++)
		if (!strcmp(f.machines.host->symbols.items[i].name, "function"))
			f.machines.host->symbols.items[i].module = "[module]";
	read_all(&f);
	assert_int_equal(f.table.count, 0);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_and_its_label_are_found),
		cmocka_unit_test(a_group_is_switched_on),
		cmocka_unit_test(a_group_is_switched_off),
		cmocka_unit_test(of_two_the_one_that_is_come_back_to_is_likelier),
		cmocka_unit_test(what_follows_the_call_is_no_label_of_it),
		cmocka_unit_test(who_comes_back_to_where_a_jump_leads_comes_back),
		cmocka_unit_test(a_label_may_skip_nothing_but_a_jump),
		cmocka_unit_test(labels_in_a_row_are_of_the_unit_that_is_next),
		cmocka_unit_test(without_calls_a_row_is_nobodys),
		cmocka_unit_test(the_labels_of_a_cold_part_are_in_the_function),
		cmocka_unit_test(modules_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
