/* script_fields: the fields of each kind of lines, by the options and by what was recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/script.h"

enum {
	PLACE = FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO,
	WHO = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME,
	BRANCHES = WHO | FIELD_EVENT | FIELD_PERIOD | PLACE | FIELD_ADDR | FIELD_SYNTH,
	RECORDED = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	HARDWARE_TYPE = 0,
	SOFTWARE_TYPE = 1,
	TRACEPOINT_TYPE = 2,
	RAW_TYPE = 4,
};

static struct pt_config per_cpu = { .tsc = true, .per_cpu = true, .conv.valid = true };

/* A recording of up to one other event, and options. */
static struct script script_of(struct perf_event *event, const struct script_step *steps,
			       unsigned count)
{
	struct script script = { .print.pt = &per_cpu };

	script.data.events.items = event;
	script.data.events.count = event ? 1 : 0;
	for (unsigned i = 0; i < count; i++)
		script.args.steps[i] = steps[i];
	script.args.step_count = count;
	return script;
}

static struct script parse(struct perf_event *event, const struct script_step *steps,
			   unsigned count)
{
	struct script script = script_of(event, steps, count);
	struct ptvm_error error = { 0 };

	if (script_parse_fields(&script, &error))
		fail_msg("%s", error.message);
	return script;
}

/* Fields of the trace, with one step. */
static uint32_t trace_fields(unsigned kind, const char *text)
{
	const struct script_step step = { kind, text };

	return parse(NULL, &step, 1).print.fields;
}

static void without_options_there_are_those_of_perf(void **state)
{
	struct script script = script_of(NULL, NULL, 0);
	struct pt_config per_thread = { .tsc = true, .conv.valid = true }, untimed = { 0 };
	struct ptvm_error error = { 0 };

	assert_int_equal(parse(NULL, NULL, 0).print.fields, BRANCHES);
	script.print.pt = &per_thread;
	assert_int_equal(script_parse_fields(&script, &error), 0);
	assert_int_equal(script.print.fields, BRANCHES & ~FIELD_CPU);
	script.print.pt = &untimed;
	assert_int_equal(script_parse_fields(&script, &error), 0);
	assert_int_equal(script.print.fields, BRANCHES & ~(FIELD_CPU | FIELD_TIME));
	script.args.pt = "trace";
	assert_int_equal(script_parse_fields(&script, &error), 0);
	assert_int_equal(script.print.fields, BRANCHES & ~WHO);
}

static void presets_have_fields_of_their_own(void **state)
{
	assert_int_equal(trace_fields(STEP_INSN_TRACE, "disasm"),
			 WHO | PLACE | FIELD_DISASM | FIELD_SYNTH);
	assert_int_equal(trace_fields(STEP_INSN_TRACE, "raw"),
			 WHO | PLACE | FIELD_INSN | FIELD_SYNTH);
	assert_int_equal(trace_fields(STEP_CALL_TRACE, NULL), WHO | FIELD_SYM | FIELD_SYMOFF |
								      FIELD_DSO | FIELD_CALLINDENT |
								      FIELD_SYNTH);
	assert_int_equal(trace_fields(STEP_CALL_RET_TRACE, NULL),
			 WHO | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO | FIELD_CALLINDENT |
				 FIELD_SYNTH | FIELD_FLAGS);
	assert_int_equal(trace_fields(STEP_ITRACE, "b"), BRANCHES);
}

static void a_target_goes_when_other_fields_are_chosen(void **state)
{
	assert_int_equal(trace_fields(STEP_FIELDS, "+flags"), BRANCHES | FIELD_FLAGS);
	assert_int_equal(trace_fields(STEP_FIELDS, "+nr,+vmcs"), BRANCHES | FIELD_NR | FIELD_VMCS);
	assert_int_equal(trace_fields(STEP_FIELDS, "-flags"), BRANCHES);
	assert_int_equal(trace_fields(STEP_FIELDS, "+insn"), (BRANCHES | FIELD_INSN) & ~FIELD_ADDR);
	assert_int_equal(trace_fields(STEP_FIELDS, "+comm"), BRANCHES & ~FIELD_ADDR);
	assert_int_equal(trace_fields(STEP_FIELDS, "-time"), BRANCHES & ~(FIELD_TIME | FIELD_ADDR));
	assert_int_equal(trace_fields(STEP_FIELDS, "-time,+addr"), BRANCHES & ~FIELD_TIME);
	assert_int_equal(trace_fields(STEP_FIELDS, "ip"), FIELD_IP);
}

