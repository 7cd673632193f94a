#include "decode/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/record_lines.h"
#include "tests/fake_tree.h"
#include "tests/perf_build.h"
#include "tests/pt_encode.h"

/* Options as parsed, and how to print by them. What the whole verb prints is in cli/run.py. */

enum {
	EXCLUDE_USER = 1 << 4,
	EXCLUDE_KERNEL = 1 << 5,
	EXCLUDE_HOST = 1 << 19,
	EXCLUDE_GUEST = 1 << 20
};

struct fixture {
	struct fake_tree tree;
	char recording[96], raw[96];
	struct script script;
	struct ptvm_error error;
};

/* A recording of one CPU, with AUX records at 1000 and 3000 ns, and other flags of its event. */
static void write_recording(struct fixture *f, uint64_t flags)
{
	enum { FLAGS_AT = 40 };
	struct perf_build build = { 0 };
	struct bytes file;
	uint64_t all;

	perf_build_pt(&build, 0, 1);
	memcpy(&all, build.attrs + FLAGS_AT, 8);
	all |= flags;
	memcpy(build.attrs + FLAGS_AT, &all, 8);
	perf_build_aux_event(&build, 0, 1000, 0, 8, 0);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	perf_build_aux_event(&build, 0, 3000, 8, 8, 0);
	file = perf_build_file(&build);
	fake_tree_bytes(&f->tree, file.data, file.size, "recording");
	perf_build_free(&build);
}

static int set_up(void **state)
{
	static struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.recording, sizeof(fixture.recording), "%s/recording",
		       fixture.tree.path);
	(void)snprintf(fixture.raw, sizeof(fixture.raw), "%s/raw", fixture.tree.path);
	write_recording(&fixture, 0);
	fake_tree_bytes(&fixture.tree, "\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82\2\x82", 16,
			"raw");
	fixture.script.args.input = fixture.recording;
	*state = &fixture;
	return 0;
}

static void close_script(struct fixture *f)
{
	script_close(&f->script);
	memset(&f->script, 0, sizeof(f->script));
	memset(&f->error, 0, sizeof(f->error));
	f->script.args.input = f->recording;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	close_script(f);
	fake_tree_deinit(&f->tree);
	return 0;
}

static void open_good(struct fixture *f)
{
	if (script_open(&f->script, &f->error))
		fail_msg("%s", f->error.message);
}

/* The options so far are refused; begins anew. */
static void assert_refused(struct fixture *f, const char *why)
{
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(f->error.message, why));
	close_script(f);
}

static void use_raw(struct fixture *f)
{
	f->script.args.input = NULL;
	f->script.args.pt = f->raw;
}

static void step(struct fixture *f, unsigned kind, const char *text)
{
	struct script_step *step = &f->script.args.steps[f->script.args.step_count++];

	step->kind = kind;
	step->text = text;
}

static void options_of_the_other_kind_of_trace_are_refused(void **state)
{
	struct fixture *f = *state;

	f->script.args.code_file_count = 1;
	assert_refused(f, "--pt");
	f->script.args.nom_freq = 20;
	assert_refused(f, "--pt");
	use_raw(f);
	f->script.args.input = f->recording;
	assert_refused(f, "for a recording");
	use_raw(f);
	f->script.args.machine.guest_modules = "modules";
	assert_refused(f, "for a recording");
}

static void numbers_of_a_raw_trace_fit_their_registers(void **state)
{
	struct fixture *f = *state;

	use_raw(f);
	f->script.args.mtc_freq = 16;
	assert_refused(f, "--mtc-freq");
	use_raw(f);
	f->script.args.nom_freq = 256;
	assert_refused(f, "--nom-freq");
	use_raw(f);
	f->script.args.cpuid_ebx = (uint64_t)1 << 32;
	assert_refused(f, "--cpuid-0x15");
	use_raw(f);
	f->script.args.mtc_freq = 15;
	f->script.args.nom_freq = 255;
	f->script.args.cpuid_ebx = f->script.args.cpuid_eax = UINT32_MAX;
	open_good(f);
}

static void selections_that_exclude_each_other_are_refused(void **state)
{
	struct fixture *f = *state;

	f->script.args.guest_only = f->script.args.host_only = true;
	assert_refused(f, "--host-only");
	f->script.args.relative_time = f->script.args.delta_time = true;
	assert_refused(f, "--deltatime");
	f->script.args.dump = true;
	f->script.args.vmcs = "1";
	assert_refused(f, "-D");
}

