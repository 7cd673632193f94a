#include "decode/script.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/record_lines.h"
#include "decode/sideband.h"
#include "tests/elf_make.h"
#include "tests/fake_tree.h"
#include "tests/perf_build.h"
#include "tests/pt_encode.h"

/* Options as parsed, and how to print by them. What the whole verb prints is in cli/run.py. */

enum {
	EXCLUDE_USER = 1 << 4,
	EXCLUDE_KERNEL = 1 << 5,
	EXCLUDE_HV = 1 << 6,
	EXCLUDE_HOST = 1 << 19,
	EXCLUDE_GUEST = 1 << 20
};

struct fixture {
	struct fake_tree tree;
	char recording[96], raw[96];
	struct script script;
	struct ptvm_error error;
};

/* Ends `build`. */
static void write_build(struct fixture *f, struct perf_build *build, const char *name)
{
	struct bytes file = perf_build_file(build);

	fake_tree_bytes(&f->tree, file.data, file.size, name);
	perf_build_free(build);
}

/* A recording of one CPU, with AUX records at 1000 and 3000 ns, and other flags of its event. */
static void write_recording(struct fixture *f, uint64_t flags)
{
	enum { FLAGS_AT = 40 };
	struct perf_build build = { 0 };
	uint64_t all;

	perf_build_pt(&build, 0, 1);
	memcpy(&all, build.attrs + FLAGS_AT, 8);
	all |= flags;
	memcpy(build.attrs + FLAGS_AT, &all, 8);
	perf_build_aux_event(&build, 0, 1000, 0, 8, 0);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	perf_build_aux_event(&build, 0, 3000, 8, 8, 0);
	write_build(f, &build, "recording");
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

/* Each of them alone is one too many. */
static void options_of_the_other_kind_of_trace_are_refused(void **state)
{
	static const char of_raw[] = "--elf, --raw, --mtc-freq, --nom-freq and --cpuid-0x15 are "
				     "for a trace without a recording: --pt";
	static const char of_recordings[] = "-i, -k, --kallsyms, --symfs and --guest... are for a "
					    "recording: with --pt, code comes from --elf and --raw";
	struct fixture *f = *state;
	struct script_args *args = &f->script.args;
	struct machine_options *machine = &args->machine;
	uint64_t *const numbers[] = { &args->mtc_freq, &args->nom_freq, &args->cpuid_eax,
				      &args->cpuid_ebx };
	const char **const texts[] = {
		&args->input,          &machine->kallsyms,       &machine->vmlinux,
		&machine->symfs,       &machine->guest_kallsyms, &machine->guest_modules,
		&machine->guest_mount, &machine->guest_vmlinux
	};

	args->code_file_count = 1;
	assert_refused(f, of_raw);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		*numbers[i] = 1;
		assert_refused(f, of_raw);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		use_raw(f);
		*texts[i] = "file";
		assert_refused(f, of_recordings);
	}
}

static void numbers_of_a_raw_trace_fit_their_registers(void **state)
{
	struct fixture *f = *state;

	use_raw(f);
	f->script.args.mtc_freq = 16;
	assert_refused(f, "--mtc-freq takes 0 to 15, as in IA32_RTIT_CTL");
	use_raw(f);
	f->script.args.nom_freq = 256;
	assert_refused(f, "--nom-freq takes 1 to 255, in units of 100 MHz");
	use_raw(f);
	f->script.args.cpuid_ebx = (uint64_t)1 << 32;
	assert_refused(f, "--cpuid-0x15.eax and .ebx take numbers of 32 bits");
	use_raw(f);
	f->script.args.cpuid_eax = (uint64_t)1 << 32;
	assert_refused(f, "--cpuid-0x15.eax and .ebx take numbers of 32 bits");
	use_raw(f);
	f->script.args.mtc_freq = 15;
	f->script.args.nom_freq = 255;
	f->script.args.cpuid_ebx = f->script.args.cpuid_eax = UINT32_MAX;
	open_good(f);
}

