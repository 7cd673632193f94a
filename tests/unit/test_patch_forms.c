#include "decode/flow/patch_forms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/code/machine_parts.h"
#include "tests/flow_bench.h"

/* One function with one instruction that may be another. */

enum {
	SIZE = 0x100,
	SITE = 2,
	NEXT = SITE + 5,
	APART = 0x20,
	CALLEE = 0x40,
	ITERATOR = 0x60,
	PROBE = 0x80,
	OTHER = 0xc0
};

static const uint64_t base = 0xffffffff81000000;

struct fixture {
	uint8_t code[SIZE], later[SIZE];
	struct machines machines;
};

static void add_symbol(struct fixture *fixture, size_t at, const char *name)
{
	struct symbol symbol = { .start = base + at, .name = name, .is_global = true };

	assert_int_equal(symbols_add(&fixture->machines.host->symbols, &symbol), 0);
}

/* xor; the instruction, of 5 bytes; ret; and apart from that: xor; what else there is; jmp NEXT */
static void make_apart(struct fixture *fixture, const char *insn, const char *apart, size_t size)
{
	*fixture = (struct fixture){ 0 };
	memset(fixture->code, 0xcc, SIZE);
	memcpy(fixture->code, "\x31\xc0", 2);
	memcpy(fixture->code + SITE, insn, 5);
	fixture->code[NEXT] = 0xc3;
	memcpy(fixture->code + APART, apart, size);
	memcpy(fixture->later, fixture->code, SIZE);
	assert_true(bench_machines_new(&fixture->machines));
	assert_true(bench_add_code(fixture->machines.host, base, fixture->code, SIZE));
	add_symbol(fixture, 0, "function");
}

static void make(struct fixture *fixture, const char *insn)
{
	make_apart(fixture, insn, "\x31\xc0\xeb\xe3", 4);
}

static struct patch_forms find(struct fixture *fixture)
{
	struct machine *machine = fixture->machines.host;
	struct patch_forms ret;
	struct insn insn;

	assert_int_equal(symbols_finish(&machine->symbols, true), 0);
	assert_int_equal(later_code_add(&machine->later, base, fixture->code,
					(struct bytes){ fixture->later, SIZE }),
			 0);
	assert_int_equal(insn_read(fixture->code + SITE, SIZE - SITE, base + SITE, 64, &insn), 0);
	patch_forms_find(machine, &insn, 0, &ret);
	assert_true(!ret.count || patch_forms_may_be(machine, &insn, 0));
	machines_free(&fixture->machines);
	return ret;
}

static void assert_option(const struct patch_forms *forms, unsigned index, size_t to,
			  const char *bytes)
{
	assert_true(index < forms->count);
	assert_int_equal(forms->items[index].change.insn.to, base + to);
	assert_int_equal(forms->items[index].change.insn.size, 5);
	assert_memory_equal(forms->items[index].change.insn.bytes, bytes, 5);
}

static void a_label_may_be_a_jump(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\x0f\x1f\x44\0\0");
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_option(&forms, 0, APART, "\xe9\x19\0\0\0");
	assert_int_equal(forms.items[0].unlikely, 0);
	assert_false(forms.items[0].is_known);
}

/* Names for all that ftrace needs, where the instruction is at the beginning of a function. */
static void add_ftrace(struct fixture *fixture)
{
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0, 0xc3 };

	memcpy(fixture->code + CALLEE, call, sizeof(call));
	memcpy(fixture->code + ITERATOR, call, sizeof(call));
	memcpy(fixture->later, fixture->code, SIZE);
	assert_true(bench_add_code(fixture->machines.host, base, fixture->code, SIZE));
	add_symbol(fixture, SITE, "traced");
	add_symbol(fixture, CALLEE, "ftrace_caller");
	add_symbol(fixture, ITERATOR, "ftrace_regs_caller");
	add_symbol(fixture, PROBE, "function_trace_call");
	add_symbol(fixture, OTHER, "kprobe_ftrace_handler");
}

/* What one form makes of the instruction, and whether of all that are alike. */
static void assert_traced(const struct patch_form *form, bool is_for_all, size_t to)
{
	const struct ftrace_change *change = &form->change.ftrace;

	assert_non_null(change->table);
	assert_int_equal(change->site, is_for_all ? 0 : base + SITE);
	assert_int_equal(change->tracer.address, to ? base + to : 0);
}

static void a_function_may_be_traced_alone_or_with_all(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\x0f\x1f\x44\0\0");
	add_ftrace(&fixture);
	forms = find(&fixture);
	assert_int_equal(forms.count, 3);
	assert_traced(&forms.items[0], false, PROBE);
	assert_traced(&forms.items[1], true, PROBE);
	assert_traced(&forms.items[2], false, OTHER);
}

