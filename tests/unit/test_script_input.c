#include "decode/script.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/elf_make.h"
#include "tests/perf_build.h"
#include "tests/script_fixture.h"

static void open_good(struct script_fixture *f)
{
	if (script_open_input(&f->script, &f->error))
		fail_msg("%s", f->error.message);
}

/* The options so far do not go together; begins anew. */
static void assert_wrong(struct script_fixture *f, const char *why)
{
	assert_int_equal(script_check_input(&f->script.args, &f->error), -PTVM_BAD_USAGE);
	assert_string_equal(f->error.message, why);
	script_fixture_close(f);
}

/* What an option names is none; begins anew. */
static void assert_refused(struct script_fixture *f, const char *why)
{
	assert_int_equal(script_open_input(&f->script, &f->error), -PTVM_BAD_USAGE);
	assert_non_null(strstr(f->error.message, why));
	script_fixture_close(f);
}

/* Each of them alone is one too many. */
static void options_of_the_other_kind_of_trace_are_refused(void **state)
{
	static const char of_raw[] = "--elf, --raw, --mtc-freq, --nom-freq and --cpuid-0x15 are "
				     "for a trace without a recording: --pt";
	static const char of_recordings[] = "-i, -k, --kallsyms, --symfs and --guest... are for a "
					    "recording: with --pt, code comes from --elf and --raw";
	struct script_fixture *f = *state;
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
	assert_wrong(f, of_raw);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		*numbers[i] = 1;
		assert_wrong(f, of_raw);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		script_fixture_raw(f);
		*texts[i] = "file";
		assert_wrong(f, of_recordings);
	}
}

static void what_only_records_have_is_refused_for_a_raw_trace(void **state)
{
	struct script_fixture *f = *state;
	struct script_args *args = &f->script.args;
	bool *const flags[] = { &args->no_itrace,   &args->show_switch, &args->show_task,
				&args->show_mmap,   &args->show_lost,   &args->show_namespace,
				&args->show_cgroup, &args->show_bpf,    &args->show_text_poke };

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		script_fixture_raw(f);
		*flags[i] = true;
		assert_wrong(f, "--no-itrace and --show-...-events are for a recording: with --pt, "
				"there is nothing but the trace");
		*flags[i] = true;
		assert_int_equal(script_check_input(args, &f->error), 0);
		script_fixture_close(f);
	}
}

static void numbers_of_a_raw_trace_fit_their_registers(void **state)
{
	struct script_fixture *f = *state;

	script_fixture_raw(f);
	f->script.args.mtc_freq = 16;
	assert_wrong(f, "--mtc-freq takes 0 to 15, as in IA32_RTIT_CTL");
	script_fixture_raw(f);
	f->script.args.nom_freq = 256;
	assert_wrong(f, "--nom-freq takes 1 to 255, in units of 100 MHz");
	script_fixture_raw(f);
	f->script.args.cpuid_ebx = (uint64_t)1 << 32;
	assert_wrong(f, "--cpuid-0x15.eax and .ebx take numbers of 32 bits");
	script_fixture_raw(f);
	f->script.args.cpuid_eax = (uint64_t)1 << 32;
	assert_wrong(f, "--cpuid-0x15.eax and .ebx take numbers of 32 bits");
	script_fixture_raw(f);
	f->script.args.mtc_freq = 15;
	f->script.args.nom_freq = 255;
	f->script.args.cpuid_ebx = f->script.args.cpuid_eax = UINT32_MAX;
	assert_int_equal(script_check_input(&f->script.args, &f->error), 0);
}