static void a_list_that_is_none_names_its_option(void **state)
{
	struct fixture *f = *state;

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
	struct fixture *f = *state;
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
	assert_true(f->script.nothing_wanted);
}

static void a_raw_trace_is_what_its_options_say(void **state)
{
	struct fixture *f = *state;
	const struct pt_config *config = &f->script.raw_config;

	use_raw(f);
	f->script.args.mtc_freq = 3;
	f->script.args.nom_freq = 20;
	f->script.args.cpuid_ebx = 160;
	f->script.args.cpuid_eax = 2;
	f->script.args.no_correlate = true;
	open_good(f);
	assert_int_equal(f->script.queue_count, 1);
	assert_int_equal(f->script.queues[0].size, 16);
	assert_ptr_equal(f->script.print.pt, config);
	assert_int_equal(config->mtc_shift, 3);
	assert_int_equal(config->ctc_n, 160);
	assert_int_equal(config->ctc_d, 2);
	assert_int_equal(config->max_nonturbo, 20);
	assert_int_equal(config->nominal_hz, 2000000000);
	assert_true(config->guest_tsc_raw);
	assert_in_range(time_conv_ns(&config->conv, 2000000000), 999999000, 1000001000);
	assert_true(f->script.machines.one_for_all);
	assert_null(f->script.print.data);
}

static void a_recording_that_is_not_there_is_told(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unlink(f->recording), 0);
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_SYSTEM);
	assert_non_null(strstr(f->error.message, f->recording));
}

static void a_recording_of_another_user_takes_force(void **state)
{
	struct fixture *f = *state;

	if (geteuid())
		skip(); /* only root can give files away */
	assert_int_equal(chown(f->recording, 12345, 12345), 0);
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(f->error.message, "not owned"));
	close_script(f);
	f->script.args.force = true;
	open_good(f);
}

static void without_itrace_no_queue_is_decoded(void **state)
{
	struct fixture *f = *state;

	f->script.args.no_itrace = true;
	open_good(f);
	assert_int_equal(f->script.queue_count, 0);
	close_script(f);
	open_good(f);
	assert_int_equal(f->script.queue_count, 1);
}

static void presets_are_letters_and_more(void **state)
{
	struct fixture *f = *state;
	const struct print_config *print = &f->script.print;

	open_good(f);
	assert_true(print->itrace.calls && print->itrace.errors);
	assert_false(print->nanoseconds || print->itrace.instructions);
	close_script(f);
	step(f, STEP_INSN_TRACE, "");
	open_good(f);
	assert_true(print->itrace.instructions && print->nanoseconds);
	assert_false(print->itrace.calls);
	close_script(f);
	step(f, STEP_CALL_TRACE, "");
	open_good(f);
	assert_true(print->itrace.calls && !print->itrace.returns);
	assert_int_equal(print->dso_width, 50);
	close_script(f);
	step(f, STEP_CALL_RET_TRACE, "");
	open_good(f);
	assert_true(print->itrace.calls && print->itrace.returns && print->nanoseconds);
	assert_int_equal(print->dso_width, 0);
	close_script(f);
	step(f, STEP_ITRACE, "r");
	step(f, STEP_ITRACE, "b");
	open_good(f);
	assert_true(print->itrace.returns && print->itrace.branches && !print->nanoseconds);
	close_script(f);
	step(f, STEP_ITRACE, "!");
	assert_refused(f, "!");
}

static void assert_modifier(struct fixture *f, uint64_t flags, const char *expected)
{
	write_recording(f, flags);
	open_good(f);
	assert_string_equal(f->script.print.modifier, expected);
	assert_int_equal(f->script.print.name_width, strlen("branches") + strlen(expected));
	close_script(f);
}

static void the_event_is_about_what_it_does_not_exclude(void **state)
{
	struct fixture *f = *state;

	assert_modifier(f, 0, ":HG");
	assert_modifier(f, EXCLUDE_GUEST, "");
	assert_modifier(f, EXCLUDE_USER, ":kh");
	assert_modifier(f, EXCLUDE_KERNEL, ":uh");
	assert_modifier(f, EXCLUDE_USER | EXCLUDE_GUEST, ":khH");
	assert_modifier(f, EXCLUDE_HOST, ":G");
}