static void a_call_of_ftrace_may_be_a_nop(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\x39\0\0\0");
	add_ftrace(&fixture);
	forms = find(&fixture);
	assert_int_equal(forms.count, 2);
	assert_traced(&forms.items[0], false, 0);
	assert_traced(&forms.items[1], true, 0);
	assert_int_equal(forms.items[0].change.ftrace.copied, base + CALLEE);
}

/* Or the trampoline is in no copy. */
static void a_call_of_nothing_may_also_be_of_a_tracer(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\0\0\x10\0");
	add_ftrace(&fixture);
	forms = find(&fixture);
	assert_int_equal(forms.count, 5);
	assert_traced(&forms.items[0], false, 0);
	assert_traced(&forms.items[2], false, PROBE);
	assert_traced(&forms.items[3], true, PROBE);
	assert_int_equal(forms.items[3].change.ftrace.copied, base + NEXT + 0x100000);
}

static void a_later_copy_tells_of_all_traced_functions(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\x0f\x1f\x44\0\0");
	add_ftrace(&fixture);
	memcpy(fixture.later + SITE, "\xe8\x39\0\0\0", 5);
	forms = find(&fixture);
	assert_int_equal(forms.count, 2);
	assert_true(forms.items[0].is_known);
	assert_traced(&forms.items[0], true, 0);
	assert_int_equal(forms.items[0].change.ftrace.tracer.caller, base + CALLEE);
	assert_option(&forms, 1, CALLEE, "\xe8\x39\0\0\0");
}

/* The kernel's own table says so. */
static void a_label_is_no_traced_function(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;
	struct label_table *labels;

	make(&fixture, "\x0f\x1f\x44\0\0");
	add_ftrace(&fixture);
	labels = &fixture.machines.host->labels;
	*labels = (struct label_table){ .from = base, .to = base + SIZE, .count = 1 };
	labels->items = calloc(1, sizeof(*labels->items));
	assert_non_null(labels->items);
	labels->items[0] = (struct label_entry){ .site = base + SITE, .target = base + APART };
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_option(&forms, 0, APART, "\xe9\x19\0\0\0");
}

static void a_call_of_nothing_may_be_a_nop(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\0\0\x10\0");
	add_symbol(&fixture, CALLEE, "ftrace_regs_caller");
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_option(&forms, 0, NEXT, "\x0f\x1f\x44\0\0");
}

static void a_tracepoint_calls_its_only_probe(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\x39\0\0\0");
	add_symbol(&fixture, CALLEE, "__traceiter_sched_switch");
	add_symbol(&fixture, PROBE, "perf_trace_sched_switch");
	add_symbol(&fixture, OTHER, "perf_trace_sched_wakeup");
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_option(&forms, 0, PROBE, "\xe8\x79\0\0\0");
}

static void a_trampoline_jumps_to_it(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\x39\0\0\0");
	add_symbol(&fixture, CALLEE, "__SCT__tp_func_sched_wakeup");
	add_symbol(&fixture, ITERATOR, "__traceiter_sched_wakeup");
	add_symbol(&fixture, PROBE, "trace_event_raw_event_sched_wakeup_template");
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_option(&forms, 0, PROBE, "\xe8\x79\0\0\0");
}

static void make_tracepoint(struct fixture *fixture)
{
	make_apart(fixture, "\x0f\x1f\x44\0\0", "\x31\xc0\xe8\x39\0\0\0\xeb\xde", 9);
	add_symbol(fixture, ITERATOR, "__traceiter_sched_switch");
	add_symbol(fixture, PROBE, "trace_event_raw_event_sched_switch");
}

/* The label and the call behind it change at the same time; or there are several probes; or all
 * tracepoints of its group are switched on with it. */
static void a_tracepoint_is_switched_on_with_its_probe(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make_tracepoint(&fixture);
	forms = find(&fixture);
	assert_int_equal(forms.count, 3);
	assert_option(&forms, 0, APART, "\xe9\x19\0\0\0");
	assert_int_equal(forms.items[0].change.also.site, 0);
	assert_option(&forms, 1, APART, "\xe9\x19\0\0\0");
	assert_int_equal(forms.items[1].change.also.site, base + APART + 2);
	assert_int_equal(forms.items[1].change.also.to, base + PROBE);
	assert_memory_equal(forms.items[1].change.also.bytes, "\xe8\x59\0\0\0", 5);
	assert_true(forms.items[0].is_usual && forms.items[1].is_usual && forms.items[2].is_usual);
	assert_null(forms.items[1].change.group.table);
	assert_non_null(forms.items[2].change.group.table);
	assert_int_equal(forms.items[2].change.insn.site, 0);
	assert_int_equal(forms.items[2].change.group.user, PROBE_FTRACE);
	assert_true(forms.items[2].change.group.is_on);
}

