#include "host/record/record_loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"
#include "decode/base/progress.h"
#include "host/machine/kernel_file.h"
#include "host/record/pause_watch.h"
#include "host/record/record_options.h"
#include "host/record/recorder.h"

enum {
	LOOK_MS = 250, /* between two looks for new vCPUs and changed clocks */
	PROGRESS_MS = 1000,
};

int record_loop_signals(struct ptvm_error *error)
{
	sigset_t set = interrupt_signals();
	int fd;

	(void)sigaddset(&set, SIGUSR2);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? ptvm_fail_errno(error, "signalfd") : fd;
}

void record_loop_release(const struct record_loop *loop)
{
	const sigset_t ending = interrupt_signals();
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info))
		;
	(void)sigprocmask(SIG_UNBLOCK, &ending, NULL);
}

static void say(const struct record_loop *loop, const char *what)
{
	progress_clear();
	(void)fprintf(stderr, "ptvm record: %s\n", what);
}

static int take_snapshot(struct record_loop *loop, struct ptvm_error *error)
{
	if (loop->options->is_snapshot)
		return recorder_snapshot(loop->recorder, error);
	say(loop, "a snapshot was asked for, but this recording has none (-S makes one of "
		  "snapshots)");
	return 0;
}

static int on_signal(struct record_loop *loop, struct ptvm_error *error)
{
	struct signalfd_siginfo info;
	int r = 0;

	while (!r && read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR2)
			r = take_snapshot(loop, error);
		else if (info.ssi_signo == SIGCHLD)
			loop->is_over |= workload_has_ended(&loop->workload, &loop->exit_status);
		else
			loop->is_over = true;
	}
	return r;
}

static int carry_out(struct record_loop *loop, enum control_command command,
		     struct ptvm_error *error)
{
	switch (command) {
	case CONTROL_ENABLE:
		loop->begun_ms = loop->begun_ms ? loop->begun_ms : monotonic_ms();
		return recorder_switch(loop->recorder, true, error);
	case CONTROL_DISABLE: return recorder_switch(loop->recorder, false, error);
	case CONTROL_SNAPSHOT: return take_snapshot(loop, error);
	case CONTROL_STOP: loop->is_over = true; return 0;
	default: return 0;
	}
}

static int on_control(struct record_loop *loop, struct ptvm_error *error)
{
	enum control_command command;
	char text[sizeof(loop->control.line) + 64];
	int r = 0;

	while (!r && (command = control_fifo_next(&loop->control)) != CONTROL_NONE) {
		if (command == CONTROL_UNKNOWN) {
			(void)snprintf(text, sizeof(text), "--control: no such command: '%s'",
				       loop->control.line);
			say(loop, text);
			continue;
		}
		r = carry_out(loop, command, error);
		if (!r)
			control_fifo_ack(&loop->control);
	}
	return r;
}

/* Is there anything left to trace? */
static bool have_all_ended(const struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->targets.tids.count; i++)
		if (recorder->targets.tids.items[i] < 0 ||
		    kernel_file_is_readable("%s/%d", recorder->roots->proc,
					    recorder->targets.tids.items[i]))
			return false;
	return true;
}

static void tell_of_gone_vcpus(const struct record_loop *loop)
{
	struct recorder *recorder = loop->recorder;
	struct record_vcpu gone;
	char text[sizeof(gone.machine->name) + 64];

	while (record_targets_gone(recorder->roots, &recorder->targets, &gone)) {
		(void)snprintf(text, sizeof(text), "vCPU %u of %s is gone; the others go on",
			       gone.vcpu.index, gone.machine->name);
		say(loop, text);
	}
}

static void say_of_cpu(const struct record_loop *loop, int cpu, const char *what)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "CPU %d %s", cpu, what);
	say(loop, text);
}

/* Its events would have to be opened like all others. The ring of a thread needs none. */
static void tell_of_cpus(const struct record_loop *loop)
{
	struct recorder *recorder = loop->recorder;
	const bool are_whole = recorder->targets.tids.items[0] < 0;
	int cpu;

	if (loop->options->is_per_thread)
		return;
	while ((cpu = record_targets_late_cpu(recorder->roots, loop->options,
					      &recorder->targets)) >= 0)
		say_of_cpu(loop, cpu, "came online, and what runs on it is not traced");
	while ((cpu = record_targets_back_cpu(recorder->roots, &recorder->targets)) >= 0)
		say_of_cpu(loop, cpu,
			   are_whole ? "was offline, and what runs on it is not traced any more"
				     : "was offline, and which thread runs on it is not recorded "
				       "any more");
}

