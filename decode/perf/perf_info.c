#include "decode/perf/perf_info.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "decode/base/byte_reader.h"
#include "decode/base/printable.h"
#include "decode/perf/perf_attr_text.h"
#include "decode/perf/perf_feature.h"

static bool has(const struct perf_data *data, unsigned feature)
{
	return data->features.bitmap[feature / 64] >> feature % 64 & 1;
}

static void print_string(const char *name, const char *value, FILE *out)
{
	if (!value)
		return;
	(void)fprintf(out, "# %s : ", name);
	printable_puts(value, out);
	(void)fputc('\n', out);
}

/* A string: its length, then that many bytes with a NUL somewhere. */
static size_t take_string(struct byte_reader *payload, const char **ret)
{
	struct bytes text = byte_reader_sized(payload, 4);

	*ret = text.size ? (const char *)text.data : "";
	return strnlen(*ret, text.size);
}

static struct byte_reader payload_of(const struct perf_data *data, enum perf_feature feature)
{
	return (struct byte_reader){ .left = data->features.payloads[feature] };
}

static void print_nrcpus(const struct perf_data *data, FILE *out)
{
	(void)fprintf(out, "# nrcpus online : %u\n# nrcpus avail : %u\n",
		      data->features.cpus_online, data->features.cpus_available);
}

static void print_total_mem(const struct perf_data *data, FILE *out)
{
	(void)fprintf(out, "# total memory : %" PRIu64 " kB\n", data->features.total_mem_kb);
}

static void print_cmdline(const struct perf_data *data, FILE *out)
{
	if (!data->features.cmdline)
		return;
	(void)fputs("# cmdline : ", out);
	printable_puts(data->features.cmdline, out);
	(void)fputs(" \n", out);
}

static void print_events(const struct perf_data *data, FILE *out)
{
	for (size_t i = 0; i < data->events.count; i++) {
		const struct perf_event *event = &data->events.items[i];

		(void)fputs("# event : name = ", out);
		printable_puts(event->name, out);
		(void)fputs(", ", out);
		for (size_t k = 0; k < event->id_count; k++)
			(void)fprintf(out, "%s %" PRIu64, k ? "," : ", id = {", event->ids[k]);
		if (event->id_count)
			(void)fputs(" }", out);
		perf_attr_print(event, out);
		(void)fputc('\n', out);
	}
}

static void print_branch_stack(const struct perf_data *data, FILE *out)
{
	(void)fputs("# contains samples with branch stack\n", out);
}

static void print_pmu_mappings(const struct perf_data *data, FILE *out)
{
	struct byte_reader payload = payload_of(data, PERF_FEATURE_PMU_MAPPINGS);
	uint64_t count = byte_reader_number(&payload, 4);
	const char *before = "# pmu mappings: ";

	for (uint64_t i = 0; i < count && payload.left.size; i++) {
		uint64_t type = byte_reader_number(&payload, 4);
		const char *name;
		size_t length = take_string(&payload, &name);

		(void)fputs(before, out);
		printable_write(name, length, out);
		(void)fprintf(out, " = %" PRIu64, type);
		before = ", ";
	}
	(void)fputs(count ? "\n" : "# pmu mappings: not available\n", out);
}

/* Events from a leader on, as {leader,member}, behind the group's name if it has one. No event is
 * in two groups: `next` is the first behind them so far, or the output could have any size. */
static void print_group(const struct perf_data *data, struct byte_reader *payload, uint64_t *next,
			FILE *out)
{
	const char *name;
	size_t length = take_string(payload, &name);
	uint64_t leader = byte_reader_number(payload, 4), members = byte_reader_number(payload, 4);
	const char *before = "{";

	if (members < 2 || leader < *next || leader + members > data->events.count)
		return;
	*next = leader + members;
	(void)fputs("# group: ", out);
	if (length != strlen("{anon_group}") || memcmp(name, "{anon_group}", length))
		printable_write(name, length, out);
	for (uint64_t i = leader; i < leader + members; i++) {
		(void)fputs(before, out);
		printable_puts(data->events.items[i].name, out);
		before = ",";
	}
	(void)fputs("}\n", out);
}

static void print_groups(const struct perf_data *data, FILE *out)
{
	struct byte_reader payload = payload_of(data, PERF_FEATURE_GROUP_DESC);
	uint64_t count = byte_reader_number(&payload, 4), next = 0;

	for (uint64_t i = 0; i < count && payload.left.size; i++)
		print_group(data, &payload, &next, out);
}

static void print_auxtrace(const struct perf_data *data, FILE *out)
{
	(void)fputs("# contains AUX area data (e.g. instruction trace)\n", out);
}

