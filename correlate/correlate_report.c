#include "correlate/correlate_report.h"

#include <inttypes.h>
#include <jansson.h>

#include "decode/base/search.h"

/* What the table says of the machine that a guest is. */
struct identity {
	int32_t pid, tid; /* -1 unknown */
	int64_t vcpu;
	const char *name; /* "" unknown */
};

static double hertz(const struct correlate_report *report)
{
	const struct pt_config *pt = &report->data->pt;

	if (pt->conv.valid && pt->conv.mult)
		return 1e9 * (double)((uint64_t)1 << pt->conv.shift) / pt->conv.mult;
	return (double)pt->nominal_hz;
}

static double seconds(const struct correlate_report *report, int64_t ticks)
{
	double rate = hertz(report);

	return rate > 0 ? (double)ticks / rate : 0;
}

/* The thread on a CPU at a time of perf's clock. */
static int32_t thread_at(const struct sideband *sideband, int32_t cpu, uint64_t time_ns)
{
	size_t count;
	const struct switch_entry *switches = sideband_switches(sideband, cpu, &count);
	const size_t next = search_sorted(count, i, switches[i].time <= time_ns);

	return next ? switches[next - 1].tid : -1;
}

int32_t report_thread(const struct correlate_report *report, const struct vmcs_offsets *guest)
{
	const struct perf_data *data = report->data;
	const struct aux_queue *queue = &data->queues.items[guest->queue];
	uint64_t host = guest->segments.count ? guest->segments.items[0].host : guest->first_host;

	if (queue->tid >= 0 || !data->pt.conv.valid || !host)
		return queue->tid;
	return thread_at(report->sideband, queue->cpu, time_conv_ns(&data->pt.conv, host));
}

static struct identity identify(const struct correlate_report *report,
				const struct vmcs_offsets *guest)
{
	int32_t tid = report_thread(report, guest);
	const struct offset_recorded *known = offsets_recorded_find(report->recorded, tid);
	struct identity identity = { .pid = -1, .tid = tid, .vcpu = -1, .name = "" };

	if (tid >= 0) {
		identity.pid = sideband_pid_of(report->sideband, tid);
		identity.vcpu = perf_data_vcpu(report->data, tid);
	}
	if (known) {
		identity.pid = known->pid;
		identity.vcpu = known->vcpu;
		identity.name = known->name;
	}
	return identity;
}

const char *report_reason(const struct correlate_report *report, const struct vmcs_offsets *guest)
{
	const struct pt_config *pt = &report->data->pt;

	if (guest->is_unclear)
		return "its vCPU has another VMCS, and the offset that was recorded may be that "
		       "one's";
	if (!pt->mtc || !pt->ctc_n)
		return "the recording has no MTC and TMA packets";
	if (guest->without_tma == guest->packets)
		return "no guest TSC packet has a usable TMA (erratum SKZ84?)";
	return "no TSC packet of the host is near, and nothing else dates the guest's";
}

static uint64_t offset64(uint64_t offset)
{
	return (uint64_t)tsc_difference(offset, 0);
}

