#include "decode/perf/perf_attr_text.h"

#include <inttypes.h>

static const char *const sample_types[] = {
	"IP",
	"TID",
	"TIME",
	"ADDR",
	"READ",
	"CALLCHAIN",
	"ID",
	"CPU",
	"PERIOD",
	"STREAM_ID",
	"RAW",
	"BRANCH_STACK",
	"REGS_USER",
	"STACK_USER",
	"WEIGHT",
	"DATA_SRC",
	"IDENTIFIER",
	"TRANSACTION",
	"REGS_INTR",
	"PHYS_ADDR",
	"AUX",
	"CGROUP",
	"DATA_PAGE_SIZE",
	"CODE_PAGE_SIZE",
	"WEIGHT_STRUCT",
};

static const char *const read_formats[] = {
	"TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP", "LOST",
};

/* Bits of the field at offset 40 of an attr; the two of precise_ip are one number. */
static const char *const flags[] = {
	"disabled",
	"inherit",
	"pinned",
	"exclusive",
	"exclude_user",
	"exclude_kernel",
	"exclude_hv",
	"exclude_idle",
	"mmap",
	"comm",
	"freq",
	"inherit_stat",
	"enable_on_exec",
	"task",
	"watermark",
	"precise_ip",
	NULL,
	"mmap_data",
	"sample_id_all",
	"exclude_host",
	"exclude_guest",
	"exclude_callchain_kernel",
	"exclude_callchain_user",
	"mmap2",
	"comm_exec",
	"use_clockid",
	"context_switch",
	"write_backward",
	"namespaces",
	"ksymbol",
	"bpf_event",
	"aux_output",
	"cgroup",
	"text_poke",
	"build_id",
	"inherit_thread",
	"remove_on_exec",
	"sigtrap",
};

enum { PRECISE_IP = 15 };

static void print_bits(const char *name, uint64_t value, const char *const *names, size_t count,
		       FILE *out)
{
	const char *bar = "";

	if (!value)
		return;
	(void)fprintf(out, ", %s = ", name);
	for (size_t i = 0; i < count; i++) {
		if (!(value >> i & 1))
			continue;
		(void)fprintf(out, "%s%s", bar, names[i]);
		bar = "|";
	}
}

static void print_flags(uint64_t value, FILE *out)
{
	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		uint64_t field = value >> i & (i == PRECISE_IP ? 3 : 1);

		if (flags[i] && field)
			(void)fprintf(out, ", %s = %" PRIu64, flags[i], field);
	}
}

static const struct field {
	const char *name;
	unsigned offset, size;
	bool is_hex;
} fields[] = {
	{ "{ wakeup_events, wakeup_watermark }", 48, 4, false },
	{ "bp_type", 52, 4, false },
	{ "{ bp_addr, config1 }", 56, 8, true },
	{ "{ bp_len, config2 }", 64, 8, true },
	{ "branch_sample_type", 72, 8, true },
	{ "sample_regs_user", 80, 8, true },
	{ "sample_stack_user", 88, 4, false },
	{ "clockid", 92, 4, false },
	{ "sample_regs_intr", 96, 8, true },
	{ "aux_watermark", 104, 4, false },
	{ "sample_max_stack", 108, 2, false },
	{ "aux_sample_size", 112, 4, false },
	{ "sig_data", 120, 8, false },
};

static void print_field(const struct field *field, struct bytes attr, FILE *out)
{
	uint64_t value;

	if (!bytes_read(attr, field->offset, field->size, &value) || !value)
		return;
	(void)fprintf(out, field->is_hex ? ", %s = %#" PRIx64 : ", %s = %" PRIu64, field->name,
		      value);
}

void perf_attr_print(const struct perf_event *event, FILE *out)
{
	uint64_t size;

	(void)bytes_read(event->attr, 4, 4, &size);
	if (event->type)
		(void)fprintf(out, ", type = %u", event->type);
	(void)fprintf(out, ", size = %" PRIu64, size);
	if (event->config)
		(void)fprintf(out, ", config = %#" PRIx64, event->config);
	if (event->sample_period)
		(void)fprintf(out, ", { sample_period, sample_freq } = %" PRIu64,
			      event->sample_period);
	print_bits("sample_type", event->sample_type, sample_types,
		   sizeof(sample_types) / sizeof(*sample_types), out);
	print_bits("read_format", event->read_format, read_formats,
		   sizeof(read_formats) / sizeof(*read_formats), out);
	print_flags(event->flags, out);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		print_field(&fields[i], event->attr, out);
}
