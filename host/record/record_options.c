#include "host/record/record_options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/monotonic.h"
#include "decode/base/options.h"
#include "decode/base/vec.h"
#include "host/vm/guest_way.h"

enum {
	SAMPLE_DEFAULT = 4 << 10,
	SAMPLE_LEAST = 2 << 10, /* below it hardly any has a PSB to begin at */
	SAMPLE_MOST = 60 << 10, /* as in perf; a record is less than 64K, all in all */
};

/* A number, decimal or hexadecimal, and its unit. */
static bool read_size(const char *text, const char **end, uint64_t unit, uint64_t *ret)
{
	static const char units[] = "BKMG";
	const char *letter;
	uint64_t number;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	number = strtoull(text, (char **)(uintptr_t)end, 0);
	if (errno)
		return false;
	letter = **end ? strchr(units, toupper((unsigned char)**end)) : NULL;
	if (letter) {
		unit = (uint64_t)1 << (10 * (letter - units));
		++*end;
	}
	return !__builtin_mul_overflow(number, unit, ret) && *ret;
}

static int bad(struct ptvm_error *error, const char *what, const char *value)
{
	return ptvm_fail(error, PTVM_BAD_USAGE, "%s, not '%s'", what, value);
}

static int on_domain(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;

	return vec_push(&options->domains, value) ? 0 : -PTVM_NO_MEMORY;
}

/* A list with commas, as perf takes it. */
static int read_id_list(const char *value, const char *what, struct pid_list *ret,
			struct ptvm_error *error)
{
	const char *rest = value;
	pid_t pid;

	do {
		if (!pid_read(rest, &rest, &pid) || (*rest && *rest != ','))
			return bad(error, what, value);
		if (!vec_push(ret, pid))
			return -PTVM_NO_MEMORY;
	} while (*rest++);
	return 0;
}

static int on_pid(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;

	return read_id_list(value, "-p takes the numbers of processes", &options->pids, error);
}

static int on_tid(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;

	return read_id_list(value, "-t takes the numbers of threads", &options->tids, error);
}

static int on_vcpus(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;

	return number_ranges_parse("--vcpu", value, &options->vcpus, error);
}

static int on_cpus(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;

	options->has_cpus = true;
	return number_ranges_parse("-C", value, &options->cpus, error);
}

static int on_snapshot(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;
	const char *end = value;

	options->is_snapshot = true;
	if (isdigit((unsigned char)*value) && !read_size(value, &end, 1, &options->snapshot_size))
		return bad(error, "-S takes a size and e", value);
	options->is_at_exit = *end == 'e';
	end += *end == 'e';
	return *end ? bad(error, "-S takes a size and e", value) : 0;
}

static int on_aux_sample(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;
	const char *end = value;
	uint64_t size = SAMPLE_DEFAULT;

	if (*value && (!read_size(value, &end, 1, &size) || *end || size < SAMPLE_LEAST ||
		       size > SAMPLE_MOST))
		return bad(error, "--aux-sample takes a size, 2K to 60K", value);
	options->aux_sample_size = (uint32_t)(size + 7) & ~7U;
	return 0;
}

/* "-m DATA", "-m ,AUX" or both; numbers without a unit are pages. */
static int on_sizes(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const char *end = value;

	if (*end != ',' && !read_size(value, &end, page, &options->record_size))
		return bad(error, "-m takes sizes, as 512K,16M", value);
	if (*end == ',' && !read_size(end + 1, &end, page, &options->aux_size))
		return bad(error, "-m takes sizes, as 512K,16M", value);
	return *end ? bad(error, "-m takes sizes, as 512K,16M", value) : 0;
}

static int on_max_size(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;
	const char *end = value;

	if (!read_size(value, &end, 1, &options->max_size) || *end)
		return bad(error, "--max-size takes a size, as 2G", value);
	return 0;
}

static int on_duration(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;
	char *end;
	double number = isdigit((unsigned char)*value) ? strtod(value, &end) : 0;

	if (!(number > 0) || number > INT_MAX)
		return bad(error, "--duration takes seconds, as 2.5", value);
	if (!strcmp(end, "ms"))
		number /= MS_PER_S;
	else if (*end && strcmp(end, "s"))
		return bad(error, "--duration takes seconds, as 2.5, or 500ms", value);
	options->duration_ms = (uint64_t)ceil(number * MS_PER_S);
	return 0;
}

