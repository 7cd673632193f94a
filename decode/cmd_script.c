#include "decode/cmd_script.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "decode/base/pager.h"
#include "decode/base/plural.h"
#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/perf/perf_damage.h"
#include "decode/perf/perf_data.h"
#include "decode/print/team.h"
#include "decode/pt/pt_packet.h"
#include "decode/script.h"

/* What went wrong, in one line for each kind; each case is a line of the output if that was asked
 * for. */
static void report_gaps(const struct team_result *result)
{
	for (int kind = 0; kind < GAP_KINDS; kind++)
		if (result->gaps[kind])
			(void)fprintf(stderr,
				      "ptvm script: %" PRIu64 " instruction trace error%s: %s\n",
				      result->gaps[kind], plural(result->gaps[kind]),
				      gap_text((enum gap_kind)kind));
	if (result->translated)
		(void)fprintf(stderr,
			      "ptvm script: %" PRIu64
			      " guest time stamp%s taken in the host's time "
			      "(--no-correlate takes them as they are)\n",
			      result->translated, plural(result->translated));
	if (result->corrections)
		(void)fprintf(stderr,
			      "ptvm script: %" PRIu64
			      " time stamp%s of lines kept from running backwards\n",
			      result->corrections, plural(result->corrections));
}

static void report_patched(const struct patch_list_sites *patched)
{
	if (patched->count)
		(void)fprintf(stderr,
			      "ptvm script: %s%zu jump label%s or call%s found patched in code "
			      "copied earlier (first at %#" PRIx64 ")\n",
			      patched->is_cut ? "at least " : "", patched->count,
			      plural(patched->count), plural(patched->count), patched->lowest);
}

static void report_damage(const struct perf_data *data)
{
	struct ptvm_error error = { 0 };

	for (unsigned kind = 0; kind < PERF_DAMAGE_KINDS; kind++) {
		if (perf_damage_check(data, kind, &error))
			(void)fprintf(stderr, "ptvm script: %s\n", error.message);
		error = (struct ptvm_error){ 0 };
	}
	if (perf_damage_check_pages(data, &error))
		(void)fprintf(stderr, "ptvm script: %s\n", error.message);
}

static void report_pebs(const struct script *script)
{
	const char *event = script_pebs_event(script);

	if (event && !script->args.no_itrace && !script->args.dump && !script->args.header_only)
		(void)fprintf(
			stderr,
			"ptvm script: %s: its samples are in the trace (PEBS), from which they "
			"are not decoded yet; -D shows them\n",
			event);
}

static void report_notes(const struct machines *machines)
{
	const char *note;

	machines_note_files(machines);
	for (size_t i = 0; (note = machines_note(machines, i)); i++)
		(void)fprintf(stderr, "ptvm script: %s\n", note);
}

/* A raw trace has no index, and with --no-correlate points have another notion of time. */
static int open_index(struct script *script)
{
	if (script->args.pt || script->args.no_correlate)
		return 0;
	script->print.index = &script->index;
	return trace_index_open(&script->data, &script->index);
}

/* Fields that were asked for and say nothing. */
static void report_fields(const struct script *script)
{
	if (script->lacks_address)
		(void)fputs("ptvm script: sym and dso are those of ip or addr, and symoff is that "
			    "of sym, which -F leaves out\n",
			    stderr);
	if (script->lacks_time)
		(void)fputs("ptvm script: time is 0 in all lines: the trace has none, or "
			    "--itrace=Z leaves it out\n",
			    stderr);
}

static void report_nothing(const struct script *script, const struct team_result *result)
{
	struct text text = { 0 };

	if (!result->written && !script->args.dump && !script->args.header_only)
		script_explain_nothing(script, result->left_out, &text);
	if (text.size)
		(void)fprintf(stderr, "ptvm script: %.*s\n", (int)text.size, text.data);
	text_free(&text);
}

static void report_index(const struct trace_index *index)
{
	const char *complaint = index->complaint;

	for (size_t i = 0; i < index->queue_count; i++)
		if (index->queues[i].bad)
			complaint = "does not fit the trace";
	if (complaint)
		(void)fprintf(stderr, "ptvm script: %s %s: not used\n", index->path, complaint);
}

/* Why nothing of a raw trace could be decoded. */
static const char *raw_reason(const struct script *script)
{
	const struct bytes trace = { script->raw.span.data, script->raw.span.size };

	if (!pt_psb_find(trace.data, trace.data + trace.size))
		return ": no PSB in it, where decoding begins";
	return script->args.code_file_count ? "" : ": name files of its code with --elf or --raw";
}

/* A trace may be of events alone, or of none: nothing is wrong where it has nothing to follow. */
static bool is_decoded(const struct team_result *result)
{
	if (result->insns || result->events || result->full)
		return true;
	for (int kind = 0; kind < GAP_KINDS; kind++)
		if (result->gaps[kind])
			return false;
	return result->psbs && result->addresses == result->psbs;
}

static int check_result(const struct script *script, const struct team_result *result,
			struct ptvm_error *error)
{
	const char *path = script->args.pt ? script->args.pt : script->data.path;

	if (!result->bytes && (script->args.pt || script->data.have_pt) && !script->args.no_itrace)
		(void)fprintf(stderr, "ptvm script: %s: no trace in this recording\n", path);
	if (!result->bytes || is_decoded(result) || script->may_be_empty)
		return 0;
	return ptvm_fail(error, PTVM_BAD_INPUT, "%s: nothing could be decoded%s", path,
			 script->args.pt ? raw_reason(script) : "");
}

static int print_trace(struct script *script, struct team_result *result, struct ptvm_error *error)
{
	const struct timeline_output output = { STDOUT_FILENO, script->args.max_lines,
						(unsigned)script->args.jobs };
	struct ptvm_error unsaved = { 0 };
	int r;

	(void)fflush(stdout);
	r = open_index(script);
	if (r)
		return r;
	r = team_print(script->queues, script->queue_count, &script->print, &output, result, error);
	/* not a failure of the run, even with a directory that cannot be written or a full disk */
	(void)trace_index_save(&script->index, &unsaved);
	if (r == -PTVM_SYSTEM && error->sys_errno == EPIPE) {
		*result = (struct team_result){ .written = true };
		return 0;
	}
	return r ? r : check_result(script, result, error);
}

/* Notes are printed when the user has left the pager, which has the terminal until then. */
static int run(struct script *script, struct ptvm_error *error)
{
	struct team_result result = { 0 };
	struct pager pager = { 0 };
	int r;

	r = script_open(script, error);
	if (r)
		return r;
	r = script->args.no_pager ? 0 : pager_start(&pager, error);
	if (!r && (script->args.header || script->args.header_only))
		r = script_print_header(script, stdout, error);
	if (!r && script->args.dump)
		r = script_dump(script, stdout, error);
	else if (!r && !script->args.header_only)
		r = print_trace(script, &result, error);
	pager_wait(&pager);
	if (result.note)
		(void)fprintf(stderr, "ptvm script: %s\n", result.note);
	if (!r && result.written)
		report_fields(script);
	if (!r)
		report_nothing(script, &result);
	if (!r)
		report_pebs(script);
	report_gaps(&result);
	report_patched(&result.patched);
	report_index(&script->index);
	if (!script->args.pt)
		report_damage(&script->data);
	report_notes(&script->machines);
	return r;
}

int cmd_script(int argc, char **argv, struct ptvm_error *error)
{
	struct script script = { 0 };
	int r;

	r = script_parse(&script.args, argc, argv, error);
	if (!r)
		r = run(&script, error);
	script_close(&script);
	return r;
}
