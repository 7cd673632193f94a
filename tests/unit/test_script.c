#include "decode/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "decode/print/record_lines.h"
#include "tests/perf_build.h"
#include "tests/script_fixture.h"

/* Options as parsed, and how to print by them. What the whole verb prints is in cli/run.py. */

enum {
	EXCLUDE_USER = 1 << 4,
	EXCLUDE_KERNEL = 1 << 5,
	EXCLUDE_HV = 1 << 6,
	EXCLUDE_HOST = 1 << 19,
	EXCLUDE_GUEST = 1 << 20
};

static void open_good(struct script_fixture *f)
{
	if (script_open(&f->script, &f->error))
		fail_msg("%s", f->error.message);
}

/* The options so far are refused; begins anew. */
static void assert_refused(struct script_fixture *f, const char *why)
{
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(f->error.message, why));
	script_fixture_close(f);
}

static void step(struct script_fixture *f, unsigned kind, const char *text)
{
	struct script_step *step = &f->script.args.steps[f->script.args.step_count++];

	step->kind = kind;
	step->text = text;
}

static void what_cannot_be_opened_is_told(void **state)
{
	struct script_fixture *f = *state;

	f->script.args.mtc_freq = 1;
	assert_refused(f, "--pt");
	f->script.args.input = "/nowhere";
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_SYSTEM);
	assert_non_null(strstr(f->error.message, "/nowhere"));
}

static void selections_that_exclude_each_other_are_refused(void **state)
{
	struct script_fixture *f = *state;
	struct script_args *args = &f->script.args;
	const char **const of_lines[] = { &args->times, &args->tids,  &args->pids,
					  &args->comms, &args->vcpus, &args->vmcs };
	bool *const sides[] = { &args->guest_only, &args->host_only };

	args->guest_only = args->host_only = true;
	assert_refused(f, "--guest-only and --host-only exclude each other");
	args->relative_time = args->delta_time = true;
	assert_refused(f, "--reltime and --deltatime exclude each other");
	for (size_t i = 0; i < sizeof(of_lines) / sizeof(*of_lines); i++) {
		args->dump = true;
		*of_lines[i] = "1";
		assert_refused(f, "-D is of all records and packets");
	}
	for (size_t i = 0; i < sizeof(sides) / sizeof(*sides); i++) {
		args->dump = true;
		*sides[i] = true;
		assert_refused(f, "-D is of all records and packets");
	}
	args->dump = true;
	args->cpus = "0";
	open_good(f);
}

static void each_form_of_a_line_is_an_option_of_its_own(void **state)
{
	struct script_fixture *f = *state;
	const struct print_config *print = &f->script.print;

	f->script.args.relative_time = true;
	open_good(f);
	assert_true(print->relative_time && !print->delta_time && !print->nanoseconds);
	script_fixture_close(f);
	f->script.args.delta_time = f->script.args.nanoseconds = true;
	open_good(f);
	assert_true(!print->relative_time && print->delta_time && print->nanoseconds);
	script_fixture_close(f);
	f->script.args.host_only = true;
	open_good(f);
	assert_true(print->host_only && !print->guest_only && !print->color);
}

static void a_list_that_is_none_names_its_option(void **state)
{
	struct script_fixture *f = *state;

	f->script.args.cpus = "x";
	assert_refused(f, "-C");
	f->script.args.tids = "x";
	assert_refused(f, "--tid");
	f->script.args.pids = "x";
	assert_refused(f, "--pid");
	f->script.args.vcpus = "x";
	assert_refused(f, "--vcpu");
	f->script.args.vmcs = "x";
	assert_refused(f, "--vmcs");
}

static void selections_go_to_the_printer(void **state)
{
	struct script_fixture *f = *state;
	const struct print_config *print = &f->script.print;

	f->script.args.cpus = "0-1";
	f->script.args.tids = "2";
	f->script.args.pids = "3";
	f->script.args.vcpus = "4";
	f->script.args.vmcs = "0x5";
	f->script.args.comms = "qemu";
	f->script.args.guest_only = true;
	open_good(f);
	assert_int_equal(print->cpus.items[0].to, 1);
	assert_int_equal(print->tids.items[0].from, 2);
	assert_int_equal(print->pids.items[0].from, 3);
	assert_int_equal(print->vcpus.items[0].from, 4);
	assert_int_equal(print->vmcs.items[0].from, 5);
	assert_string_equal(print->comms, "qemu");
	assert_true(print->guest_only && !print->host_only);
	assert_true(f->script.may_be_empty);
}