static int on_delay(void *context, const char *value, struct ptvm_error *error)
{
	struct record_options *options = context;
	char *end;
	long number = strtol(value, &end, 10);

	if (end == value || *end || number < -1 || number > INT_MAX)
		return bad(error, "-D takes milliseconds, or -1", value);
	options->delay_ms = number;
	return 0;
}

static int check_via(const struct record_options *options, struct ptvm_error *error)
{
	const size_t guests = options->domains.count + options->pids.count;
	const bool is_of_one = options->via && strchr(options->via, '=');

	if (!options->via || !strcmp(options->via, "none"))
		return 0;
	if (!guests)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--via leads to a guest: name it with --domain or -p");
	if (is_of_one && guests > 1)
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--via %s leads to one guest, and %zu are named", options->via,
				 guests);
	return guest_way_check(options->via, guests, error);
}

/* Do the options go together? */
static int check(const struct record_options *options, struct ptvm_error *error)
{
	const bool names_what = options->domains.count || options->pids.count ||
				options->tids.count || options->has_cpus || options->is_all_cpus;
	const char *wrong = NULL;

	if (options->repair)
		return names_what || options->command
			       ? ptvm_fail(error, PTVM_BAD_USAGE,
					   "--repair records nothing: leave what to trace out")
			       : 0;
	if (!names_what)
		wrong = "what to trace? name a guest with --domain or -p, threads with -t, or "
			"CPUs with -C or -a";
	else if (options->is_per_thread && (options->has_cpus || options->is_all_cpus))
		wrong = "--per-thread follows threads to any CPU: leave -C and -a out";
	else if (options->vcpus.count && !options->domains.count && !options->pids.count)
		wrong = "--vcpu needs the guest, by --domain or -p";
	else if (options->aux_sample_size && options->is_snapshot)
		wrong = "--aux-sample writes the newest trace with each sample: leave -S out";
	else if (options->aux_size && options->aux_size < options->aux_sample_size)
		wrong = "a sample of --aux-sample does not fit into the trace buffer of -m";
	else if (options->delay_ms < 0 && !options->control)
		wrong = "-D -1 waits to be enabled by --control, which is not given";
	return wrong ? ptvm_fail(error, PTVM_BAD_USAGE, "%s", wrong) : check_via(options, error);
}

static int take_command(char **words, int count, struct record_options *ret)
{
	if (!count)
		return 0;
	ret->command = calloc((size_t)count + 1, sizeof(*ret->command));
	if (!ret->command)
		return -PTVM_NO_MEMORY;
	memcpy(ret->command, words, (size_t)count * sizeof(*words));
	return 0;
}

/* Options of `perf record` and `perf kvm` that their users may try. */
static const struct refused_option refused[] = {
	{ 0, "kcore", "kernels are always copied" },
	{ 0, "host", "host and guest are always traced, ptvm script has --host-only" },
	{ 0, "guest", "host and guest are always traced, ptvm script has --guest-only" },
	{ 0, "guestkallsyms", "--via says how the guest's kernel is copied" },
	{ 0, "guestmodules", "--via says how the guest's kernel is copied" },
	{ 'B', "no-buildid", "nothing is put into ~/.debug" },
	{ 'N', "no-buildid-cache", "nothing is put into ~/.debug" },
	{ 0 },
};

static int parse(const struct option_row *rows, int argc, char **argv, struct record_options *ret,
		 struct ptvm_error *error)
{
	const struct options options = {
		.usage = "ptvm record --domain NAME|-p PID|-t TID|-C CPUS|-a [OPTION]... "
			 "[COMMAND]",
		.summary = "Trace the vCPU threads of guests, host and guest, until COMMAND ends "
			   "or Ctrl-C.",
		.rows = rows,
		.takes_command = true,
		.refused = refused,
	};
	int words = options_parse(&options, argc, argv, stdout, error);

	return words < 0 ? words : take_command(argv + argc - words, words, ret);
}

