#include "correlate/cmd_correlate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "correlate/correlate_report.h"
#include "correlate/correlation.h"
#include "decode/base/interrupt.h"
#include "decode/base/options.h"
#include "decode/base/plural.h"
#include "decode/base/progress.h"
#include "decode/perf/perf_damage.h"
#include "decode/perf/perf_file.h"

enum { STATUS_INCOMPLETE = 3 };

struct correlate_args {
	const char *input, *output;
	bool dry_run, undo, json, force;
	struct offsets_given given;
};

static int on_tsc_offset(void *context, const char *value, struct ptvm_error *error)
{
	return offsets_given_parse(value, context, error);
}

static int parse_options(struct correlate_args *args, int argc, char **argv,
			 struct ptvm_error *error)
{
	const struct option_row rows[] = {
		{ 'i', "input", OPT_STRING, &args->input, "FILE",
		  "recording: a perf.data file or directory, or, with --dry-run, - for a pipe "
		  "(default: ptvm.data, then perf.data)" },
		{ 'o', "output", OPT_STRING, &args->output, "DIR",
		  "write a corrected copy instead" },
		{ 0, "dry-run", OPT_FLAG, &args->dry_run, NULL, "only say what the offsets are" },
		{ 0, "undo", OPT_FLAG, &args->undo, NULL, "bring the recording back" },
		{ 0, "tsc-offset", OPT_CALL, &args->given, "OFFSET[:VMCS,...]",
		  "an offset that is known, of these VMCSs or of all others",
		  .call = on_tsc_offset },
		{ 0, "json", OPT_FLAG, &args->json, NULL, "print JSON" },
		{ 'f', "force", OPT_FLAG, &args->force, NULL,
		  "change files of other users, read-only or changed ones too" },
		{ 0 },
	};
	const struct options options = {
		.usage = "ptvm correlate [OPTION]...",
		.summary =
			"Find the TSC offset of each guest, and make guest time stamps the host's.",
		.rows = rows,
	};
	int r = options_parse(&options, argc, argv, stdout, error);

	if (!r && args->undo && (args->dry_run || args->output || args->json || args->given.count))
		return ptvm_fail(error, PTVM_BAD_USAGE, "--undo goes with -i and -f only");
	if (!r && !args->dry_run && args->input && !strcmp(args->input, "-"))
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "standard input cannot be corrected: only --dry-run reads it");
	if (!r && args->dry_run && args->output)
		return ptvm_fail(error, PTVM_BAD_USAGE, "--dry-run and -o exclude each other");
	return r;
}

static bool show_progress(void *context, double done)
{
	progress_show("ptvm correlate: %3.0f %%", 100 * done);
	return !interrupt_waits();
}

static bool go_on(void *context, double done)
{
	return !interrupt_waits();
}

/* An offset that was given for a VMCS which is none of the trace's is likely a slip. */
static void print_unused(const struct offsets_given *given, const struct tsc_offsets *offsets)
{
	for (unsigned i = 0; i < given->count; i++)
		if (given->items[i].vmcs != PT_NO_VMCS &&
		    !tsc_offsets_find(offsets, given->items[i].vmcs))
			(void)fprintf(
				stderr,
				"ptvm correlate: VMCS %#" PRIx64
				": --tsc-offset names it, the trace has no time stamp of it\n",
				given->items[i].vmcs);
}

static void print_damage(const struct perf_data *data)
{
	for (unsigned kind = 0; kind < PERF_DAMAGE_KINDS; kind++) {
		struct ptvm_error error = { 0 };

		if (perf_damage_check(data, kind, &error))
			(void)fprintf(stderr, "ptvm correlate: %s\n", error.message);
	}
}

/* What makes a result less than whole, a sentence each. */
static void print_notes(const struct correlate_report *report)
{
	const struct tsc_offsets *offsets = report->offsets;
	bool none = tsc_offsets_are_none(offsets);

	for (size_t i = 0; i < offsets->guests.count; i++) {
		const struct vmcs_offsets *guest = &offsets->guests.items[i];

		if (!guest->segments.count)
			(void)fprintf(stderr, "ptvm correlate: VMCS %#" PRIx64 ": no offset: %s\n",
				      guest->vmcs, report_reason(report, guest));
		if (guest->disagrees && !none)
			(void)fprintf(
				stderr,
				"ptvm correlate: VMCS %#" PRIx64
				": the offset that was recorded is not what the trace shows\n",
				guest->vmcs);
	}
	if (offsets->no_vmcs)
		(void)fprintf(stderr,
			      "ptvm correlate: %" PRIu64 " guest TSC packet%s of an unknown VMCS\n",
			      offsets->no_vmcs, plural(offsets->no_vmcs));
	if (offsets->dropped)
		(void)fprintf(stderr,
			      "ptvm correlate: %" PRIu64 " guest TSC packet%s of too many VMCSs\n",
			      offsets->dropped, plural(offsets->dropped));
	print_damage(report->data);
	if (!report->data->pt.tsc)
		(void)fprintf(stderr, "ptvm correlate: %s: recorded without time stamps\n",
			      report->data->path);
}

