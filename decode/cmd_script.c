#include "decode/cmd_script.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/options.h"
#include "decode/base/pager.h"
#include "decode/base/vec.h"
#include "decode/machine.h"
#include "decode/perf_data.h"
#include "decode/raw_trace.h"
#include "decode/script_options.h"
#include "decode/script_setup.h"
#include "decode/sideband.h"
#include "decode/team.h"

static int parse_options(struct script_args *args, int argc, char **argv, struct ptvm_error *error)
{
	const struct option_row rows[] = {
		{ 0, NULL, OPT_HEADING, NULL, NULL, "Input" },
		{ 'i', "input", OPT_STRING, &args->input, "FILE",
		  "recording: a perf.data file or directory, or - for a pipe (default: ptvm.data, "
		  "then perf.data)" },
		{ 'f', "force", OPT_FLAG, &args->force, NULL, "read files of other users too" },
		{ 0, "guestkallsyms", OPT_STRING, &args->machine.guest_kallsyms, "FILE",
		  "the guest's kallsyms; its kcore lies beside it" },
		{ 0, "guestmodules", OPT_STRING, &args->machine.guest_modules, "FILE",
		  "the guest's modules" },
		{ 0, "guestmount", OPT_STRING, &args->machine.guest_mount, "DIR",
		  "guests' roots, mounted as DIR/PID" },
		{ 0, "guestvmlinux", OPT_STRING, &args->machine.guest_vmlinux, "FILE",
		  "the guest's vmlinux" },
		{ 'k', "vmlinux", OPT_STRING, &args->machine.vmlinux, "FILE",
		  "the host's vmlinux" },
		{ 0, "kallsyms", OPT_STRING, &args->machine.kallsyms, "FILE",
		  "the host's kallsyms" },
		{ 0, "no-demangle", OPT_FLAG, &args->machine.keep_mangled, NULL,
		  "names of C++ and Rust symbols as they are in files" },
		{ 0, "symfs", OPT_STRING, &args->machine.symfs, "DIR",
		  "look for files of code below DIR" },
		{ 0, NULL, OPT_HEADING, NULL, NULL, "What to print" },
		{ 0, "insn-trace", OPT_CALL, args, "raw",
		  "every instruction, disassembled, or as bytes", .missing = "disasm",
		  .call = script_insn_trace },
		{ 0, "call-trace", OPT_CALL, args, NULL, "every call, indented",
		  .call = script_call_trace },
		{ 0, "call-ret-trace", OPT_CALL, args, NULL, "every call and return, indented",
		  .call = script_call_ret_trace },
		{ 0, "itrace", OPT_CALL, args, "LETTERS",
		  "kinds of events: i(PERIOD) instructions, b branches, c calls, r returns, e "
		  "errors, p power, w ptwrite, x transactions, I interrupts, s(N) skip, q quick, A",
		  .missing = "", .call = script_itrace },
		{ 0, "no-itrace", OPT_FLAG, &args->no_itrace, NULL,
		  "nothing of the trace: other events only" },
		{ 'F', "fields", OPT_CALL, args, "LIST", "fields of a line; +F and -F change them",
		  .call = script_fields },
		{ 'D', "dump-raw-trace", OPT_FLAG, &args->dump, NULL,
		  "every record and packet instead" },
		{ 0, "header", OPT_FLAG, &args->header, NULL, "what the recording says of itself" },
		{ 0, "header-only", OPT_FLAG, &args->header_only, NULL, "only that" },
		{ 0, "show-switch-events", OPT_FLAG, &args->show_switch, NULL, "context switches" },
		{ 0, "show-task-events", OPT_FLAG, &args->show_task, NULL, "fork, exit, comm" },
		{ 0, "show-mmap-events", OPT_FLAG, &args->show_mmap, NULL, "maps" },
		{ 0, "show-lost-events", OPT_FLAG, &args->show_lost, NULL, "lost records" },
		{ 0, "intel", OPT_FLAG, &args->intel, NULL, "Intel syntax instead of AT&T" },
		{ 0, "ns", OPT_FLAG, &args->nanoseconds, NULL, "times with nine digits" },
		{ 0, "reltime", OPT_FLAG, &args->relative_time, NULL, "times since the first" },
		{ 0, "deltatime", OPT_FLAG, &args->delta_time, NULL,
		  "times since the former line" },
		{ 0, "no-pager", OPT_FLAG, &args->no_pager, NULL, "no pager, also on a terminal" },
		{ 0, NULL, OPT_HEADING, NULL, NULL, "Selection" },
		{ 0, "time", OPT_STRING, &args->times, "RANGES", "START,STOP or 10%-20%" },
		{ 'C', "cpu", OPT_CALL, args, "LIST",
		  "CPUs; with --pt, FAMILY/MODEL[/STEPPING] of the traced one",
		  .call = script_cpu },
		{ 0, "tid", OPT_STRING, &args->tids, "LIST", "threads" },
		{ 0, "pid", OPT_STRING, &args->pids, "LIST", "processes" },
		{ 'c', "comms", OPT_STRING, &args->comms, "NAMES", "threads by name" },
		{ 0, "vcpu", OPT_STRING, &args->vcpus, "LIST", "vCPUs" },
		{ 0, "vmcs", OPT_STRING, &args->vmcs, "LIST", "VMCSs, as -F vmcs prints them" },
		{ 0, "guest-only", OPT_FLAG, &args->guest_only, NULL, "what guests ran" },
		{ 0, "host-only", OPT_FLAG, &args->host_only, NULL, "what the host ran" },
		{ 'j', "jobs", OPT_U64, &args->jobs, "N",
		  "decode in N threads (default: the CPUs available)" },
		{ 0, "no-correlate", OPT_FLAG, &args->no_correlate, NULL,
		  "take guest time stamps as they are" },
		{ 0, "max-lines", OPT_U64, &args->max_lines, "N", "stop after N lines" },
		{ 0, NULL, OPT_HEADING, NULL, NULL, "Raw traces" },
		{ 0, "pt", OPT_STRING, &args->pt, "FILE[:FROM-TO]", "packets" },
		{ 0, "elf", OPT_CALL, args, "FILE[:BASE]", "code and symbols", .call = script_elf },
		{ 0, "raw", OPT_CALL, args, "FILE[:FROM-TO]:ADDRESS", "code", .call = script_raw },
		{ 0, "mtc-freq", OPT_U64, &args->mtc_freq, "N", "MTC period, as in IA32_RTIT_CTL" },
		{ 0, "nom-freq", OPT_U64, &args->nom_freq, "N", "nominal frequency in 100 MHz" },
		{ 0, "cpuid-0x15.eax", OPT_U64, &args->cpuid_eax, "N",
		  "crystal ratio, denominator" },
		{ 0, "cpuid-0x15.ebx", OPT_U64, &args->cpuid_ebx, "N", "crystal ratio, numerator" },
		{ 0 },
	};
	const struct options options = {
		.usage = "ptvm script [OPTION]...",
		.summary = "Print what ran, host and guests in one order of time.",
		.rows = rows,
	};
	int left = options_parse(&options, argc, argv, stdout, error);

	if (left > 0)
		return ptvm_fail(error, PTVM_BAD_USAGE, "unexpected argument '%s'", argv[1]);
	return left;
}