static void how_to_print_knows_what_was_opened(void **state)
{
	struct script_fixture *f = *state;
	const struct script *script = &f->script;

	open_good(f);
	assert_ptr_equal(script->print.machines, &script->machines);
	assert_non_null(script->sideband);
	assert_ptr_equal(script->print.sideband, script->sideband);
	assert_false(script->print.timeless);
	script_fixture_close(f);
	step(f, STEP_ITRACE, "Zb");
	open_good(f);
	assert_true(script->print.timeless);
}

static void presets_are_letters_and_more(void **state)
{
	struct script_fixture *f = *state;
	const struct print_config *print = &f->script.print;

	open_good(f);
	assert_true(print->itrace.calls && print->itrace.errors);
	assert_false(print->nanoseconds || print->itrace.instructions);
	script_fixture_close(f);
	step(f, STEP_INSN_TRACE, "");
	open_good(f);
	assert_true(print->itrace.instructions && print->nanoseconds);
	assert_false(print->itrace.calls);
	script_fixture_close(f);
	step(f, STEP_CALL_TRACE, "");
	open_good(f);
	assert_true(print->itrace.calls && !print->itrace.returns);
	assert_int_equal(print->dso_width, 50);
	script_fixture_close(f);
	step(f, STEP_CALL_RET_TRACE, "");
	open_good(f);
	assert_true(print->itrace.calls && print->itrace.returns && print->nanoseconds);
	assert_int_equal(print->dso_width, 0);
	script_fixture_close(f);
	step(f, STEP_ITRACE, "r");
	step(f, STEP_ITRACE, "b");
	open_good(f);
	assert_true(print->itrace.returns && print->itrace.branches && !print->nanoseconds);
	script_fixture_close(f);
	step(f, STEP_ITRACE, "!");
	assert_refused(f, "!");
}

static void assert_modifier(struct script_fixture *f, uint64_t flags, const char *expected)
{
	script_fixture_record(f, flags);
	open_good(f);
	assert_string_equal(f->script.print.modifier, expected);
	assert_int_equal(f->script.print.name_width, strlen("branches") + strlen(expected));
	script_fixture_close(f);
}

static void the_event_is_about_what_it_does_not_exclude(void **state)
{
	struct script_fixture *f = *state;

	assert_modifier(f, 0, ":HG");
	assert_modifier(f, EXCLUDE_GUEST, "");
	assert_modifier(f, EXCLUDE_USER, ":kh");
	assert_modifier(f, EXCLUDE_KERNEL, ":uh");
	assert_modifier(f, EXCLUDE_USER | EXCLUDE_GUEST, ":khH");
	assert_modifier(f, EXCLUDE_HOST, ":G");
	assert_modifier(f, EXCLUDE_HV, ":ku");
	assert_modifier(
		f, EXCLUDE_USER | EXCLUDE_KERNEL | EXCLUDE_HV | EXCLUDE_HOST | EXCLUDE_GUEST, "");
}

static void lines_of_instructions_begin_alike(void **state)
{
	struct script_fixture *f = *state;

	step(f, STEP_INSN_TRACE, "");
	step(f, STEP_FIELDS, "period,event,ip");
	f->script.args.intel = true;
	open_good(f);
	assert_string_equal(f->script.print.style.lead, "         1 instructions:HG: ");
	assert_true(f->script.print.style.intel);
	script_fixture_close(f);
	step(f, STEP_INSN_TRACE, "");
	step(f, STEP_FIELDS, "ip");
	open_good(f);
	assert_string_equal(f->script.print.style.lead, "");
}

static void records_are_shown_by_kind(void **state)
{
	struct script_fixture *f = *state;

	f->script.args.show_switch = f->script.args.show_mmap = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_SWITCH | RECORDS_MMAP);
	script_fixture_close(f);
	f->script.args.show_task = f->script.args.show_lost = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_TASK | RECORDS_LOST);
	script_fixture_close(f);
	f->script.args.show_namespace = f->script.args.show_cgroup = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_NAMESPACE | RECORDS_CGROUP);
	script_fixture_close(f);
	f->script.args.show_bpf = f->script.args.show_text_poke = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_BPF | RECORDS_TEXT_POKE);
}

