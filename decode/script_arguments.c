/* The options of `ptvm script`, from which its parser, --help and completion work. */
#include <assert.h>
#include <string.h>

#include "decode/base/options.h"
#include "decode/print/fields.h"
#include "decode/script.h"

/* The table, in the order of --help; zeroes behind the last row end it. */
struct option_table {
	struct option_row rows[64];
	size_t count;
};

static void add_rows(struct option_table *table, const struct option_row *rows, size_t count)
{
	assert(table->count + count < sizeof(table->rows) / sizeof(*table->rows));
	memcpy(table->rows + table->count, rows, count * sizeof(*rows));
	table->count += count;
}

#define ADD_ROWS(table, rows) add_rows(table, rows, sizeof(rows) / sizeof(*(rows)))

static int add_step(struct script_args *args, struct script_step step, struct ptvm_error *error)
{
	if (args->step_count == SCRIPT_STEPS_MAX)
		return ptvm_fail(error, PTVM_BAD_USAGE, "more than %d options of what to print",
				 SCRIPT_STEPS_MAX);
	args->steps[args->step_count++] = step;
	return 0;
}

static int take_fields(void *context, const char *value, struct ptvm_error *error)
{
	uint32_t scratch = 0;
	int r = fields_parse(value, EVENT_OF_TRACE, &scratch, error);

	return r ? r : add_step(context, (struct script_step){ STEP_FIELDS, value }, error);
}

static int take_itrace(void *context, const char *value, struct ptvm_error *error)
{
	struct itrace scratch = { 0 };
	int r = itrace_add(value, &scratch, error);

	return r ? r : add_step(context, (struct script_step){ STEP_ITRACE, value }, error);
}

static int take_insn_trace(void *context, const char *value, struct ptvm_error *error)
{
	if (strcmp(value, "raw") && strcmp(value, "disasm"))
		return -PTVM_BAD_USAGE;
	return add_step(context, (struct script_step){ STEP_INSN_TRACE, value }, error);
}

/* In perf, --xed runs a program that disassembles. */
static int take_xed(void *context, const char *value, struct ptvm_error *error)
{
	return add_step(context, (struct script_step){ STEP_FIELDS, "-insn,+disasm" }, error);
}

static int take_call_trace(void *context, const char *value, struct ptvm_error *error)
{
	return add_step(context, (struct script_step){ STEP_CALL_TRACE, value }, error);
}

static int take_call_ret_trace(void *context, const char *value, struct ptvm_error *error)
{
	return add_step(context, (struct script_step){ STEP_CALL_RET_TRACE, value }, error);
}

static int take_cpu(void *context, const char *value, struct ptvm_error *error)
{
	struct script_args *args = context;

	args->cpus = value;
	return 0;
}

static int add_code_file(struct script_args *args, const char *value, bool raw,
			 struct ptvm_error *error)
{
	if (args->code_file_count == CODE_FILES_MAX)
		return ptvm_fail(error, PTVM_BAD_USAGE, "more than %d files of code",
				 CODE_FILES_MAX);
	args->code_files[args->code_file_count].raw = raw;
	args->code_files[args->code_file_count++].text = value;
	return 0;
}

static int take_elf(void *context, const char *value, struct ptvm_error *error)
{
	return add_code_file(context, value, false, error);
}

static int take_raw(void *context, const char *value, struct ptvm_error *error)
{
	return add_code_file(context, value, true, error);
}

static void add_input(struct option_table *table, struct script_args *args)
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
	};

	ADD_ROWS(table, rows);
}