/* What went wrong, once per kind: the lines about each are in the output where they were asked for.
 */
static void report_gaps(const struct team_result *result)
{
	for (int kind = 0; kind < GAP_KINDS; kind++)
		if (result->gaps[kind])
			(void)fprintf(stderr,
				      "ptvm script: %" PRIu64 " instruction trace errors: %s\n",
				      result->gaps[kind], gap_text((enum gap_kind)kind));
	if (result->translated)
		(void)fprintf(stderr,
			      "ptvm script: %" PRIu64 " guest time stamps taken in the host's time "
			      "(--no-correlate takes them as they are)\n",
			      result->translated);
	if (result->corrections)
		(void)fprintf(stderr,
			      "ptvm script: %" PRIu64 " times kept from running backwards\n",
			      result->corrections);
}

static void report_labels(const struct team_result *result)
{
	if (result->labels)
		(void)fprintf(stderr,
			      "ptvm script: %" PRIu64
			      " jump labels or calls found patched in code copied "
			      "earlier (first at %#" PRIx64 ")\n",
			      result->labels, result->first_label);
}

static void report_damage(const struct perf_data *data)
{
	uint64_t offset = data->bad_offset;
	const char *path = perf_data_place(data, &offset);

	if (data->bad_reason)
		(void)fprintf(stderr, "ptvm script: %s: %s at offset %#" PRIx64 "\n", path,
			      data->bad_reason, offset);
	if (data->lost_records)
		(void)fprintf(stderr, "ptvm script: %s: %" PRIu64 " records were lost\n",
			      data->path, data->lost_records);
}