static void a_raw_trace_is_what_its_options_say(void **state)
{
	struct script_fixture *f = *state;
	const struct pt_config *config = &f->script.raw_config;

	script_fixture_raw(f);
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
	struct script_fixture *f = *state;
	const struct pt_config *config = &f->script.raw_config;

	script_fixture_raw(f);
	f->script.args.cpus = "6/85/4";
	f->script.args.nom_freq = 20;
	open_good(f);
	assert_true(config->tsc && config->mtc && config->cyc && config->conv.valid);
	assert_int_equal(config->filter[0], '?');
	assert_int_equal(config->cpu_family, 6);
	assert_int_equal(config->cpu_model, 85);
	assert_int_equal(config->cpu_stepping, 4);
	assert_ptr_equal(f->script.print.mapping.data, f->script.raw.file.data);
	script_fixture_close(f);
	script_fixture_raw(f);
	open_good(f);
	assert_false(config->conv.valid);
	script_fixture_close(f);
	script_fixture_raw(f);
	f->script.args.cpus = "6";
	assert_refused(f, "--cpu takes FAMILY/MODEL[/STEPPING], not '6'");
}

static void add_code(struct script_fixture *f, bool raw, const char *text)
{
	unsigned i = f->script.args.code_file_count++;

	script_fixture_raw(f);
	f->script.args.code_files[i].raw = raw;
	f->script.args.code_files[i].text = text;
}

static uint8_t code_at(const struct script_fixture *f, uint64_t address)
{
	struct code_view view;

	return machine_code(f->script.machines.host, 0, address, 0, &view) ? 0 : *view.data;
}

static void code_of_a_raw_trace_is_flat_or_elf(void **state)
{
	const struct elf_make_segment segment = { 0x1000, "\x41\x42", 2 };
	struct script_fixture *f = *state;
	uint8_t file[256];
	char elf[120], raw[120], wrong[120];

	fake_tree_bytes(&f->tree, file, elf_make(&segment, 1, file), "elf");
	(void)snprintf(elf, sizeof(elf), "%s/elf:0x400000", f->tree.path);
	(void)snprintf(raw, sizeof(raw), "%s:1-4:0x500000", f->raw);
	(void)snprintf(wrong, sizeof(wrong), "%s/nowhere", f->tree.path);
	add_code(f, false, elf);
	add_code(f, true, raw);
	open_good(f);
	assert_int_equal(code_at(f, 0x401001), 0x42);
	assert_int_equal(code_at(f, 0x500000), 0x82);
	assert_int_equal(code_at(f, 0x500001), 2);
	assert_int_equal(code_at(f, 0x500003), 0);
	script_fixture_close(f);
	add_code(f, true, f->raw);
	assert_refused(f, "--raw takes FILE[:FROM-TO]:ADDRESS");
	add_code(f, false, wrong);
	add_code(f, true, raw);
	assert_int_equal(script_open_input(&f->script, &f->error), -PTVM_SYSTEM);
	assert_non_null(strstr(f->error.message, "/nowhere"));
}

static void a_recording_is_handed_to_the_printer_whole(void **state)
{
	struct script_fixture *f = *state;
	const struct script *script = &f->script;

	open_good(f);
	assert_ptr_equal(script->queues, script->data.queues.items);
	assert_ptr_equal(script->print.data, &script->data);
	assert_ptr_equal(script->print.pt, &script->data.pt);
	assert_ptr_equal(script->print.mapping.data, script->data.mapping.data);
	assert_non_null(script->machines.host);
	assert_false(script->machines.one_for_all || script->print.pt->guest_tsc_raw);
	script_fixture_close(f);
	f->script.args.no_correlate = true;
	open_good(f);
	assert_true(script->print.pt->guest_tsc_raw);
}

static void a_dump_needs_symbols_of_patched_code_only(void **state)
{
	static const uint8_t poke[24] = { 0 };
	const struct build_trailer trailer = { 0, 0, 5, 0, 1 };
	struct script_fixture *f = *state;
	struct perf_build build = { 0 };

	f->script.args.dump = true;
	open_good(f);
	assert_null(f->script.machines.host);
	script_fixture_close(f);
	perf_build_pt(&build, 0, 1);
	perf_build_kernel(&build, PERF_TEXT_POKE, 0, poke, sizeof(poke), trailer);
	script_fixture_write(f, &build);
	f->script.args.dump = true;
	open_good(f);
	assert_non_null(f->script.machines.host);
}