static int print(const struct correlation *correlation, bool json, struct ptvm_error *error)
{
	const struct correlate_report report = { &correlation->data, correlation->sideband,
						 &correlation->recorded, &correlation->offsets };

	if (json && report_print_json(&report, stdout))
		return -PTVM_NO_MEMORY;
	if (!json)
		report_print(&report, stdout);
	print_notes(&report);
	return 0;
}

static void say_done(const char *path, const struct apply_result *result)
{
	(void)fprintf(stderr, "ptvm correlate: %s: %" PRIu64 " time stamp%s corrected\n", path,
		      result->changed, plural(result->changed));
	if (result->left)
		(void)fprintf(stderr, "ptvm correlate: %s: %" PRIu64 " left as %s\n", path,
			      result->left, result->left == 1 ? "it was" : "they were");
}

static int change(const struct correlation *correlation, const struct correlate_args *args,
		  struct ptvm_error *error)
{
	const struct watch watch = { go_on, NULL };
	bool done = correlation->journal == JOURNAL_DONE;
	struct apply_result result;
	int r;

	if (done && args->given.count)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: corrected already (--undo it first)",
				 correlation->data.path);
	if (args->output) {
		r = correlation_copy(correlation, args->output, &watch, &result, error);
	} else if (done || tsc_offsets_are_none(&correlation->offsets)) {
		(void)fprintf(
			stderr, "ptvm correlate: %s: nothing to do, %s\n", correlation->data.path,
			done ? "corrected already" : "no guest's TSC differs from the host's");
		return 0;
	} else {
		r = correlation_apply(correlation, args->force, &watch, &result, error);
	}
	if (!r)
		say_done(args->output ? args->output : correlation->data.path, &result);
	return r;
}

static int correlate(struct correlation *correlation, const struct correlate_args *args,
		     struct ptvm_error *error)
{
	const struct watch watch = { show_progress, NULL };
	int r = args->output ? correlation_can_copy(args->output, error) : 0;

	if (r)
		return r;
	r = correlation_find(correlation, &args->given, &watch, error);
	progress_clear();
	if (!r)
		r = print(correlation, args->json, error);
	if (!r)
		print_unused(&args->given, &correlation->offsets);
	if (!r && !correlation->offsets.guests.count && !correlation->offsets.no_vmcs)
		(void)fprintf(stderr, "ptvm correlate: %s: no time stamp of a guest in the trace\n",
			      correlation->data.path);
	if (!r && !args->dry_run)
		r = change(correlation, args, error);
	if (!r && (!correlation->data.pt.tsc || !tsc_offsets_are_complete(&correlation->offsets)))
		r = STATUS_INCOMPLETE;
	return r;
}

/* An earlier run that did not come to its end left the recording changed in part. */
static int recover(struct correlation *correlation, const struct correlate_args *args,
		   const char *path, struct ptvm_error *error)
{
	const struct watch watch = { go_on, NULL };
	int r;

	if (correlation->journal != JOURNAL_OPEN)
		return 0;
	if (args->dry_run || args->output)
		return ptvm_fail(error, PTVM_INCONSISTENT,
				 "%s: an earlier run was interrupted (--undo it first)", path);
	r = correlation_undo(correlation, args->force, &watch, error);
	if (r)
		return r;
	(void)fprintf(stderr, "ptvm correlate: %s: an interrupted run was undone\n", path);
	correlation_close(correlation);
	return correlation_open(correlation, path, true, error);
}

static int undo(struct correlation *correlation, const struct correlate_args *args,
		struct ptvm_error *error)
{
	const struct watch watch = { go_on, NULL };
	int r = correlation_undo(correlation, args->force, &watch, error);

	if (!r)
		(void)fprintf(stderr, "ptvm correlate: %s: what was corrected is as it was\n",
			      correlation->data.path);
	return r;
}

static int run(const struct correlate_args *args, struct ptvm_error *error)
{
	struct correlation correlation = { 0 };
	const char *path = args->input;
	struct interrupt interrupt;
	int r = path ? 0 : perf_file_default(&path, error);

	if (!r)
		r = correlation_open(&correlation, path, !args->dry_run && !args->output, error);
	if (r) {
		correlation_close(&correlation);
		return r;
	}
	/* not before: what is read may be a pipe that never ends */
	interrupt_hold(&interrupt);
	r = args->undo ? undo(&correlation, args, error) : recover(&correlation, args, path, error);
	if (!r && !args->undo)
		r = correlate(&correlation, args, error);
	correlation_close(&correlation);
	/* what is done is done: a signal that came too late must not make it look undone */
	if (r < 0)
		interrupt_release(&interrupt);
	return r;
}

int cmd_correlate(int argc, char **argv, struct ptvm_error *error)
{
	struct correlate_args args = { 0 };
	int r = parse_options(&args, argc, argv, error);

	if (r)
		return r;
	r = run(&args, error);
	return r == -PTVM_END ? ptvm_fail(error, PTVM_SYSTEM, "interrupted") : r;
}