static void lines_of_instructions_begin_alike(void **state)
{
	struct fixture *f = *state;

	step(f, STEP_INSN_TRACE, "");
	step(f, STEP_FIELDS, "period,event,ip");
	f->script.args.intel = true;
	open_good(f);
	assert_string_equal(f->script.print.style.lead, "         1 instructions:HG: ");
	assert_true(f->script.print.style.intel);
	close_script(f);
	step(f, STEP_INSN_TRACE, "");
	step(f, STEP_FIELDS, "ip");
	open_good(f);
	assert_string_equal(f->script.print.style.lead, "");
}

static void records_are_shown_by_kind(void **state)
{
	struct fixture *f = *state;

	f->script.args.show_switch = f->script.args.show_mmap = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_SWITCH | RECORDS_MMAP);
	close_script(f);
	f->script.args.show_task = f->script.args.show_lost = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_TASK | RECORDS_LOST);
	close_script(f);
	f->script.args.show_namespace = f->script.args.show_cgroup = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_NAMESPACE | RECORDS_CGROUP);
	close_script(f);
	f->script.args.show_bpf = f->script.args.show_text_poke = true;
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_BPF | RECORDS_TEXT_POKE);
}

static void without_times_of_samples_the_trace_tells_them(void **state)
{
	struct fixture *f = *state;
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
	struct fixture *f = *state;

	f->script.args.times = "50%-100%";
	open_good(f);
	assert_int_equal(f->script.print.times.items[0].from, 2000);
	assert_int_equal(f->script.print.times.items[0].to, 3000);
	assert_true(f->script.nothing_wanted);
	close_script(f);
	use_raw(f);
	f->script.args.times = "50%-100%";
	assert_refused(f, "when it begins");
}

static void threads_have_no_cpu_to_select(void **state)
{
	struct fixture *f = *state;
	struct perf_build build = { 0 };
	struct bytes file;

	perf_build_pt(&build, 0, 0);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	memset(build.bytes + build.aux_index[0] + 8 + 32, 0xff, 4); /* its CPU */
	file = perf_build_file(&build);
	fake_tree_bytes(&f->tree, file.data, file.size, "recording");
	perf_build_free(&build);
	f->script.args.cpus = "0";
	assert_refused(f, "on which CPU");
	f->script.args.cpus = "0";
	f->script.args.dump = true;
	open_good(f);
}

static void a_recording_of_nothing_to_print_is_told(void **state)
{
	struct fixture *f = *state;
	struct perf_build build = { 0 };
	struct bytes file = perf_build_file(&build);

	fake_tree_bytes(&f->tree, file.data, file.size, "recording");
	perf_build_free(&build);
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(f->error.message, "no Intel PT"));
	close_script(f);
	f->script.args.header_only = true;
	open_good(f);
	close_script(f);
	f->script.args.show_task = true;
	open_good(f);
}

static void there_is_a_thread_for_each_cpu_unless_told(void **state)
{
	struct fixture *f = *state;

	open_good(f);
	assert_true(f->script.args.jobs > 0);
	close_script(f);
	f->script.args.jobs = 3;
	open_good(f);
	assert_int_equal(f->script.args.jobs, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(options_of_the_other_kind_of_trace_are_refused),
		TEST(numbers_of_a_raw_trace_fit_their_registers),
		TEST(selections_that_exclude_each_other_are_refused),
		TEST(a_list_that_is_none_names_its_option),
		TEST(selections_go_to_the_printer),
		TEST(a_raw_trace_is_what_its_options_say),
		TEST(a_recording_that_is_not_there_is_told),
		TEST(a_recording_of_another_user_takes_force),
		TEST(without_itrace_no_queue_is_decoded),
		TEST(presets_are_letters_and_more),
		TEST(the_event_is_about_what_it_does_not_exclude),
		TEST(lines_of_instructions_begin_alike),
		TEST(records_are_shown_by_kind),
		TEST(without_times_of_samples_the_trace_tells_them),
		TEST(percentages_are_of_the_time_of_the_trace),
		TEST(threads_have_no_cpu_to_select),
		TEST(a_recording_of_nothing_to_print_is_told),
		TEST(there_is_a_thread_for_each_cpu_unless_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
