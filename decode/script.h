/* A run of `ptvm script`: its options, what it reads, and how it prints. Internal to the verb,
 * whose other parts are script_arguments.c, script_input.c, script_fields.c, script_selection.c and
 * script_dump.c. */
#pragma once

#include <stdio.h>

#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/raw_trace.h"
#include "decode/perf/sample_queues.h"
#include "decode/perf/sideband.h"
#include "decode/perf/trace_index.h"
#include "decode/print/print_config.h"

enum { CODE_FILES_MAX = 64, SCRIPT_STEPS_MAX = 32, MODIFIER_SIZE = 8 };

/** An option that says what to print; they build on one another in the order given. */
struct script_step {
	enum {
		STEP_FIELDS,
		STEP_ITRACE,
		STEP_INSN_TRACE,
		STEP_CALL_TRACE,
		STEP_CALL_RET_TRACE
	} kind;
	const char *text;
};

/** The options as given. */
struct script_args {
	const char *input, *times, *tids, *pids, *comms, *vcpus, *vmcs, *pt;
	const char *cpus; /* -C, or --cpu of a raw trace */
	struct script_step steps[SCRIPT_STEPS_MAX];
	unsigned step_count;
	bool no_correlate, no_itrace, no_pager, force, dump, header, header_only;
	bool show_switch, show_task, show_mmap, show_lost;
	bool show_namespace, show_cgroup, show_bpf, show_text_poke;
	bool intel, nanoseconds, relative_time, delta_time, guest_only, host_only;
	uint64_t jobs, max_lines, mtc_freq, nom_freq, cpuid_eax, cpuid_ebx;
	struct machine_options machine;
	struct {
		const char *text;
		bool raw;
	} code_files[CODE_FILES_MAX];
	unsigned code_file_count;
};

/** Everything a run needs; zero-initialise, fill args, then script_open(). */
struct script {
	struct script_args args;
	struct perf_data data;
	struct raw_trace raw;
	struct machines machines;
	struct sideband *sideband;
	struct pt_config raw_config;
	struct print_config print;
	struct trace_index index;
	struct text lead; /* of print.style */
	char modifier[MODIFIER_SIZE];
	struct sample_queues samples;
	const struct aux_queue *queues;
	size_t queue_count;
	bool lacks_address; /* sym, symoff or dso were asked for, but not what they belong to */
	bool lacks_time;    /* time was asked for, and the trace has none */
	bool may_be_empty;  /* the options may leave nothing to decode: then that is no failure */
};

/** Parse the verb's arguments. Returns as options_parse(). */
int script_parse(struct script_args *args, int argc, char **argv, struct ptvm_error *error);

/** Refuse options that would have no effect, as they are for a recording only or for a raw trace
 * only. Returns 0 or -PTVM_BAD_USAGE. */
int script_check_input(const struct script_args *args, struct ptvm_error *error);

/** Open the recording or the raw trace, and load its code. Returns as script_open(). */
int script_open_input(struct script *script, struct ptvm_error *error);

/** Settle the fields of all kinds of lines; the recording is open, and how to print mostly settled.
 * Returns 0 or -PTVM_BAD_USAGE. */
int script_parse_fields(struct script *script, struct ptvm_error *error);

/**
 * Open what the options name and settle how to print. Returns 0, -PTVM_BAD_USAGE, -PTVM_NOT_FOUND
 * (no recording), or an error of perf_data_open(), raw_trace_open(), machines_load() or
 * machine_add_elf(); script_close() in any case.
 */
int script_open(struct script *script, struct ptvm_error *error);

/** Release everything; accepts zeroes and half-opened ones. */
void script_close(struct script *script);

/** The name of an event whose samples are in the trace, where nothing is made of them; or NULL. */
const char *script_pebs_event(const struct script *script);

/**
 * When the trace begins and ends, in ns: as the recording says, or by the records of its start and
 * of what was written; 0 unknown.
 */
void script_times(const struct perf_data *data, uint64_t *first, uint64_t *last);

/**
 * Where nothing was printed: append what the options select that there is not, and what there is
 * instead; nothing where they are not to blame.
 *
 * @left_out  there were lines that the options left out
 */
void script_explain_nothing(const struct script *script, bool left_out, struct text *text);

/** --header: what the recording says of itself, as perf does. Returns 0 or -PTVM_BAD_USAGE. */
int script_print_header(const struct script *script, FILE *out, struct ptvm_error *error);

/** -D: every record and packet. Returns 0, or as perf_dump(). */
int script_dump(const struct script *script, FILE *out, struct ptvm_error *error);