static void print_stat(const struct perf_data *data, FILE *out)
{
	(void)fputs("# contains stat data\n", out);
}

static void print_time(const char *name, uint64_t time_ns, FILE *out)
{
	(void)fprintf(out, "# time of %s sample : %" PRIu64 ".%06" PRIu64 "\n", name,
		      time_ns / 1000000000, time_ns / 1000 % 1000000);
}

static void print_sample_time(const struct perf_data *data, FILE *out)
{
	uint64_t first = data->features.first_sample_ns, last = data->features.last_sample_ns;

	print_time("first", first, out);
	print_time("last", last, out);
	(void)fprintf(out, "# sample duration : %10.3f ms\n", (double)(last - first) / 1e6);
}

static void print_clockid(const struct perf_data *data, FILE *out)
{
	uint64_t resolution;

	if (bytes_read(data->features.payloads[PERF_FEATURE_CLOCKID], 0, 8, &resolution))
		(void)fprintf(out, "# clockid frequency: %" PRIu64 " MHz\n", resolution * 1000);
}

static void print_dir_format(const struct perf_data *data, FILE *out)
{
	(void)fprintf(out, "# directory data version : %" PRIu64 "\n",
		      bytes_number(data->features.payloads[PERF_FEATURE_DIR_FORMAT], 0, 8));
}

static void print_compressed(const struct perf_data *data, FILE *out)
{
	struct bytes payload = data->features.payloads[PERF_FEATURE_COMPRESSED];

	(void)fprintf(out, "# compressed : %s, level = %" PRIu64 ", ratio = %" PRIu64 "\n",
		      bytes_number(payload, 4, 4) == 1 ? "Zstd" : "Unknown",
		      bytes_number(payload, 8, 4), bytes_number(payload, 12, 4));
}

/* "name=value, ..." of one PMU. */
static void print_caps(struct byte_reader *payload, uint64_t count, FILE *out)
{
	const char *comma = "";

	for (uint64_t i = 0; i < count && payload->left.size; i++) {
		const char *name, *value;
		size_t name_length = take_string(payload, &name);
		size_t value_length = take_string(payload, &value);

		(void)fputs(comma, out);
		printable_write(name, name_length, out);
		(void)fputc('=', out);
		printable_write(value, value_length, out);
		comma = ", ";
	}
	(void)fputc('\n', out);
}

static void print_cpu_caps(const struct perf_data *data, FILE *out)
{
	struct byte_reader payload = payload_of(data, PERF_FEATURE_CPU_PMU_CAPS);
	uint64_t count = byte_reader_number(&payload, 4);

	(void)fputs(count ? "# cpu pmu capabilities: " : "# cpu pmu capabilities: not available",
		    out);
	print_caps(&payload, count, out);
}

/* For each PMU: how many capabilities, these, and only then its name. */
static void print_pmu_caps(const struct perf_data *data, FILE *out)
{
	struct byte_reader payload = payload_of(data, PERF_FEATURE_PMU_CAPS);
	uint64_t pmus = byte_reader_number(&payload, 4);

	for (uint64_t i = 0; i < pmus && payload.left.size; i++) {
		uint64_t count = byte_reader_number(&payload, 4);
		struct byte_reader caps = payload;
		const char *text;
		size_t length;

		for (uint64_t k = 0; k < 2 * count && payload.left.size; k++)
			(void)take_string(&payload, &text);
		length = take_string(&payload, &text);
		(void)fputs("# ", out);
		printable_write(text, length, out);
		(void)fputs(" pmu capabilities: ", out);
		print_caps(&caps, count, out);
	}
}

static void print_hostname(const struct perf_data *data, FILE *out)
{
	print_string("hostname", data->features.hostname, out);
}

static void print_osrelease(const struct perf_data *data, FILE *out)
{
	print_string("os release", data->features.osrelease, out);
}

static void print_version(const struct perf_data *data, FILE *out)
{
	print_string("perf version", data->features.version, out);
}

static void print_arch(const struct perf_data *data, FILE *out)
{
	print_string("arch", data->features.arch, out);
}

static void print_cpudesc(const struct perf_data *data, FILE *out)
{
	print_string("cpudesc", data->features.cpudesc, out);
}

static void print_cpuid(const struct perf_data *data, FILE *out)
{
	print_string("cpuid", data->features.cpuid, out);
}

