#include "guest/channel_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "decode/base/cleanup.h"

enum {
	BLOCK = 4096,
	HOST_BYTES = 512,
	COMMAND_BYTES = 400,
	SILENCE_MS = 60 * 1000,
	PATIENCE_MS = 2000, /* for ssh to end */
	NAP_MS = 5,
};

struct channel_ssh {
	struct channel channel;
	const char *host;
	pid_t pid; /* of ssh; 0: none runs */
	int from;  /* what it prints */
	uint64_t offset;
};

/* Wait for ssh to end by itself, for a while; false where it does not. */
static bool has_ended(const struct channel_ssh *ssh, int *ret_status)
{
	for (int waited = 0; waited < PATIENCE_MS; waited += NAP_MS) {
		if (waitpid(ssh->pid, ret_status, WNOHANG))
			return true;
		(void)poll(NULL, 0, NAP_MS);
	}
	return false;
}

/* Let ssh end. Returns its wait status. */
static int stop(struct channel_ssh *ssh)
{
	int status = 0;

	(void)close(ssh->from);
	if (!has_ended(ssh, &status)) {
		(void)kill(ssh->pid, SIGKILL);
		while (waitpid(ssh->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	ssh->pid = 0;
	return status;
}

static void cut_off(struct channel_ssh *ssh)
{
	if (!ssh->pid)
		return;
	(void)kill(ssh->pid, SIGTERM);
	(void)stop(ssh);
}

/* No input, output into `to`, and no signal blocked. Returns 0 or an errno. */
static int spawn(char *const *words, int to, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawnp(ret, words[0], &actions, &attributes, words, environ);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* What the command prints begins at `offset`. */
static int start(struct channel_ssh *ssh, char command[COMMAND_BYTES], uint64_t offset,
		 struct ptvm_error *error)
{
	char program[] = "ssh", quiet[] = "-T", end[] = "--", host[HOST_BYTES];
	char *words[] = { program, quiet, end, host, command, NULL };
	int ends[2];

	(void)snprintf(host, sizeof(host), "%s", ssh->host);
	if (pipe2(ends, O_CLOEXEC))
		return ptvm_fail_errno(error, "ssh");
	errno = spawn(words, ends[1], &ssh->pid);
	(void)close(ends[1]);
	if (!errno) {
		ssh->from = ends[0];
		ssh->offset = offset;
		return 0;
	}
	ssh->pid = 0;
	(void)ptvm_fail_errno(error, "ssh");
	(void)close(ends[0]);
	return -PTVM_SYSTEM;
}

/* ssh and dd tell by their status whether the end of their output is that of the file. */
static int at_end(struct channel_ssh *ssh, struct ptvm_error *error)
{
	int status = stop(ssh);

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return ptvm_fail(error, PTVM_SYSTEM, "%s: ssh %s failed (status %d)", ssh->channel.path,
			 ssh->host, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static int read_some(struct channel_ssh *ssh, void *data, size_t size, struct ptvm_error *error)
{
	struct pollfd ready = { .fd = ssh->from, .events = POLLIN };
	ssize_t n;
	int r;

	/* Interrupted where we were stopped and go on. */
	do {
		r = poll(&ready, 1, SILENCE_MS);
	} while (r < 0 && errno == EINTR);
	if (!r)
		return ptvm_fail(error, PTVM_SYSTEM, "%s: ssh %s is silent for %d seconds",
				 ssh->channel.path, ssh->host, SILENCE_MS / 1000);
	do {
		n = read(ssh->from, data, size);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return ptvm_fail_errno(error, "ssh");
	ssh->offset += (size_t)n;
	return n ? (int)n : at_end(ssh, error);
}

/* Let ssh print from the block of `offset`, and drop what is before it. A caller that wants no
 * error only tries whether there is such a file, and does not want the messages of dd either. */
static int seek(struct channel_ssh *ssh, uint64_t offset, struct ptvm_error *error)
{
	char rest[BLOCK], command[COMMAND_BYTES];
	const uint64_t block = offset / BLOCK;
	int r;

	cut_off(ssh);
	(void)snprintf(command, sizeof(command), "%sdd if=%s bs=%d skip=%" PRIu64 " status=none%s",
		       error ? "" : "sh -c '", ssh->channel.path, BLOCK, block,
		       error ? "" : " 2>/dev/null'");
	r = start(ssh, command, block * BLOCK, error);
	while (!r && ssh->offset < offset) {
		r = read_some(ssh, rest, offset - ssh->offset, error);
		if (!r)
			return -PTVM_END;
		r = r < 0 ? r : 0;
	}
	return r;
}

static int ssh_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	return 0;
}

/* Run by sh, since the user's own shell may be any. */
static int ssh_run(struct channel *channel, const char *command, struct ptvm_error *error)
{
	char whole[COMMAND_BYTES];

	(void)snprintf(whole, sizeof(whole), "sh -c '%s'", command);
	return start((struct channel_ssh *)channel, whole, 0, error);
}

static int ssh_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		    struct ptvm_error *error)
{
	struct channel_ssh *ssh = (struct channel_ssh *)channel;
	int r = 0;

	if (!ssh->pid || ssh->offset != offset)
		r = seek(ssh, offset, error);
	if (r)
		return r == -PTVM_END ? 0 : r;
	return read_some(ssh, data, size, error);
}

static void ssh_close(struct channel *channel)
{
	cut_off((struct channel_ssh *)channel);
}

static void ssh_free(struct channel *channel)
{
	free(channel);
}

static const struct channel_way ssh_way = {
	.name = "ssh",
	.open = ssh_open,
	.read = ssh_read,
	.close = ssh_close,
	.free = ssh_free,
	.run = ssh_run,
};

int channel_ssh_new(const char *host, struct channel **ret, struct ptvm_error *error)
{
	struct channel_ssh *ssh;

	if (!host[0] || strlen(host) >= HOST_BYTES)
		return ptvm_fail(error, PTVM_BAD_USAGE, "ssh: %s",
				 host[0] ? "the name of the host is too long" : "no host is named");
	ssh = calloc(1, sizeof(*ssh));
	if (!ssh)
		return -PTVM_NO_MEMORY;
	channel_init(&ssh->channel, &ssh_way);
	ssh->host = host;
	*ret = &ssh->channel;
	return 0;
}
