#include "decode/base/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *pager_command(void)
{
	const char *command = getenv("PTVM_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	return strcmp(command, "cat") ? command : "";
}

/* In the child: become the pager. A command that the shell cannot find becomes `cat`. */
static void run_pager(const char *command, int input)
{
	(void)dup2(input, STDIN_FILENO);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setenv("LESS", "FRX", 0);
	(void)execl("/bin/sh", "sh", "-c", "eval \"$1\"; [ $? -ne 127 ] || exec cat", "sh", command,
		    (char *)NULL);
	_exit(127);
}

static volatile pid_t waited_for; /* the pager, for a handler of signals */

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Interrupted: the pager still has the terminal, so this program must not end before it. Other
 * children are not waited for, as they may wait for us. Meanwhile other threads go on printing:
 * they are given a pipe that nobody reads, rather than a closed descriptor, whose number could
 * become that of some other file. */
static void on_interrupt(int signal_number)
{
	int ends[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (!pipe2(ends, O_CLOEXEC)) {
		(void)close(ends[0]);
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)close(ends[1]);
	}
	wait_for(waited_for);
	(void)signal(signal_number, SIG_DFL);
	(void)raise(signal_number);
}

int pager_start(struct pager *pager, struct ptvm_error *error)
{
	const char *command = pager_command();
	int ends[2];

	if (!*command || !isatty(STDOUT_FILENO))
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ptvm_fail_errno(error, "pipe to the pager");
	pager->pid = fork();
	if (!pager->pid)
		run_pager(command, ends[0]);
	if (pager->pid > 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		waited_for = pager->pid;
		(void)signal(SIGINT, on_interrupt);
	} else {
		(void)ptvm_fail_errno(error, "starting the pager");
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	return pager->pid > 0 ? 0 : -PTVM_SYSTEM;
}

void pager_wait(struct pager *pager)
{
	if (pager->pid <= 0)
		return;
	(void)fflush(stdout);
	(void)close(STDOUT_FILENO);
	wait_for(pager->pid);
	pager->pid = 0;
}