int record_options_parse(int argc, char **argv, struct record_options *ret,
			 struct ptvm_error *error)
{
	struct record_options *o = ret;
	const struct option_row rows[] = {
		{ 0, NULL, OPT_HEADING, NULL, NULL, "What to trace" },
		{ 0, "domain", OPT_CALL, o, "NAME",
		  "a guest: a libvirt domain by name, UUID or id, or QEMU's -name; repeatable",
		  .call = on_domain },
		{ 'c', "connect", OPT_STRING, &o->uri, "URI",
		  "libvirt to talk to (default: $LIBVIRT_DEFAULT_URI, then qemu:///system)" },
		{ 'p', "pid", OPT_CALL, o, "PID",
		  "a guest by its process: QEMU, Firecracker, cloud-hypervisor, crosvm",
		  .call = on_pid },
		{ 0, "vcpu", OPT_CALL, o, "LIST", "only these vCPUs, as 0,2-3", .call = on_vcpus },
		{ 't', "tid", OPT_CALL, o, "TID", "threads", .call = on_tid },
		{ 'C', "cpu", OPT_CALL, o, "LIST",
		  "only on these CPUs; without a guest, all that runs there", .call = on_cpus },
		{ 'a', "all-cpus", OPT_FLAG, &o->is_all_cpus, NULL,
		  "all that runs on the CPUs, also beside the guest" },
		{ 0, NULL, OPT_HEADING, NULL, NULL, "How" },
		{ 'e', "event", OPT_STRING, &o->event, "EVENT",
		  "options of the trace in perf's words (default: intel_pt/cyc/k)" },
		{ 0, "per-thread", OPT_FLAG, &o->is_per_thread, NULL,
		  "a buffer for each thread, not for each CPU" },
		{ 0, "filter", OPT_STRING, &o->filter, "FILTER",
		  "only some of the code, as 'filter vmx_vcpu_run'" },
		{ 0, "kvm-events", OPT_FLAG, &o->has_kvm_events, NULL,
		  "record kvm_entry, kvm_exit and kvm_write_tsc_offset, too" },
		{ 'm', "mmap-pages", OPT_CALL, o, "SIZE,SIZE",
		  "buffers of each CPU, for records and for trace (default: 512K,16M)",
		  .call = on_sizes },
		{ 'S', "snapshot", OPT_CALL, o, "SIZE",
		  "keep only the newest trace, and write it on SIGUSR2; with e, at the end, too",
		  .missing = "", .call = on_snapshot },
		{ 0, "aux-sample", OPT_CALL, o, "SIZE",
		  "keep only samples of the trace: what led to each exit with --kvm-events, else "
		  "to each millisecond (default: 4K)",
		  .missing = "", .call = on_aux_sample },
		{ 0, "via", OPT_STRING, &o->via, "WAY",
		  "how the guest's kernel is copied, see ptvm-guest(1); none: not at all",
		  .values = "agent ssh= mount= memory none" },
		{ 0, NULL, OPT_HEADING, NULL, NULL, "How long" },
		{ 'D', "delay", OPT_CALL, o, "MS",
		  "begin later; -1: when it is enabled through --control", .call = on_delay },
		{ 0, "duration", OPT_CALL, o, "SECONDS", "end after so long", .call = on_duration },
		{ 0, "max-size", OPT_CALL, o, "SIZE", "end when the recording is so large",
		  .call = on_max_size },
		{ 0, "control", OPT_STRING, &o->control, "fifo:FILE[,FILE]",
		  "take commands: enable, disable, snapshot, ping, stop; answer ack" },
		{ 0, NULL, OPT_HEADING, NULL, NULL, "Result" },
		{ 'o', "output", OPT_STRING, &o->output, "DIR",
		  "directory to make (default: ptvm.data; what is there becomes .old)" },
		{ 0, "repair", OPT_STRING, &o->repair, "DIR",
		  "do only this: complete a recording whose recorder was killed" },
		{ 0 },
	};
	int r;

	memset(o, 0, sizeof(*o));
	o->output = "ptvm.data";
	r = parse(rows, argc, argv, o, error);
	return r ? r : check(o, error);
}

void record_options_free(struct record_options *options)
{
	vec_free(&options->domains);
	vec_free(&options->pids);
	vec_free(&options->tids);
	free(options->command);
}