static void names_need_an_address(void **state)
{
	static const struct {
		const char *text;
		uint32_t fields;
		bool lacks;
	} cases[] = {
		{ "sym", 0, true },
		{ "comm,sym,symoff,dso", FIELD_COMM, true },
		{ "-ip,-addr,+dso", BRANCHES & ~(PLACE | FIELD_ADDR), true },
		{ "-ip,-addr", BRANCHES & ~(PLACE | FIELD_ADDR), false },
		{ "ip,symoff", FIELD_IP, true },
		{ "-sym", BRANCHES & ~(FIELD_SYM | FIELD_SYMOFF | FIELD_ADDR), false },
		{ "comm", FIELD_COMM, false },
		{ "addr,sym", FIELD_ADDR | FIELD_SYM, false },
		{ "callindent,sym", FIELD_CALLINDENT | FIELD_SYM, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct script_step step = { STEP_FIELDS, cases[i].text };
		struct script script = parse(NULL, &step, 1);

		assert_int_equal(script.print.fields, cases[i].fields);
		assert_int_equal(script.lacks_address, cases[i].lacks);
	}
}

static void calls_that_are_asked_for_are_shown(void **state)
{
	static const struct {
		const char *text;
		uint32_t fields;
	} cases[] = {
		{ "tid", FIELD_TID | FIELD_IP | FIELD_SYM },
		{ "ip,dso", FIELD_IP | FIELD_SYM | FIELD_DSO },
		{ "-sym,-symoff", BRANCHES & ~(FIELD_ADDR | FIELD_SYM | FIELD_SYMOFF) },
		{ "-ip", BRANCHES & ~(FIELD_ADDR | PLACE) },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct script_step step = { STEP_FIELDS, cases[i].text };
		struct script script = script_of(NULL, &step, 1);
		struct ptvm_error error = { 0 };

		script.print.itrace.chain = 16;
		assert_int_equal(script_parse_fields(&script, &error), 0);
		assert_int_equal(script.print.fields, cases[i].fields);
		script.print.itrace.branches = true;
		assert_int_equal(script_parse_fields(&script, &error), 0);
		assert_int_equal(script.print.fields, trace_fields(STEP_FIELDS, cases[i].text));
	}
}

static void there_is_no_ipc_where_instructions_are_passed_over(void **state)
{
	const struct script_step step = { STEP_FIELDS, "ip,ipc" };
	struct script script = script_of(NULL, &step, 1);
	struct ptvm_error error = { 0 };

	script.print.itrace.quick = 1;
	assert_int_equal(script_parse_fields(&script, &error), 0);
	assert_int_equal(script.print.fields, FIELD_IP);
}

static void options_build_on_one_another(void **state)
{
	const struct script_step steps[] = { { STEP_FIELDS, "ip" },
					     { STEP_INSN_TRACE, "disasm" },
					     { STEP_FIELDS, "+addr,+period" } };
	const struct print_config one = parse(NULL, steps, 1).print;
	const struct print_config all = parse(NULL, steps, 3).print;

	assert_false(one.insn_addr || one.event_period || one.full_insns);
	assert_int_equal(all.fields, FIELD_IP | FIELD_DISASM | FIELD_ADDR | FIELD_PERIOD);
	assert_true(all.insn_addr && all.event_period && all.full_insns);
}

static void flags_outlast_a_list(void **state)
{
	const struct script_step steps[] = { { STEP_FIELDS, "+flags" },
					     { STEP_FIELDS, "ip" },
					     { STEP_FIELDS, "-flags" } };

	assert_int_equal(parse(NULL, steps, 2).print.fields, FIELD_IP | FIELD_FLAGS);
	assert_int_equal(parse(NULL, steps, 3).print.fields, FIELD_IP);
}

static void samples_have_what_was_recorded(void **state)
{
	struct perf_event cycles = { .type = HARDWARE_TYPE, .sample_type = RECORDED };

	assert_int_equal(parse(&cycles, NULL, 0).print.sample_fields[EVENT_HARDWARE],
			 WHO | FIELD_EVENT | FIELD_PERIOD | PLACE);
	cycles.sample_type = PERF_SAMPLE_TIME;
	assert_int_equal(parse(&cycles, NULL, 0).print.sample_fields[EVENT_HARDWARE],
			 FIELD_COMM | FIELD_TIME | FIELD_EVENT | FIELD_PERIOD);
	assert_int_equal(parse(&cycles, NULL, 0).print.sample_fields[EVENT_SOFTWARE], 0);
}

static void a_cpu_that_was_not_recorded_may_be_asked_for(void **state)
{
	const struct script_step step = { STEP_FIELDS, "cpu,addr,ip,time" };
	struct perf_event cycles = { .type = HARDWARE_TYPE, .sample_type = PERF_SAMPLE_TIME };

	assert_int_equal(parse(&cycles, &step, 1).print.sample_fields[EVENT_HARDWARE],
			 FIELD_CPU | FIELD_ADDR | FIELD_TIME);
}

static void tracepoints_have_a_place_where_they_have_call_chains(void **state)
{
	const struct script_step listed = { STEP_FIELDS, "trace:comm,trace" };
	struct perf_event point = { .type = TRACEPOINT_TYPE, .sample_type = RECORDED };
	const uint32_t plain = WHO | FIELD_EVENT | FIELD_TRACE;

	assert_int_equal(parse(&point, NULL, 0).print.sample_fields[EVENT_TRACEPOINT], plain);
	point.sample_type |= PERF_SAMPLE_CALLCHAIN;
	assert_int_equal(parse(&point, NULL, 0).print.sample_fields[EVENT_TRACEPOINT],
			 plain | PLACE);
	assert_int_equal(parse(&point, &listed, 1).print.sample_fields[EVENT_TRACEPOINT],
			 FIELD_COMM | FIELD_TRACE);
}

static void a_kind_has_fields_of_its_own(void **state)
{
	const struct script_step steps[] = { { STEP_FIELDS, "sw:" }, { STEP_FIELDS, "raw:ip" } };
	struct perf_event clock = { .type = SOFTWARE_TYPE, .sample_type = RECORDED };
	struct perf_event raw = { .type = RAW_TYPE, .sample_type = RECORDED | PERF_SAMPLE_ADDR };
	struct script script = parse(&clock, steps, 2);

	assert_int_equal(script.print.sample_fields[EVENT_SOFTWARE], 0);
	assert_int_equal(script.print.fields, BRANCHES);
	assert_int_equal(parse(&raw, steps, 2).print.sample_fields[EVENT_RAW], FIELD_IP);
	assert_int_equal(parse(&raw, steps, 1).print.sample_fields[EVENT_RAW],
			 WHO | FIELD_EVENT | FIELD_PERIOD | PLACE | FIELD_ADDR);
}

static void a_word_that_is_no_field_is_refused(void **state)
{
	const struct script_step step = { STEP_FIELDS, "nosuch" };
	struct script script = script_of(NULL, &step, 1);
	struct ptvm_error error = { 0 };

	assert_int_equal(script_parse_fields(&script, &error), -PTVM_BAD_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_options_there_are_those_of_perf),
		cmocka_unit_test(presets_have_fields_of_their_own),
		cmocka_unit_test(a_target_goes_when_other_fields_are_chosen),
		cmocka_unit_test(names_need_an_address),
		cmocka_unit_test(calls_that_are_asked_for_are_shown),
		cmocka_unit_test(there_is_no_ipc_where_instructions_are_passed_over),
		cmocka_unit_test(options_build_on_one_another),
		cmocka_unit_test(flags_outlast_a_list),
		cmocka_unit_test(samples_have_what_was_recorded),
		cmocka_unit_test(a_cpu_that_was_not_recorded_may_be_asked_for),
		cmocka_unit_test(tracepoints_have_a_place_where_they_have_call_chains),
		cmocka_unit_test(a_kind_has_fields_of_its_own),
		cmocka_unit_test(a_word_that_is_no_field_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