static void add_events(struct option_table *table, struct script_args *args)
{
	const struct option_row rows[] = {
		{ 0, NULL, OPT_HEADING, NULL, NULL, "What to print" },
		{ 0, "insn-trace", OPT_CALL, args, "raw",
		  "every instruction, disassembled, or as bytes", .missing = "disasm",
		  .call = take_insn_trace, .values = "raw" },
		{ 0, "xed", OPT_CALL, args, NULL, "disassemble what -F insn would show as bytes",
		  .call = take_xed },
		{ 0, "call-trace", OPT_CALL, args, NULL, "every call, indented",
		  .call = take_call_trace },
		{ 0, "call-ret-trace", OPT_CALL, args, NULL, "every call and return, indented",
		  .call = take_call_ret_trace },
		{ 0, "itrace", OPT_CALL, args, "LETTERS",
		  "kinds of events: i(PERIOD) instructions, b branches, c calls, r returns, e "
		  "errors, p power, w ptwrite, x transactions, I interrupts, g call chains, l last "
		  "branches, G and L those of other events, s(N) skip, q quick, A more of -F ipc, "
		  "Z without times",
		  .missing = "", .call = take_itrace },
		{ 0, "no-itrace", OPT_FLAG, &args->no_itrace, NULL,
		  "nothing of the trace: other events only" },
		{ 'F', "fields", OPT_CALL, args, "LIST", "fields of a line; +F and -F change them",
		  .call = take_fields, .values = fields_words },
	};

	ADD_ROWS(table, rows);
}

static void add_form(struct option_table *table, struct script_args *args)
{
	const struct option_row rows[] = {
		{ 'D', "dump-raw-trace", OPT_FLAG, &args->dump, NULL,
		  "every record and packet instead" },
		{ 0, "header", OPT_FLAG, &args->header, NULL, "what the recording says of itself" },
		{ 0, "header-only", OPT_FLAG, &args->header_only, NULL, "only that" },
		{ 0, "show-switch-events", OPT_FLAG, &args->show_switch, NULL, "context switches" },
		{ 0, "show-task-events", OPT_FLAG, &args->show_task, NULL, "fork, exit, comm" },
		{ 0, "show-mmap-events", OPT_FLAG, &args->show_mmap, NULL, "maps" },
		{ 0, "show-lost-events", OPT_FLAG, &args->show_lost, NULL, "lost records" },
		{ 0, "show-namespace-events", OPT_FLAG, &args->show_namespace, NULL,
		  "namespaces of threads" },
		{ 0, "show-cgroup-events", OPT_FLAG, &args->show_cgroup, NULL, "names of cgroups" },
		{ 0, "show-bpf-events", OPT_FLAG, &args->show_bpf, NULL,
		  "BPF programs, and symbols made at run time" },
		{ 0, "show-text-poke-events", OPT_FLAG, &args->show_text_poke, NULL,
		  "code that the kernel patched, and symbols made at run time" },
		{ 0, "intel", OPT_FLAG, &args->intel, NULL, "Intel syntax instead of AT&T" },
		{ 0, "ns", OPT_FLAG, &args->nanoseconds, NULL, "times with nine digits" },
		{ 0, "reltime", OPT_FLAG, &args->relative_time, NULL, "times since the first" },
		{ 0, "deltatime", OPT_FLAG, &args->delta_time, NULL,
		  "times since the former line" },
		{ 0, "no-pager", OPT_FLAG, &args->no_pager, NULL, "no pager, also on a terminal" },
	};

	ADD_ROWS(table, rows);
}

static void add_selection(struct option_table *table, struct script_args *args)
{
	const struct option_row rows[] = {
		{ 0, NULL, OPT_HEADING, NULL, NULL, "Selection" },
		{ 0, "time", OPT_STRING, &args->times, "RANGES", "START,STOP or 10%-20%" },
		{ 'C', "cpu", OPT_CALL, args, "LIST",
		  "CPUs; with --pt, FAMILY/MODEL[/STEPPING] of the traced one", .call = take_cpu },
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
	};

	ADD_ROWS(table, rows);
}