/* The kernel's own table: the label, and `count` - 1 others of its key. */
static void add_labels(struct fixture *fixture, unsigned count)
{
	struct label_entry items[] = { { .site = base + SITE, .target = base + APART, .size = 5 },
				       { .site = base + OTHER, .target = base, .size = 5 } };
	struct label_table *labels = &fixture->machines.host->labels;

	*labels = (struct label_table){ .from = base, .to = base + SIZE, .count = count };
	labels->items = malloc(sizeof(items));
	assert_non_null(labels->items);
	items[0].next = count - 1;
	memcpy(labels->items, items, sizeof(items));
}

static void a_label_changes_with_its_key(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	for (unsigned count = 1; count <= 2; count++) {
		make(&fixture, "\x0f\x1f\x44\0\0");
		add_labels(&fixture, count);
		forms = find(&fixture);
		assert_int_equal(forms.count, 1);
		assert_int_equal(forms.items[0].change.key.table != NULL, count == 2);
		assert_int_equal(forms.items[0].change.insn.site, count == 2 ? 0 : base + SITE);
		assert_int_equal(forms.items[0].unlikely, 0);
	}
}

static void a_later_copy_tells_of_all_labels_of_a_key(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\x0f\x1f\x44\0\0");
	add_labels(&fixture, 2);
	memcpy(fixture.later + SITE, "\xe9\x19\0\0\0", 5);
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_true(forms.items[0].is_known);
	assert_non_null(forms.items[0].change.key.table);
	assert_int_equal(forms.items[0].change.insn.site, 0);
}

/* It does not tell whether other tracepoints were switched on, too. */
static void a_later_copy_tells_of_a_tracepoint_alone(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make_tracepoint(&fixture);
	memcpy(fixture.later + SITE, "\xe9\x19\0\0\0", 5);
	forms = find(&fixture);
	assert_int_equal(forms.count, 3);
	assert_true(forms.items[0].is_known && forms.items[1].is_known);
	assert_option(&forms, 0, APART, "\xe9\x19\0\0\0");
	assert_int_equal(forms.items[1].change.also.to, base + PROBE);
	assert_non_null(forms.items[2].change.group.table);
	assert_false(forms.items[2].is_known);
}

static void other_calls_are_what_they_are(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\x39\0\0\0");
	add_symbol(&fixture, CALLEE, "schedule");
	forms = find(&fixture);
	assert_int_equal(forms.count, 0);
}

/* The later copy's instruction is used even if it is of another kind, and nothing else is tried. */
static void a_later_copy_is_asked_first(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\x39\0\0\0");
	add_symbol(&fixture, CALLEE, "ftrace_caller");
	memcpy(fixture.later + SITE, "\xc3\xcc\xcc\xcc\xcc", 5);
	forms = find(&fixture);
	assert_int_equal(forms.count, 1);
	assert_int_equal(forms.items[0].change.insn.size, 1);
	assert_int_equal(forms.items[0].change.insn.bytes[0], 0xc3);
	assert_true(forms.items[0].is_known);
}

static void with_a_later_copy_other_calls_are_no_guess(void **state)
{
	struct patch_forms forms;
	struct fixture fixture;

	make(&fixture, "\xe8\x39\0\0\0");
	add_symbol(&fixture, CALLEE, "ftrace_caller");
	fixture.later[SIZE - 1] = 0;
	forms = find(&fixture);
	assert_int_equal(forms.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_may_be_a_jump),
		cmocka_unit_test(a_function_may_be_traced_alone_or_with_all),
		cmocka_unit_test(a_call_of_ftrace_may_be_a_nop),
		cmocka_unit_test(a_call_of_nothing_may_also_be_of_a_tracer),
		cmocka_unit_test(a_later_copy_tells_of_all_traced_functions),
		cmocka_unit_test(a_label_is_no_traced_function),
		cmocka_unit_test(a_call_of_nothing_may_be_a_nop),
		cmocka_unit_test(a_tracepoint_calls_its_only_probe),
		cmocka_unit_test(a_trampoline_jumps_to_it),
		cmocka_unit_test(a_tracepoint_is_switched_on_with_its_probe),
		cmocka_unit_test(a_label_changes_with_its_key),
		cmocka_unit_test(a_later_copy_tells_of_all_labels_of_a_key),
		cmocka_unit_test(a_later_copy_tells_of_a_tracepoint_alone),
		cmocka_unit_test(other_calls_are_what_they_are),
		cmocka_unit_test(a_later_copy_is_asked_first),
		cmocka_unit_test(with_a_later_copy_other_calls_are_no_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