/* Runs script_open_input() in the tree, with the recording's bytes or nothing on standard input. */
static int open_there(struct script_fixture *f, bool is_pipe)
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
	r = script_open_input(&f->script, &f->error);
	assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
	(void)close(input);
	assert_int_equal(fchdir(here), 0);
	(void)close(here);
	return r;
}

static void without_a_name_it_is_the_recording_here_or_a_pipe(void **state)
{
	struct script_fixture *f = *state;

	assert_int_equal(open_there(f, false), -PTVM_NOT_FOUND);
	assert_string_equal(f->error.message,
			    "no ptvm.data or perf.data here: name the recording with -i");
	script_fixture_close(f);
	assert_int_equal(open_there(f, true), 0);
	assert_true(f->script.data.is_pipe && f->script.data.have_pt);
	script_fixture_close(f);
	script_fixture_record(f, 0);
	fake_tree_link(&f->tree, "recording", "perf.data");
	assert_int_equal(open_there(f, true), 0);
	assert_false(f->script.data.is_pipe);
	assert_int_equal(f->script.queue_count, 1);
}

static void a_recording_that_is_not_there_is_told(void **state)
{
	struct script_fixture *f = *state;

	assert_int_equal(unlink(f->recording), 0);
	assert_int_equal(script_open_input(&f->script, &f->error), -PTVM_SYSTEM);
	assert_non_null(strstr(f->error.message, f->recording));
}

static void a_recording_of_another_user_takes_force(void **state)
{
	struct script_fixture *f = *state;

	if (geteuid())
		skip(); /* only root can give files away */
	assert_int_equal(chown(f->recording, 12345, 12345), 0);
	assert_int_equal(script_open_input(&f->script, &f->error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(f->error.message, "not owned"));
	script_fixture_close(f);
	f->script.args.force = true;
	open_good(f);
	script_fixture_close(f);
	fake_tree_link(&f->tree, "recording", "-"); /* a pipe's name only */
	assert_int_equal(open_there(f, true), 0);
}

static void without_itrace_no_queue_is_decoded(void **state)
{
	struct script_fixture *f = *state;

	f->script.args.no_itrace = true;
	open_good(f);
	assert_int_equal(f->script.queue_count, 0);
	script_fixture_close(f);
	open_good(f);
	assert_int_equal(f->script.queue_count, 1);
}

static void a_trace_of_a_thread_is_of_its_process(void **state)
{
	static const uint32_t comm[] = { 7, 9, 'x', 0 }; /* pid, tid, name */
	static const struct build_trailer trailer = { 7, 9, 5, 0, 1 };
	static const uint32_t thread[] = { 9, UINT32_MAX }; /* tid, cpu */
	struct script_fixture *f = *state;
	struct perf_build build = { 0 };

	perf_build_pt(&build, 0, 0);
	perf_build_kernel(&build, PERF_COMM, 0, comm, sizeof(comm), trailer);
	perf_build_aux(&build, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	memcpy(build.bytes + build.aux_index[0] + 8 + 28, thread, sizeof(thread));
	script_fixture_write(f, &build);
	open_good(f);
	assert_int_equal(f->script.queues[0].tid, 9);
	assert_int_equal(f->script.queues[0].pid, 7);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, script_fixture_set_up, script_fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(options_of_the_other_kind_of_trace_are_refused),
		TEST(what_only_records_have_is_refused_for_a_raw_trace),
		TEST(numbers_of_a_raw_trace_fit_their_registers),
		TEST(a_raw_trace_is_what_its_options_say),
		TEST(a_raw_trace_has_all_kinds_of_packets_until_it_says_otherwise),
		TEST(code_of_a_raw_trace_is_flat_or_elf),
		TEST(a_recording_is_handed_to_the_printer_whole),
		TEST(a_dump_needs_symbols_of_patched_code_only),
		TEST(without_a_name_it_is_the_recording_here_or_a_pipe),
		TEST(a_recording_that_is_not_there_is_told),
		TEST(a_recording_of_another_user_takes_force),
		TEST(without_itrace_no_queue_is_decoded),
		TEST(a_trace_of_a_thread_is_of_its_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
