#include "host/record/record_report.h"

#include <inttypes.h>
#include <string.h>

#include "decode/base/plural.h"
#include "host/record/pause_watch.h"
#include "host/record/record_options.h"
#include "host/record/recorder.h"
#include "host/record/trace_loss.h"

static const double bytes_per_mb = 1e6;
static const double ns_per_ms = 1e6;
static const double ns_per_s = 1e9;

static void print_count(uint64_t count, const char *what, FILE *out)
{
	(void)fprintf(out, "%" PRIu64 " %s%s", count, what, plural(count));
}

static void print_targets(const struct record_targets *targets, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < targets->machines.count; i++) {
		const struct trace_machine *machine = &targets->machines.items[i];

		(void)fputs(between, out);
		print_count(machine->vcpus.count, "vCPU", out);
		(void)fputs(" of ", out);
		if (machine->name[0])
			(void)fputs(machine->name, out);
		else
			(void)fprintf(out, "process %d", machine->vm.pid);
		between = ", ";
	}
	if (!targets->machines.count && targets->tids.items[0] < 0)
		print_count(targets->cpus.count, "CPU", out);
	else if (!targets->machines.count)
		print_count(targets->tids.count, "thread", out);
}

/* Name a thread in the user's words: by its vCPU, or its number. False where it is not traced. */
static bool print_thread(const struct record_targets *targets, pid_t tid, FILE *out)
{
	struct record_vcpu runs;

	if (record_targets_vcpu(targets, tid, &runs)) {
		(void)fprintf(out, " vCPU %u", runs.vcpu.index);
		if (targets->machines.count > 1)
			(void)fprintf(out, " of %s", runs.machine->name);
		return true;
	}
	for (size_t i = 0; i < targets->tids.count; i++)
		if (targets->tids.items[i] == tid) {
			(void)fprintf(out, " thread %d", tid);
			return true;
		}
	return false;
}

static void print_loss(const struct thread_loss *loss, FILE *out)
{
	if (loss->first)
		(void)fprintf(out, " from %.9f s:", (double)loss->first / ns_per_s);
	if (loss->stops)
		(void)fprintf(out, " %" PRIu64 " stop%s, %.3f ms at most,", loss->stops,
			      plural(loss->stops), (double)loss->ns / ns_per_ms);
	if (loss->partials)
		(void)fprintf(out, " %" PRIu64 " gap%s,", loss->partials, plural(loss->partials));
	if (loss->bytes)
		(void)fprintf(out, " %" PRIu64 " byte%s of trace,", loss->bytes,
			      plural(loss->bytes));
	if (loss->records)
		(void)fprintf(out, " %" PRIu64 " record%s,", loss->records, plural(loss->records));
}

/* Threads that are not traced can only lose records of switches. They are counted as one. */
static void print_losses(const struct record_targets *targets, const struct trace_loss *loss,
			 FILE *out)
{
	struct thread_loss others = { 0 };

	if (!loss->threads.count)
		return;
	(void)fputs("ptvm record: lost:", out);
	for (size_t i = 0; i < loss->threads.count; i++) {
		const struct thread_loss *thread = &loss->threads.items[i];

		if (print_thread(targets, thread->tid, out))
			print_loss(thread, out);
		else
			thread_loss_add(&others, thread);
	}
	if (others.records || others.stops || others.partials || others.bytes) {
		(void)fputs(" others", out);
		print_loss(&others, out);
	}
	(void)fputs(" use larger buffers (-m 2M,64M) or snapshots (-S)\n", out);
}

static bool is_trace_written(const struct recorder *recorder, const struct trace_loss *loss)
{
	uint64_t bytes = recorder->options->aux_sample_size ? loss->samples : 0;

	for (size_t i = 0; i < recorder->tracer.rings.count; i++)
		bytes += recorder->tracer.rings.items[i].written;
	return bytes;
}

/* Say which guests stand still. Returns whether there are any. */
static bool print_still(const struct recorder *recorder, struct pause_watch *pauses,
			bool is_written, FILE *out)
{
	bool is_known = false;

	for (size_t i = 0; i < recorder->targets.machines.count; i++) {
		const struct trace_machine *machine = &recorder->targets.machines.items[i];
		const char *why = pause_watch_still(pauses, machine->uuid);

		if (!why)
			continue;
		is_known = true;
		(void)fprintf(out, "ptvm record: %s: domain '%s' is %s",
			      is_written ? "the trace ends early" : "no trace was written",
			      machine->name, why);
		if (!strcmp(why, "paused"))
			(void)fprintf(out, ": virsh resume %s", machine->name);
		(void)fputc('\n', out);
	}
	return is_known;
}

static void print_no_trace(FILE *out)
{
	(void)fputs("ptvm record: no trace was written: none of the threads ran (a guest that is "
		    "paused, or gone), or no snapshot was taken\n",
		    out);
}

void record_report_print(const struct recorder *recorder, struct pause_watch *pauses,
			 const struct trace_loss *loss, bool is_full, FILE *out)
{
	const double size = (double)recorder->out.end / bytes_per_mb;
	const bool is_written = is_trace_written(recorder, loss);

	(void)fprintf(out, "ptvm record: %.3f MB in %s, ", size, recorder->directory.path);
	print_targets(&recorder->targets, out);
	if (recorder->options->is_snapshot) {
		(void)fputs(", ", out);
		print_count(recorder->snapshots, "snapshot", out);
	}
	(void)fputs(is_full ? ", ended at --max-size\n" : "\n", out);
	if (!print_still(recorder, pauses, is_written, out) && !is_written)
		print_no_trace(out);
	print_losses(&recorder->targets, loss, out);
}