static void print_time(const struct correlate_report *report, uint64_t tsc, FILE *out)
{
	const struct time_conv *conv = &report->data->pt.conv;
	uint64_t ns;

	if (!tsc || tsc == UINT64_MAX || !conv->valid) {
		(void)fprintf(out, " %19s", !tsc ? "begin" : tsc == UINT64_MAX ? "end" : "?");
		return;
	}
	ns = time_conv_ns(conv, tsc);
	(void)fprintf(out, " %9" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void print_number(int64_t number, int width, FILE *out)
{
	if (number < 0)
		(void)fprintf(out, " %*s", width, "-");
	else
		(void)fprintf(out, " %*" PRId64, width, number);
}

static const char *source_name(enum tsc_source source)
{
	static const char *const names[] = { "inferred", "recorded", "given" };

	return names[source];
}

static const char *confidence_name(enum tsc_confidence confidence)
{
	static const char *const names[] = { "low", "medium", "high" };

	return names[confidence];
}

static void print_segment(const struct correlate_report *report, const struct vmcs_offsets *guest,
			  const struct tsc_segment *segment, FILE *out)
{
	struct identity identity = identify(report, guest);
	double ratio = (double)segment->ratio / TSC_RATIO_ONE;

	(void)fprintf(out, "%#12" PRIx64, guest->vmcs);
	if (*identity.name)
		(void)fprintf(out, " %10s", identity.name);
	else
		print_number(identity.pid, 10, out);
	print_number(identity.vcpu, 4, out);
	print_number(identity.tid, 7, out);
	print_time(report, segment->from, out);
	print_time(report, segment->to, out);
	(void)fprintf(out, " %#18" PRIx64 " %+18.9f %11.9f %8" PRIu64 " %8.1f %-8s %s\n",
		      offset64(segment->offset),
		      seconds(report, tsc_difference(segment->offset, 0)), ratio,
		      segment->observations, 1e9 * seconds(report, (int64_t)segment->residual),
		      source_name(segment->source), confidence_name(segment->confidence));
}

static void print_table(const struct correlate_report *report, FILE *out)
{
	const struct tsc_offsets *offsets = report->offsets;

	(void)fprintf(out, "\n%12s %10s %4s %7s %19s %19s %18s %18s %11s %8s %8s %-8s %s\n", "vmcs",
		      "machine", "vcpu", "tid", "from", "to", "offset", "seconds", "ratio",
		      "observed", "off ns", "source", "confidence");
	for (size_t i = 0; i < offsets->guests.count; i++)
		for (size_t k = 0; k < offsets->guests.items[i].segments.count; k++)
			print_segment(report, &offsets->guests.items[i],
				      &offsets->guests.items[i].segments.items[k], out);
}

void report_print(const struct correlate_report *report, FILE *out)
{
	const struct tsc_offsets *offsets = report->offsets;
	size_t count = 0;

	for (size_t i = 0; i < offsets->guests.count; i++) {
		const struct vmcs_offsets *guest = &offsets->guests.items[i];

		for (size_t k = 0; k < guest->segments.count; k++, count++)
			(void)fprintf(out, "VMCS: %#" PRIx64 "  TSC Offset %#" PRIx64 "\n",
				      guest->vmcs, offset64(guest->segments.items[k].offset));
	}
	if (count)
		print_table(report, out);
}

static json_t *hex(uint64_t value)
{
	return json_sprintf("0x%" PRIx64, value);
}

/* Nanoseconds of perf's clock; null where the segment is open. */
static json_t *time_json(const struct correlate_report *report, uint64_t tsc)
{
	const struct time_conv *conv = &report->data->pt.conv;

	if (!tsc || tsc == UINT64_MAX || !conv->valid)
		return json_null();
	return json_integer((json_int_t)time_conv_ns(conv, tsc));
}

static json_t *segment_json(const struct correlate_report *report,
			    const struct tsc_segment *segment)
{
	int64_t offset = tsc_difference(segment->offset, 0);

	return json_pack(
		"{s:o, s:o, s:o, s:I, s:f, s:f, s:I, s:I, s:f, s:s, s:s}", "from_ns",
		time_json(report, segment->from), "to_ns", time_json(report, segment->to), "offset",
		hex((uint64_t)offset), "offset_ticks", (json_int_t)offset, "offset_seconds",
		seconds(report, offset), "ratio", (double)segment->ratio / TSC_RATIO_ONE,
		"multiplier", (json_int_t)segment->ratio, "observations",
		(json_int_t)segment->observations, "residual_ns",
		1e9 * seconds(report, (int64_t)segment->residual), "source",
		source_name(segment->source), "confidence", confidence_name(segment->confidence));
}

static json_t *id_json(int64_t id)
{
	return id < 0 ? json_null() : json_integer(id);
}

static json_t *guest_json(const struct correlate_report *report, const struct vmcs_offsets *guest)
{
	struct identity identity = identify(report, guest);
	json_t *segments = json_array();
	json_t *object;

	for (size_t i = 0; segments && i < guest->segments.count; i++)
		if (json_array_append_new(segments,
					  segment_json(report, &guest->segments.items[i]))) {
			json_decref(segments);
			return NULL;
		}
	object = json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:b}", "vmcs",
			   hex(guest->vmcs), "machine_pid", id_json(identity.pid), "vcpu",
			   id_json(identity.vcpu), "tid", id_json(identity.tid), "segments",
			   segments, "guest_tscs", (json_int_t)guest->packets, "outliers",
			   (json_int_t)guest->outliers, "lost_ticks", (json_int_t)guest->lost_ticks,
			   "disagrees_with_recorded", guest->disagrees);
	if (object && *identity.name)
		(void)json_object_set_new(object, "machine", json_string(identity.name));
	if (object && !guest->segments.count)
		(void)json_object_set_new(object, "reason",
					  json_string(report_reason(report, guest)));
	return object;
}

int report_print_json(const struct correlate_report *report, FILE *out)
{
	const struct tsc_offsets *offsets = report->offsets;
	json_t *guests = json_array();
	json_t *root;
	int r = 0;

	for (size_t i = 0; guests && i < offsets->guests.count; i++)
		r |= json_array_append_new(guests, guest_json(report, &offsets->guests.items[i]));
	root = json_pack("{s:o, s:I, s:I, s:b, s:b}", "vmcs", guests, "tscs",
			 (json_int_t)offsets->packets, "guest_tscs_without_vmcs",
			 (json_int_t)(offsets->no_vmcs + offsets->dropped), "complete",
			 tsc_offsets_are_complete(offsets), "nothing_to_do",
			 tsc_offsets_are_none(offsets));
	if (root)
		r |= json_dumpf(root, out, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	json_decref(root);
	(void)fputc('\n', out);
	return r || !root ? -PTVM_NO_MEMORY : 0;
}