static void add_raw_traces(struct option_table *table, struct script_args *args)
{
	const struct option_row rows[] = {
		{ 0, NULL, OPT_HEADING, NULL, NULL, "Raw traces" },
		{ 0, "pt", OPT_STRING, &args->pt, "FILE[:FROM-TO]", "packets" },
		{ 0, "elf", OPT_CALL, args, "FILE[:BASE]", "code and symbols", .call = take_elf },
		{ 0, "raw", OPT_CALL, args, "FILE[:FROM-TO]:ADDRESS", "code", .call = take_raw },
		{ 0, "mtc-freq", OPT_U64, &args->mtc_freq, "N", "MTC period, as in IA32_RTIT_CTL" },
		{ 0, "nom-freq", OPT_U64, &args->nom_freq, "N", "nominal frequency in 100 MHz" },
		{ 0, "cpuid-0x15.eax", OPT_U64, &args->cpuid_eax, "N",
		  "crystal ratio, denominator" },
		{ 0, "cpuid-0x15.ebx", OPT_U64, &args->cpuid_ebx, "N", "crystal ratio, numerator" },
	};

	ADD_ROWS(table, rows);
}

/* Options of `perf script` that its users may try, and what to do instead. */
static const struct refused_option refused[] = {
	{ 'a', "all-cpus", "all CPUs are printed, -C selects some" },
	{ 'd', "debug-mode", "what is wrong is always reported" },
	{ 'v', "verbose", "what is wrong is always reported" },
	{ 'G', "hide-call-graph", "call chains come with g and G of --itrace" },
	{ 0, "max-stack", "--itrace=g8 and G8 print 8 calls" },
	{ 0, "stop-bt", "--itrace=g8 and G8 print 8 calls" },
	{ 'I', "show-info", "'perf script -I --header-only' prints it" },
	{ 'S', "symbols", "grep finds symbols among the lines" },
	{ 0, "dsos", "grep finds (DSO) among the lines" },
	{ 0, "addr-range", "with -F ip, awk finds addresses among the lines" },
	{ 0, "graph-function", "the pager finds a symbol, with its calls below it" },
	{ 0, "switch-on", "--time selects" },
	{ 0, "switch-off", "--time selects" },
	{ 0, "show-on-off-events", "--time selects" },
	{ 0, "per-event-dump", "--itrace and -F select kinds of events" },
	{ 0, "dump-unsorted-raw-trace", "-D prints records in order of time" },
	{ 0, "demangle", "names are demangled but with --no-demangle" },
	{ 0, "demangle-kernel", "names are demangled but with --no-demangle" },
	{ 0, "inline", "source code is not looked at, addr2line does it" },
	{ 0, "no-inline", "source code is not looked at, leave it out" },
	{ 0, "full-source-path", "source code is not looked at, addr2line does it" },
	{ 0, "guest-code", "a guest's code is that of its kernel, see ptvm-guest(1)" },
	{ 's', "script", "perf runs scripts, also on recordings of ptvm" },
	{ 'g', "gen-script", "perf runs scripts, also on recordings of ptvm" },
	{ 'l', "list", "perf runs scripts, also on recordings of ptvm" },
	{ 'L', "Latency", "perf prints it, also of recordings of ptvm" },
	{ 0, "max-blocks", "--insn-trace prints what ran" },
	{ 0, "stitch-lbr", "call chains come with g and G of --itrace" },
	{ 0, "show-kernel-path", "a kernel has the name that perf gives it without" },
	{ 0, "show-round-events", "-D prints them" },
	{ 0, "list-dlfilters", "perf runs filters, also on recordings of ptvm" },
	{ 0, "dlfilter", "perf runs filters, also on recordings of ptvm" },
	{ 0, "dlarg", "perf runs filters, also on recordings of ptvm" },
	{ 0 },
};

int script_parse(struct script_args *args, int argc, char **argv, struct ptvm_error *error)
{
	struct option_table table = { .count = 0 };
	const struct options options = {
		.usage = "ptvm script [OPTION]...",
		.summary = "Print what ran, host and guests in one order of time.",
		.rows = table.rows,
		.refused = refused,
	};

	add_input(&table, args);
	add_events(&table, args);
	add_form(&table, args);
	add_selection(&table, args);
	add_raw_traces(&table, args);
	return options_parse(&options, argc, argv, stdout, error);
}