static void selections_that_exclude_each_other_are_refused(void **state)
{
	struct fixture *f = *state;
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
	struct fixture *f = *state;
	const struct print_config *print = &f->script.print;

	f->script.args.relative_time = true;
	open_good(f);
	assert_true(print->relative_time && !print->delta_time && !print->nanoseconds);
	close_script(f);
	f->script.args.delta_time = f->script.args.nanoseconds = true;
	open_good(f);
	assert_true(!print->relative_time && print->delta_time && print->nanoseconds);
	close_script(f);
	f->script.args.host_only = true;
	open_good(f);
	assert_true(print->host_only && !print->guest_only && !print->color);
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
	assert_true(f->script.may_be_empty);
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

static void a_raw_trace_has_all_kinds_of_packets_until_it_says_otherwise(void **state)
{
	struct fixture *f = *state;
	const struct pt_config *config = &f->script.raw_config;

	use_raw(f);
	f->script.args.cpus = "6/85/4";
	f->script.args.nom_freq = 20;
	open_good(f);
	assert_true(config->tsc && config->mtc && config->cyc && config->conv.valid);
	assert_int_equal(config->filter[0], '?');
	assert_int_equal(config->cpu_family, 6);
	assert_int_equal(config->cpu_model, 85);
	assert_int_equal(config->cpu_stepping, 4);
	assert_ptr_equal(f->script.print.mapping.data, f->script.raw.file.data);
	close_script(f);
	use_raw(f);
	open_good(f);
	assert_false(config->conv.valid);
	close_script(f);
	use_raw(f);
	f->script.args.cpus = "6";
	assert_refused(f, "--cpu takes FAMILY/MODEL[/STEPPING], not '6'");
}

static void add_code(struct fixture *f, bool raw, const char *text)
{
	unsigned i = f->script.args.code_file_count++;

	use_raw(f);
	f->script.args.code_files[i].raw = raw;
	f->script.args.code_files[i].text = text;
}

static uint8_t code_at(const struct fixture *f, uint64_t address)
{
	struct code_view view;

	return machine_code(f->script.machines.host, 0, address, 0, &view) ? 0 : *view.data;
}

static void code_of_a_raw_trace_is_flat_or_elf(void **state)
{
	const struct elf_make_segment segment = { 0x1000, "\x41\x42", 2 };
	struct fixture *f = *state;
	uint8_t file[256];
	char elf[120], raw[120], wrong[120];

	fake_tree_bytes(&f->tree, file, elf_make(&segment, 1, file), "elf");
	(void)snprintf(elf, sizeof(elf), "%s/elf:0x400000", f->tree.path);
	(void)snprintf(raw, sizeof(raw), "%s:0x500000", f->raw);
	(void)snprintf(wrong, sizeof(wrong), "%s/nowhere", f->tree.path);
	add_code(f, false, elf);
	add_code(f, true, raw);
	open_good(f);
	assert_int_equal(code_at(f, 0x401001), 0x42);
	assert_int_equal(code_at(f, 0x500001), 0x82);
	close_script(f);
	add_code(f, true, f->raw);
	assert_refused(f, "--raw takes FILE[:FROM-TO]:ADDRESS");
	add_code(f, false, wrong);
	add_code(f, true, raw);
	assert_int_equal(script_open(&f->script, &f->error), -PTVM_SYSTEM);
	assert_non_null(strstr(f->error.message, "/nowhere"));
}

static void a_recording_is_handed_to_the_printer_whole(void **state)
{
	struct fixture *f = *state;
	const struct script *script = &f->script;

	open_good(f);
	assert_ptr_equal(script->print.data, &script->data);
	assert_ptr_equal(script->print.mapping.data, script->data.mapping.data);
	assert_ptr_equal(script->print.machines, &script->machines);
	assert_ptr_equal(script->print.sideband, script->sideband);
	assert_non_null(script->sideband);
	assert_non_null(script->machines.host);
	assert_false(script->print.pt->guest_tsc_raw || script->print.timeless);
	close_script(f);
	f->script.args.no_correlate = true;
	step(f, STEP_ITRACE, "Zb");
	open_good(f);
	assert_true(script->print.pt->guest_tsc_raw && script->print.timeless);
}

static void a_dump_needs_symbols_of_patched_code_only(void **state)
{
	static const uint8_t poke[24] = { 0 };
	const struct build_trailer trailer = { 0, 0, 5, 0, 1 };
	struct fixture *f = *state;
	struct perf_build build = { 0 };

	f->script.args.dump = true;
	open_good(f);
	assert_null(f->script.machines.host);
	close_script(f);
	perf_build_pt(&build, 0, 1);
	perf_build_kernel(&build, PERF_TEXT_POKE, 0, poke, sizeof(poke), trailer);
	write_build(f, &build, "recording");
	f->script.args.dump = true;
	open_good(f);
	assert_non_null(f->script.machines.host);
}

/* Runs script_open() in the tree, with the recording's bytes or nothing on standard input. */
static int open_there(struct fixture *f, bool is_pipe)
{
	const int here = open(".", O_RDONLY | O_DIRECTORY), input = dup(STDIN_FILENO);
	int ends[2], r;

	assert_true(here >= 0);
	assert_int_equal(chdir(f->tree.path), 0);
	f->script.args.input = NULL;
	if (is_pipe) {
		struct perf_build build = { 0 };
		struct bytes bytes;

		perf_build_pt(&build, 0, 1);
		bytes = perf_build_pipe(&build);
		assert_int_equal(pipe(ends), 0);
		assert_int_equal(write(ends[1], bytes.data, bytes.size), bytes.size);
		perf_build_free(&build);
		(void)close(ends[1]);
	} else {
		ends[0] = open("/dev/null", O_RDONLY);
	}
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	(void)close(ends[0]);
	r = script_open(&f->script, &f->error);
	assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
	(void)close(input);
	assert_int_equal(fchdir(here), 0);
	(void)close(here);
	return r;
}

static void without_a_name_it_is_the_recording_here_or_a_pipe(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(open_there(f, false), -PTVM_NOT_FOUND);
	assert_string_equal(f->error.message,
			    "no ptvm.data or perf.data here: name the recording with -i");
	close_script(f);
	assert_int_equal(open_there(f, true), 0);
	assert_true(f->script.data.is_pipe && f->script.data.have_pt);
	close_script(f);
	write_recording(f, 0);
	fake_tree_link(&f->tree, "recording", "perf.data");
	assert_int_equal(open_there(f, true), 0);
	assert_false(f->script.data.is_pipe);
	assert_int_equal(f->script.queue_count, 1);
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
	assert_modifier(f, EXCLUDE_HV, ":ku");
	assert_modifier(
		f, EXCLUDE_USER | EXCLUDE_KERNEL | EXCLUDE_HV | EXCLUDE_HOST | EXCLUDE_GUEST, "");
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

static void samples_of_other_events_are_lines_too(void **state)
{
	enum { SOFTWARE = 1, CONTEXT_SWITCHES = 3 };
	struct fixture *f = *state;
	struct perf_build build = { 0 }, untraced = { 0 };

	open_good(f);
	assert_int_equal(f->script.print.records, 0);
	close_script(f);
	perf_build_pt(&build, 0, 1);
	perf_build_event(&build, SOFTWARE, CONTEXT_SWITCHES, BUILD_SAMPLE_TYPE, 2, 128);
	write_build(f, &build, "recording");
	step(f, STEP_ITRACE, "bG");
	open_good(f);
	assert_int_equal(f->script.print.records, RECORDS_SAMPLE);
	assert_int_equal(f->script.print.itrace.samples.calls, 16);
	close_script(f);
	perf_build_event(&untraced, SOFTWARE, CONTEXT_SWITCHES, BUILD_SAMPLE_TYPE, 2, 128);
	write_build(f, &untraced, "recording");
	step(f, STEP_ITRACE, "bG");
	open_good(f);
	assert_int_equal(f->script.print.itrace.samples.calls, 0); /* there is no trace to ask */
	assert_false(f->script.print.timeless);
}

static void a_trace_of_a_thread_is_of_its_process(void **state)
{
	static const uint32_t comm[] = { 7, 9, 'x', 0 }; /* pid, tid, name */
	static const struct build_trailer trailer = { 7, 9, 5, 0, 1 };
	static const uint32_t thread[] = { 9, UINT32_MAX }; /* tid, cpu */
	struct fixture *f = *state;
	struct perf_build build = { 0 };

	perf_build_pt(&build, 0, 0);
	perf_build_kernel(&build, PERF_COMM, 0, comm, sizeof(comm), trailer);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	memcpy(build.bytes + build.aux_index[0] + 8 + 28, thread, sizeof(thread));
	write_build(f, &build, "recording");
	open_good(f);
	assert_int_equal(f->script.queues[0].tid, 9);
	assert_int_equal(f->script.queues[0].pid, 7);
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
	assert_true(f->script.may_be_empty);
	close_script(f);
	use_raw(f);
	f->script.args.times = "50%-100%";
	assert_refused(f, "when it begins");
}

static void threads_have_no_cpu_to_select(void **state)
{
	struct fixture *f = *state;
	struct perf_build build = { 0 };

	perf_build_pt(&build, 0, 0);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	memset(build.bytes + build.aux_index[0] + 8 + 32, 0xff, 4); /* its CPU */
	write_build(f, &build, "recording");
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

	write_build(f, &build, "recording");
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
		TEST(each_form_of_a_line_is_an_option_of_its_own),
		TEST(a_list_that_is_none_names_its_option),
		TEST(selections_go_to_the_printer),
		TEST(a_raw_trace_is_what_its_options_say),
		TEST(a_raw_trace_has_all_kinds_of_packets_until_it_says_otherwise),
		TEST(code_of_a_raw_trace_is_flat_or_elf),
		TEST(a_recording_is_handed_to_the_printer_whole),
		TEST(a_dump_needs_symbols_of_patched_code_only),
		TEST(without_a_name_it_is_the_recording_here_or_a_pipe),
		TEST(a_recording_that_is_not_there_is_told),
		TEST(a_recording_of_another_user_takes_force),
		TEST(without_itrace_no_queue_is_decoded),
		TEST(presets_are_letters_and_more),
		TEST(the_event_is_about_what_it_does_not_exclude),
		TEST(lines_of_instructions_begin_alike),
		TEST(records_are_shown_by_kind),
		TEST(samples_of_other_events_are_lines_too),
		TEST(a_trace_of_a_thread_is_of_its_process),
		TEST(without_times_of_samples_the_trace_tells_them),
		TEST(percentages_are_of_the_time_of_the_trace),
		TEST(threads_have_no_cpu_to_select),
		TEST(a_recording_of_nothing_to_print_is_told),
		TEST(there_is_a_thread_for_each_cpu_unless_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
