#include "host/record/record.h"

#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/machine/kernel_file.h"
#include "host/record/pause_watch.h"
#include "host/record/record_loop.h"
#include "host/record/record_options.h"
#include "host/record/record_report.h"
#include "host/record/recorder.h"

enum { LAST_LOOK_MS = 3000 }; /* libvirtd answers in milliseconds, or hangs */

/* There is an event for each thread on each CPU: allow all the descriptors that we may have. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A snapshot that is asked for too early waits, and does not end us. */
static void hold_snapshots(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* What the loop waits for. */
static int prepare(struct record_loop *loop, struct ptvm_error *error)
{
	const struct record_options *options = loop->options;
	int r;

	r = loop->signals = record_loop_signals(error);
	if (r < 0)
		return r;
	loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake < 0)
		return ptvm_fail_errno(error, "eventfd");
	r = options->control ? control_fifo_open(options->control, &loop->control, error) : 0;
	if (!r && options->command)
		r = workload_prepare(&loop->workload, options->command, error);
	return r;
}

static void warn_of_emulators(const struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->targets.machines.count; i++)
		if (recorder->targets.machines.items[i].vcpus.is_emulated)
			(void)fprintf(stderr,
				      "ptvm record: '%s' is emulated (TCG): the trace will show "
				      "the emulator, not the guest\n",
				      recorder->targets.machines.items[i].name);
}

/* As they were when the user looked. */
static void warn_of_gone_threads(const struct recorder *recorder)
{
	const struct pid_list *tids = &recorder->options->tids;

	for (size_t i = 0; i < tids->count; i++)
		if (!kernel_file_is_readable("%s/%d", recorder->roots->proc, tids->items[i]))
			(void)fprintf(stderr, "ptvm record: there is no thread %d any more\n",
				      tids->items[i]);
}

/* What was recorded is kept, whatever happens meanwhile. */
static int run(struct record_loop *loop, struct ptvm_error *error)
{
	struct recorder *recorder = loop->recorder;
	struct trace_loss loss = { 0 };
	int r, finished;

	warn_of_emulators(recorder);
	warn_of_gone_threads(recorder);
	loop->pauses = pause_watch_start(&recorder->targets, loop->options->uri);
	r = record_loop_run(loop, error);
	finished = recorder_finish(recorder, &loss, r ? NULL : error);
	pause_watch_end(loop->pauses, LAST_LOOK_MS);
	if (recorder->is_written) {
		record_loop_release(loop);
		record_report_print(recorder, loop->pauses, &loss, finished == -PTVM_END, stderr);
	} else if (!r) {
		(void)fputs("ptvm record: nothing was recorded: it ended before the trace was "
			    "switched on\n",
			    stderr);
	}
	pause_watch_free(loop->pauses);
	trace_loss_free(&loss);
	if (!r && finished != -PTVM_END)
		r = finished;
	return r ? r : loop->exit_status;
}

int record(const struct roots *roots, const struct perf_kernel *kernel,
	   const struct record_options *options, int argc, char **argv, struct ptvm_error *error)
{
	struct recorder recorder = {
		.roots = roots, .kernel = kernel, .options = options, .argc = argc, .argv = argv
	};
	struct record_loop loop = { .recorder = &recorder,
				    .options = options,
				    .signals = -1,
				    .wake = -1,
				    .control = control_fifo_none() };
	int r;

	hold_snapshots();
	/* libvirtd may take its time: until there is something to lose, signals just end us. */
	r = record_targets_find(roots, options, &recorder.targets, error);
	if (!r)
		r = prepare(&loop, error);
	/* That nobody reads our messages is no reason to end a recording. */
	(void)signal(SIGPIPE, SIG_IGN);
	allow_many_files();
	recorder.wake_fd = loop.wake;
	if (!r)
		r = recorder_open(&recorder, error);
	if (!r)
		r = run(&loop, error);
	recorder_free(&recorder);
	record_loop_release(&loop);
	workload_end(&loop.workload);
	control_fifo_close(&loop.control);
	if (loop.signals >= 0)
		(void)close(loop.signals);
	if (loop.wake >= 0)
		(void)close(loop.wake);
	return r;
}
