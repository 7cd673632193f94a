#include "host/record/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_FOUND_STATUS = 127, SIGNAL_STATUS = 128 };

/* In the child: signals are as they were for us. */
static _Noreturn void run(int start, int failed, char *const *argv)
{
	sigset_t none;
	char byte;
	int why;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	/* The end of the pipe without a byte: the recorder gave up. */
	if (read(start, &byte, 1) != 1)
		_exit(0);
	(void)execvp(argv[0], argv);
	why = errno;
	(void)!write(failed, &why, sizeof(why));
	_exit(NOT_FOUND_STATUS);
}

static void close_both(const int fds[2])
{
	(void)close(fds[0]);
	(void)close(fds[1]);
}

int workload_prepare(struct workload *workload, char *const *argv, struct ptvm_error *error)
{
	int start[2], failed[2];

	if (pipe2(start, O_CLOEXEC))
		return ptvm_fail_errno(error, "a pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		close_both(start);
		return ptvm_fail_errno(error, "a pipe");
	}
	workload->pid = fork();
	if (workload->pid < 0) {
		workload->pid = 0;
		close_both(start);
		close_both(failed);
		return ptvm_fail_errno(error, "cannot make a process");
	}
	if (!workload->pid) {
		(void)close(start[1]);
		run(start[0], failed[1], argv);
	}
	(void)close(start[0]);
	(void)close(failed[1]);
	workload->start = start[1];
	workload->exec_failed = failed[0];
	return 0;
}

int workload_start(struct workload *workload, const char *name, struct ptvm_error *error)
{
	int why = 0;
	ssize_t n;

	n = write(workload->start, "", 1);
	/* The pipe ends when the command begins. */
	while (n == 1 && read(workload->exec_failed, &why, sizeof(why)) < 0 && errno == EINTR)
		;
	if (!why)
		return 0;
	return ptvm_fail(error, PTVM_NOT_FOUND, "%s: %s", name, strerror(why));
}

bool workload_has_ended(struct workload *workload, int *ret)
{
	int status;

	if (!workload->pid || waitpid(workload->pid, &status, WNOHANG) != workload->pid)
		return false;
	workload->pid = 0;
	*ret = WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}

void workload_end(struct workload *workload)
{
	if (workload->start)
		(void)close(workload->start);
	if (workload->exec_failed)
		(void)close(workload->exec_failed);
	if (workload->pid) {
		(void)kill(workload->pid, SIGTERM);
		while (waitpid(workload->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*workload = (struct workload){ 0 };
}