static void report_notes(const struct machines *machines)
{
	const char *note;

	for (size_t i = 0; (note = machines_note(machines, i)); i++)
		(void)fprintf(stderr, "ptvm script: %s\n", note);
}

/* Points of another notion of time are not for the index. */
static int open_index(struct script *script, struct ptvm_error *error)
{
	if (script->args.pt || script->args.no_correlate)
		return 0;
	script->print.index = &script->index;
	return trace_index_open(&script->data, &script->index)
		       ? ptvm_fail(error, PTVM_NO_MEMORY, "out of memory")
		       : 0;
}

static void report_index(const struct trace_index *index)
{
	const char *complaint = index->complaint;

	for (size_t i = 0; i < index->queue_count; i++)
		if (index->queues[i].bad)
			complaint = "does not fit the trace";
	if (complaint)
		(void)fprintf(stderr, "ptvm script: %s %s: not used\n", index->path, complaint);
}

static int check_result(const struct script *script, const struct team_result *result,
			struct ptvm_error *error)
{
	const char *path = script->args.pt ? script->args.pt : script->data.path;

	if (!result->bytes && (script->args.pt || script->data.have_pt) && !script->args.no_itrace)
		(void)fprintf(stderr, "ptvm script: %s: no trace in this recording\n", path);
	if (!result->bytes || result->insns || result->lines || script->nothing_wanted)
		return 0;
	return ptvm_fail(error, PTVM_BAD_INPUT, "%s: nothing could be decoded", path);
}

static int print_trace(struct script *script, struct team_result *result, struct ptvm_error *error)
{
	const struct timeline_output output = { STDOUT_FILENO, script->args.max_lines,
						(unsigned)script->args.jobs };
	struct ptvm_error unsaved = { 0 };
	int r;

	(void)fflush(stdout);
	r = open_index(script, error);
	if (r)
		return r;
	r = team_print(script->queues, script->queue_count, &script->print, &output, result, error);
	/* no failure: a folder that cannot be written, a full disk */
	(void)trace_index_save(&script->index, &unsaved);
	if (r == -PTVM_SYSTEM && error->sys_errno == EPIPE) {
		*result = (struct team_result){ 0 };
		return 0;
	}
	return r ? r : check_result(script, result, error);
}

/* What there is to say is said when the pager, which has the terminal, was left. */
static int run(struct script *script, struct ptvm_error *error)
{
	struct team_result result = { 0 };
	struct pager pager = { 0 };
	int r;

	r = script_open(script, error);
	if (r)
		return r;
	r = script->args.no_pager ? 0 : pager_start(&pager, error);
	if (!r && (script->args.header || script->args.header_only))
		r = script_print_header(script, stdout, error);
	if (!r && script->args.dump)
		r = script_dump(script, stdout, error);
	else if (!r && !script->args.header_only)
		r = print_trace(script, &result, error);
	pager_wait(&pager);
	if (result.note)
		(void)fprintf(stderr, "ptvm script: %s\n", result.note);
	report_gaps(&result);
	report_labels(&result);
	report_index(&script->index);
	if (!script->args.pt)
		report_damage(&script->data);
	report_notes(&script->machines);
	return r;
}

/* Megabytes of text are taken and given back all the time: without this each would be new pages. */
static void keep_pages(void)
{
	enum { KEEP = 64 << 20 };

	(void)mallopt(M_ARENA_MAX, 1); /* what one thread gives back, another can take */
	(void)mallopt(M_MMAP_THRESHOLD, KEEP);
	(void)mallopt(M_TRIM_THRESHOLD, KEEP);
}

int cmd_script(int argc, char **argv, struct ptvm_error *error)
{
	struct script script = { 0 };
	int r;

	keep_pages();
	r = parse_options(&script.args, argc, argv, error);
	if (!r)
		r = run(&script, error);
	script_close(&script);
	return r;
}