/* By number. Those without a function say nothing about the trace, and are only named. */
static const struct {
	const char *name;
	void (*print)(const struct perf_data *data, FILE *out);
	bool is_long;
} features[] = {
	[PERF_FEATURE_TRACING_DATA] = { "TRACING_DATA", NULL, false },
	[PERF_FEATURE_BUILD_ID] = { "BUILD_ID", NULL, false },
	[PERF_FEATURE_HOSTNAME] = { "HOSTNAME", print_hostname, false },
	[PERF_FEATURE_OSRELEASE] = { "OSRELEASE", print_osrelease, false },
	[PERF_FEATURE_VERSION] = { "VERSION", print_version, false },
	[PERF_FEATURE_ARCH] = { "ARCH", print_arch, false },
	[PERF_FEATURE_NRCPUS] = { "NRCPUS", print_nrcpus, false },
	[PERF_FEATURE_CPUDESC] = { "CPUDESC", print_cpudesc, false },
	[PERF_FEATURE_CPUID] = { "CPUID", print_cpuid, false },
	[PERF_FEATURE_TOTAL_MEM] = { "TOTAL_MEM", print_total_mem, false },
	[PERF_FEATURE_CMDLINE] = { "CMDLINE", print_cmdline, false },
	[PERF_FEATURE_EVENT_DESC] = { "EVENT_DESC", print_events, false },
	[PERF_FEATURE_CPU_TOPOLOGY] = { "CPU_TOPOLOGY", NULL, true },
	[PERF_FEATURE_NUMA_TOPOLOGY] = { "NUMA_TOPOLOGY", NULL, true },
	[PERF_FEATURE_BRANCH_STACK] = { "BRANCH_STACK", print_branch_stack, false },
	[PERF_FEATURE_PMU_MAPPINGS] = { "PMU_MAPPINGS", print_pmu_mappings, false },
	[PERF_FEATURE_GROUP_DESC] = { "GROUP_DESC", print_groups, false },
	[PERF_FEATURE_AUXTRACE] = { "AUXTRACE", print_auxtrace, false },
	[PERF_FEATURE_STAT] = { "STAT", print_stat, false },
	[PERF_FEATURE_CACHE] = { "CACHE", NULL, true },
	[PERF_FEATURE_SAMPLE_TIME] = { "SAMPLE_TIME", print_sample_time, false },
	[PERF_FEATURE_MEM_TOPOLOGY] = { "MEM_TOPOLOGY", NULL, true },
	[PERF_FEATURE_CLOCKID] = { "CLOCKID", print_clockid, false },
	[PERF_FEATURE_DIR_FORMAT] = { "DIR_FORMAT", print_dir_format, false },
	[PERF_FEATURE_BPF_PROG_INFO] = { "BPF_PROG_INFO", NULL, false },
	[PERF_FEATURE_BPF_BTF] = { "BPF_BTF", NULL, false },
	[PERF_FEATURE_COMPRESSED] = { "COMPRESSED", print_compressed, false },
	[PERF_FEATURE_CPU_PMU_CAPS] = { "CPU_PMU_CAPS", print_cpu_caps, false },
	[PERF_FEATURE_CLOCK_DATA] = { "CLOCK_DATA", NULL, false },
	[PERF_FEATURE_HYBRID_TOPOLOGY] = { "HYBRID_TOPOLOGY", NULL, false },
	[PERF_FEATURE_PMU_CAPS] = { "PMU_CAPS", print_pmu_caps, false },
};

enum { FEATURES = sizeof(features) / sizeof(*features) };

static void print_features(const struct perf_data *data, FILE *out)
{
	for (unsigned i = 1; i < FEATURES; i++) {
		if (has(data, i) && features[i].print)
			features[i].print(data, out);
		else if (has(data, i) && features[i].is_long)
			(void)fprintf(out, "# %s info available\n", features[i].name);
	}
	(void)fputs("# missing features: ", out);
	for (unsigned i = 1; i < FEATURES; i++)
		if (!has(data, i))
			(void)fprintf(out, "%s ", features[i].name);
	(void)fputc('\n', out);
}

static void print_file(const struct perf_data *data, FILE *out)
{
	struct stat status;
	char date[32];

	if (data->is_pipe)
		return;
	if (data->file_path && !stat(data->file_path, &status) && ctime_r(&status.st_mtime, date))
		(void)fprintf(out, "# captured on    : %s", date);
	(void)fprintf(out,
		      "# header version : 1\n# data offset    : %" PRIu64
		      "\n# data size      : %" PRIu64 "\n# feat offset    : %" PRIu64 "\n",
		      data->data_offset, data->data_size, data->data_offset + data->data_size);
}

void perf_info_print(const struct perf_data *data, FILE *out)
{
	(void)fputs("# ========\n", out);
	print_file(data, out);
	print_features(data, out);
	(void)fputs("# ========\n#\n", out);
}
