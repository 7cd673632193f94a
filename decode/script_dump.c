#include <inttypes.h>

#include "decode/perf_dump.h"
#include "decode/pt_dump.h"
#include "decode/script_setup.h"

static void print_packets(void *context, const uint8_t *data, uint64_t size)
{
	pt_dump(data, size, context);
}

int script_dump(const struct script *script, FILE *out, struct ptvm_error *error)
{
	const struct perf_dump_packets packets = { print_packets, out };
	int r;

	if (script->args.pt) {
		pt_dump(script->raw.span.data, script->raw.span.size, out);
		r = ferror(out) ? -PTVM_SYSTEM : 0;
	} else {
		r = perf_dump(&script->data, &packets, out);
	}
	return r ? ptvm_fail(error, (enum ptvm_err)-r, "cannot write the dump") : 0;
}

static void print_string(FILE *out, const char *name, const char *value)
{
	if (value)
		(void)fprintf(out, "# %s : %s\n", name, value);
}

int script_print_header(const struct script *script, FILE *out, struct ptvm_error *error)
{
	const struct perf_features *features = &script->data.features;

	if (script->args.pt)
		return ptvm_fail(error, PTVM_BAD_USAGE, "a raw trace has no header");
	(void)fputs("# ========\n", out);
	(void)fprintf(out, "# data offset    : %" PRIu64 "\n", script->data.data_offset);
	(void)fprintf(out, "# data size      : %" PRIu64 "\n", script->data.data_size);
	print_string(out, "hostname", features->hostname);
	print_string(out, "os release", features->osrelease);
	print_string(out, "perf version", features->version);
	print_string(out, "arch", features->arch);
	if (features->cpus_online)
		(void)fprintf(out, "# nrcpus online : %u\n# nrcpus avail : %u\n",
			      features->cpus_online, features->cpus_available);
	print_string(out, "cpudesc", features->cpudesc);
	print_string(out, "cpuid", features->cpuid);
	if (features->total_mem_kb)
		(void)fprintf(out, "# total memory : %" PRIu64 " kB\n", features->total_mem_kb);
	print_string(out, "cmdline", features->cmdline);
	for (size_t i = 0; i < script->data.events.count; i++) {
		const struct perf_event *event = &script->data.events.items[i];

		(void)fprintf(out, "# event : name = %s, type = %u, config = %#" PRIx64 "\n",
			      event->name, event->type, event->config);
	}
	if (features->last_sample_ns)
		(void)fprintf(out,
			      "# time of first sample : %" PRIu64 ".%06" PRIu64
			      "\n# time of last sample : %" PRIu64 ".%06" PRIu64 "\n",
			      features->first_sample_ns / 1000000000,
			      features->first_sample_ns / 1000 % 1000000,
			      features->last_sample_ns / 1000000000,
			      features->last_sample_ns / 1000 % 1000000);
	(void)fputs("# ========\n#\n", out);
	return 0;
}