static void tell_of_pauses(const struct record_loop *loop)
{
	struct pause pause;
	char text[sizeof(((struct trace_machine *)NULL)->name) + 128];

	while (pause_watch_next(loop->pauses, &pause)) {
		(void)snprintf(text, sizeof(text),
			       "domain '%s' was %s for %.1f s, and there is no trace of it then",
			       pause.name, pause.state, (double)pause.ms / MS_PER_S);
		say(loop, text);
	}
}

static int look(struct record_loop *loop, struct ptvm_error *error)
{
	int r = recorder_look(loop->recorder, error);

	loop->is_over |= loop->recorder->is_full;
	tell_of_pauses(loop);
	tell_of_cpus(loop);
	if (!have_all_ended(loop->recorder))
		tell_of_gone_vcpus(loop);
	if (!r && have_all_ended(loop->recorder)) {
		say(loop, "all traced threads have ended: the guest was shut down, or migrated");
		loop->is_over = true;
	}
	return r;
}

static void show_progress(const struct record_loop *loop, int64_t now)
{
	progress_show("recording: %.1f MB, %.0f s ",
		      (double)recording_out_size(&loop->recorder->out) / 1e6,
		      (double)(now - loop->begun_ms) / MS_PER_S);
}

/* What is due by the clock. */
static int on_time(struct record_loop *loop, int64_t start, struct ptvm_error *error)
{
	const struct record_options *options = loop->options;
	const int64_t now = monotonic_ms();
	int r = 0;

	if (!loop->begun_ms && options->delay_ms >= 0 && now - start >= options->delay_ms) {
		loop->begun_ms = now;
		r = recorder_switch(loop->recorder, true, error);
	}
	if (options->duration_ms && loop->begun_ms &&
	    now - loop->begun_ms >= (int64_t)options->duration_ms)
		loop->is_over = true;
	if (!r && now - loop->look_ms >= LOOK_MS) {
		loop->look_ms = now;
		r = look(loop, error);
	}
	if (loop->begun_ms && now - loop->progress_ms >= PROGRESS_MS) {
		loop->progress_ms = now;
		show_progress(loop, now);
	}
	return r;
}

/* How long to wait for the next of these. */
static int timeout_ms(const struct record_loop *loop, int64_t start)
{
	const struct record_options *options = loop->options;
	const int64_t now = monotonic_ms();
	int64_t left = LOOK_MS - (now - loop->look_ms), due = left;

	if (!loop->begun_ms && options->delay_ms >= 0)
		due = start + options->delay_ms - now;
	else if (loop->begun_ms && options->duration_ms)
		due = loop->begun_ms + (int64_t)options->duration_ms - now;
	left = due < left ? due : left;
	return left > 0 ? (int)left : 0;
}

/* Wait for something to happen, and do what it asks for. */
static int step(struct record_loop *loop, int64_t start, struct ptvm_error *error)
{
	struct pollfd fds[] = { { .fd = loop->signals, .events = POLLIN },
				{ .fd = loop->wake, .events = POLLIN },
				{ .fd = loop->control.control, .events = POLLIN } };
	int r;

	(void)poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms(loop, start));
	loop->is_over |= fds[1].revents != 0;
	r = on_signal(loop, error);
	if (!r)
		r = on_control(loop, error);
	/* Nobody is left to write to it. */
	if (fds[2].revents & (POLLHUP | POLLERR))
		control_fifo_close(&loop->control);
	return r || loop->is_over ? r : on_time(loop, start, error);
}

int record_loop_run(struct record_loop *loop, struct ptvm_error *error)
{
	const int64_t start = monotonic_ms();
	int r = on_time(loop, start, error);

	if (!r && loop->options->command) {
		r = workload_start(&loop->workload, loop->options->command[0], error);
		loop->recorder->is_written &= !r;
	}
	while (!r && !loop->is_over) {
		recorder_keep(loop->recorder);
		r = step(loop, start, error);
	}
	progress_clear();
	return r;
}
