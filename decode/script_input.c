/* What the options of `ptvm script` name: a recording, or a raw trace and files of code. */
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/perf/perf_file.h"
#include "decode/script.h"

/* What only a recording has beside the trace. */
static bool asks_for_records(const struct script_args *args)
{
	return args->no_itrace || args->show_switch || args->show_task || args->show_mmap ||
	       args->show_lost || args->show_namespace || args->show_cgroup || args->show_bpf ||
	       args->show_text_poke;
}

int script_check_input(const struct script_args *args, struct ptvm_error *error)
{
	const struct machine_options *machine = &args->machine;
	enum { MTC_FREQ_MAX = 15, RATIO_MAX = 255 }; /* the fields of their MSRs */
	const char *wrong = NULL;

	if (!args->pt && (args->code_file_count || args->mtc_freq || args->nom_freq ||
			  args->cpuid_eax || args->cpuid_ebx))
		wrong = "--elf, --raw, --mtc-freq, --nom-freq and --cpuid-0x15 are for a trace "
			"without a recording: --pt";
	else if (args->pt && (args->input || machine->kallsyms || machine->vmlinux ||
			      machine->symfs || machine->guest_kallsyms || machine->guest_modules ||
			      machine->guest_mount || machine->guest_vmlinux))
		wrong = "-i, -k, --kallsyms, --symfs and --guest... are for a recording: with "
			"--pt, code comes from --elf and --raw";
	else if (args->pt && asks_for_records(args))
		wrong = "--no-itrace and --show-...-events are for a recording: with --pt, there "
			"is nothing but the trace";
	else if (args->mtc_freq > MTC_FREQ_MAX)
		wrong = "--mtc-freq takes 0 to 15, as in IA32_RTIT_CTL";
	else if (args->nom_freq > RATIO_MAX)
		wrong = "--nom-freq takes 1 to 255, in units of 100 MHz";
	else if (args->cpuid_eax > UINT32_MAX || args->cpuid_ebx > UINT32_MAX)
		wrong = "--cpuid-0x15.eax and .ebx take numbers of 32 bits";
	return wrong ? ptvm_fail(error, PTVM_BAD_USAGE, "%s", wrong) : 0;
}

/* As in perf, standard input where it is a pipe and there is no recording here. */
static int default_input(const char **ret, struct ptvm_error *error)
{
	struct ptvm_error none = { 0 };
	struct stat status;

	if (!perf_file_default(ret, &none))
		return 0;
	if (fstat(STDIN_FILENO, &status) || !S_ISFIFO(status.st_mode))
		return ptvm_fail_as(error, &none, -(int)none.code);
	*ret = "-";
	return 0;
}

static int check_owner(const struct script_args *args, const struct perf_data *data,
		       struct ptvm_error *error)
{
	struct stat status;

	if (args->force || data->is_pipe || stat(data->file_path, &status) || !status.st_uid ||
	    status.st_uid == geteuid())
		return 0;
	return ptvm_fail(error, PTVM_BAD_INPUT,
			 "%s: not owned by you or root (use -f to read it all the same)",
			 data->file_path);
}

/* Code that was patched has symbols also in a dump. */
static bool has_pokes(const struct perf_data *data)
{
	struct record_trail trail = perf_data_trail(data);

	for (size_t i = 0; i < data->records.count; i++) {
		const struct perf_record *record = &data->records.items[i];

		perf_data_step(&trail, record->data, record->size);
		if (record->type == PERF_TEXT_POKE)
			return true;
	}
	return false;
}

static int open_recording(struct script *script, struct ptvm_error *error)
{
	struct perf_data *data = &script->data;
	const char *path = script->args.input;
	int r = path ? 0 : default_input(&path, error);

	if (!r)
		r = perf_data_open(path, data, error);
	if (!r)
		r = check_owner(&script->args, data, error);
	if (!r && (!script->args.dump || has_pokes(data)))
		r = machines_load(data, &script->args.machine, &script->machines, error);
	if (!r && sideband_build(data, &script->sideband))
		r = -PTVM_NO_MEMORY;
	if (r)
		return r;
	for (size_t i = 0; i < data->queues.count; i++)
		if (data->queues.items[i].tid >= 0)
			data->queues.items[i].pid =
				sideband_pid_of(script->sideband, data->queues.items[i].tid);
	script->queues = data->queues.items;
	script->queue_count = script->args.no_itrace ? 0 : data->queues.count;
	data->pt.guest_tsc_raw = script->args.no_correlate;
	script->print.pt = &data->pt;
	script->print.data = data;
	script->print.mapping = data->mapping;
	return 0;
}

/* One machine has all the code, whoever runs it. */
static int add_code(struct script *script, struct ptvm_error *error)
{
	struct machine *machine = machine_new(0, false);
	int r = 0;

	if (!machine)
		return -PTVM_NO_MEMORY;
	script->machines.host = machine;
	for (unsigned i = 0; !r && i < script->args.code_file_count; i++) {
		bool raw = script->args.code_files[i].raw;
		struct file_range range;

		r = file_range_parse(script->args.code_files[i].text, raw, &range, error);
		if (!r && raw)
			r = machine_add_raw(machine, range.path, range.from, range.to,
					    range.address, error);
		else if (!r)
			r = machine_add_elf(machine, range.path, range.from, error);
	}
	return r;
}

static int open_raw(struct script *script, struct ptvm_error *error)
{
	struct pt_config *config = &script->raw_config;
	const struct script_args *args = &script->args;
	struct file_range range;
	int r;

	config->tsc = config->mtc = config->cyc = true;
	config->filter[0] = '?';
	config->guest_tsc_raw = args->no_correlate;
	config->mtc_shift = (uint8_t)args->mtc_freq;
	config->ctc_n = (uint32_t)args->cpuid_ebx;
	config->ctc_d = (uint32_t)args->cpuid_eax;
	config->max_nonturbo = (uint32_t)args->nom_freq;
	config->nominal_hz = args->nom_freq * 100000000;
	if (args->nom_freq)
		config->conv = (struct time_conv){
			.valid = true, .shift = 20, .mult = (uint32_t)((10u << 20) / args->nom_freq)
		};
	r = args->cpus ? raw_trace_parse_cpu(args->cpus, config, error) : 0;
	if (!r)
		r = file_range_parse(args->pt, false, &range, error);
	if (!r)
		r = raw_trace_open(&range, &script->raw, error);
	if (!r)
		r = add_code(script, error);
	if (r)
		return r;
	script->machines.one_for_all = true;
	script->queues = &script->raw.queue;
	script->queue_count = 1;
	script->print.pt = config;
	script->print.mapping = script->raw.file;
	return 0;
}

int script_open_input(struct script *script, struct ptvm_error *error)
{
	return script->args.pt ? open_raw(script, error) : open_recording(script, error);
}
