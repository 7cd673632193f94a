#include "decode/print/trace_progress.h"

#include "decode/base/progress.h"

enum { FIRST_MS = 1000, STEP_MS = 200 };

void trace_progress_init(struct trace_progress *progress, int64_t now_ms)
{
	*progress = (struct trace_progress){ .next_ms = now_ms + FIRST_MS };
}

bool trace_progress_add(struct trace_progress *progress, uint64_t bytes, int64_t now_ms)
{
	progress->done += bytes;
	if (now_ms < progress->next_ms)
		return false;
	progress->next_ms = now_ms + STEP_MS;
	return true;
}

void trace_progress_show(struct trace_progress *progress)
{
	progress_show("ptvm script: %3.0f %% ",
		      100 * (double)progress->done / (double)progress->total);
	progress->is_shown = true;
}

void trace_progress_clear(struct trace_progress *progress)
{
	if (progress->is_shown)
		progress_clear();
	progress->is_shown = false;
}