static void samples_of_other_events_are_lines_too(void **state)
{
	enum { SOFTWARE = 1, CONTEXT_SWITCHES = 3 };
	struct script_fixture *f = *state;
	struct perf_build build = { 0 }, untraced = { 0 };

	open_good(f);
	assert_int_equal(f->script.print.records, 0);
	script_fixture_close(f);
	perf_build_pt(&build, 0, 1);
	perf_build_event(&build, SOFTWARE, CONTEXT_SWITCHES, BUILD_SAMPLE_TYPE, 2, 128);
	script_fixture_write(f, &build);
	step(f, STEP_ITRACE, "bG");
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_SAMPLE);
	assert_int_equal(f->script.print.itrace.samples.calls, 16);
	script_fixture_close(f);
	perf_build_event(&untraced, SOFTWARE, CONTEXT_SWITCHES, BUILD_SAMPLE_TYPE, 2, 128);
	script_fixture_write(f, &untraced);
	step(f, STEP_ITRACE, "bG");
	open_good(f);
	assert_int_equal(f->script.print.itrace.samples.calls, 0); /* there is no trace to ask */
	assert_false(f->script.print.timeless);
}

static void without_times_of_samples_the_trace_tells_them(void **state)
{
	struct script_fixture *f = *state;
	uint64_t first, last;

	open_good(f);
	script_times(&f->script.data, &first, &last);
	assert_int_equal(first, 1000);
	assert_int_equal(last, 3000);
	f->script.data.features.first_sample_ns = 5;
	script_times(&f->script.data, &first, &last);
	assert_int_equal(first, 5);
	assert_int_equal(last, 3000);
	f->script.data.features.last_sample_ns = 7;
	script_times(&f->script.data, &first, &last);
	assert_int_equal(last, 7);
	f->script.data.features.first_sample_ns = f->script.data.features.last_sample_ns = 0;
	f->script.data.records.count = 0;
	script_times(&f->script.data, &first, &last);
	assert_int_equal(first, 0);
	assert_int_equal(last, 0);
}

static void percentages_are_of_the_time_of_the_trace(void **state)
{
	struct script_fixture *f = *state;

	f->script.args.times = "50%-100%";
	open_good(f);
	assert_int_equal(f->script.print.times.items[0].from, 2000);
	assert_int_equal(f->script.print.times.items[0].to, 3000);
	assert_true(f->script.may_be_empty);
	script_fixture_close(f);
	script_fixture_raw(f);
	f->script.args.times = "50%-100%";
	assert_refused(f, "when it begins");
}

static void threads_have_no_cpu_to_select(void **state)
{
	struct script_fixture *f = *state;
	struct perf_build build = { 0 };

	perf_build_pt(&build, 0, 0);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	memset(build.bytes + build.aux_index[0] + 8 + 32, 0xff, 4); /* its CPU */
	script_fixture_write(f, &build);
	f->script.args.cpus = "0";
	assert_refused(f, "on which CPU");
	f->script.args.cpus = "0";
	f->script.args.dump = true;
	open_good(f);
}

static void a_recording_of_nothing_to_print_is_told(void **state)
{
	struct script_fixture *f = *state;
	struct perf_build build = { 0 };

	script_fixture_write(f, &build);
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(f->error.message, "no Intel PT"));
	script_fixture_close(f);
	f->script.args.header_only = true;
	open_good(f);
	script_fixture_close(f);
	f->script.args.show_task = true;
	open_good(f);
}

static void there_is_a_thread_for_each_cpu_unless_told(void **state)
{
	struct script_fixture *f = *state;

	open_good(f);
	assert_true(f->script.args.jobs > 0);
	script_fixture_close(f);
	f->script.args.jobs = 3;
	open_good(f);
	assert_int_equal(f->script.args.jobs, 3);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, script_fixture_set_up, script_fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_cannot_be_opened_is_told),
		TEST(selections_that_exclude_each_other_are_refused),
		TEST(each_form_of_a_line_is_an_option_of_its_own),
		TEST(a_list_that_is_none_names_its_option),
		TEST(selections_go_to_the_printer),
		TEST(how_to_print_knows_what_was_opened),
		TEST(presets_are_letters_and_more),
		TEST(the_event_is_about_what_it_does_not_exclude),
		TEST(lines_of_instructions_begin_alike),
		TEST(records_are_shown_by_kind),
		TEST(samples_of_other_events_are_lines_too),
		TEST(without_times_of_samples_the_trace_tells_them),
		TEST(percentages_are_of_the_time_of_the_trace),
		TEST(threads_have_no_cpu_to_select),
		TEST(a_recording_of_nothing_to_print_is_told),
		TEST(there_is_a_thread_for_each_cpu_unless_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
