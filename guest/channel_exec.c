#include "guest/channel_exec.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/base/cleanup.h"
#include "decode/base/monotonic.h"
#include "guest/agent_reply.h"
#include "guest/channel_agent.h"

struct channel_exec {
	struct channel channel;
	struct agent_line line;
	bool is_command; /* it is not a file that is open, but what a command printed */
	size_t size;     /* of that */
	uint8_t output[];
};

enum {
	BLOCK = 4096,
	/* The block where a read begins, and the one where it ends. */
	OUTPUT_BYTES = CHANNEL_READ_BYTES + 2 * BLOCK,
	PAUSE_NS = 5000000,
	WORDS_BYTES = 400,
};

static int ask(const struct channel_exec *exec, const char *command, char **ret,
	       struct ptvm_error *error)
{
	return exec->line.ask(exec->line.context, command, ret, error);
}

/* `words`: the arguments, as strings of JSON with commas between them. */
static int start(const struct channel_exec *exec, const char *program, const char *words,
		 int64_t *ret, struct ptvm_error *error)
{
	_cleanup_free_ char *reply = NULL;
	char command[WORDS_BYTES + 100];
	int r;

	(void)snprintf(command, sizeof(command),
		       "{\"execute\":\"guest-exec\",\"arguments\":{\"path\":\"%s\",\"arg\":[%s],"
		       "\"capture-output\":true}}",
		       program, words);
	r = ask(exec, command, &reply, error);
	return r ? r : agent_process_read(reply, ret, error);
}

static int wait_for(struct channel_exec *exec, int64_t process, struct agent_output *ret,
		    struct ptvm_error *error)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t end_ms = monotonic_ms() + CHANNEL_EXEC_SECONDS * MS_PER_S;
	char command[100];
	int r;

	(void)snprintf(command, sizeof(command),
		       "{\"execute\":\"guest-exec-status\",\"arguments\":{\"pid\":%" PRId64 "}}",
		       process);
	for (;;) {
		_cleanup_free_ char *reply = NULL;

		r = ask(exec, command, &reply, error);
		if (!r)
			r = agent_output_read(reply, exec->output, OUTPUT_BYTES, ret, error);
		if (r || ret->has_ended)
			return r;
		if (monotonic_ms() > end_ms)
			return ptvm_fail(error, PTVM_SYSTEM,
					 "%s: a program in the guest took more than %d seconds",
					 exec->channel.path, CHANNEL_EXEC_SECONDS);
		(void)nanosleep(&pause, NULL);
	}
}

/* Run it, and keep what it prints. */
static int run(struct channel_exec *exec, const char *program, const char *words, size_t *ret_size,
	       struct ptvm_error *error)
{
	struct agent_output output;
	int64_t process = 0;
	int r = start(exec, program, words, &process, error);

	if (!r)
		r = wait_for(exec, process, &output, error);
	if (r)
		return r;
	if (output.status)
		return ptvm_fail(error, PTVM_SYSTEM,
				 "%s: %s in the guest failed (status %" PRId64 ")",
				 exec->channel.path, program, output.status);
	*ret_size = output.size;
	return 0;
}

static int exec_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	((struct channel_exec *)channel)->is_command = false;
	return 0;
}

static int exec_run(struct channel *channel, const char *command, struct ptvm_error *error)
{
	struct channel_exec *exec = (struct channel_exec *)channel;
	char words[WORDS_BYTES];

	exec->is_command = true;
	(void)snprintf(words, sizeof(words), "\"-c\",\"%s\"", command);
	return run(exec, "sh", words, &exec->size, error);
}

/* Let dd print blocks from that of `offset` on. */
static int run_dd(struct channel_exec *exec, uint64_t offset, size_t size, size_t *ret_size,
		  struct ptvm_error *error)
{
	char words[WORDS_BYTES];

	(void)snprintf(words, sizeof(words),
		       "\"if=%s\",\"bs=%d\",\"skip=%" PRIu64 "\",\"count=%zu\"", exec->channel.path,
		       BLOCK, offset / BLOCK, size / BLOCK + 2);
	return run(exec, "dd", words, ret_size, error);
}

/* A read of a file in /proc may give less than a block, so that there may be less than was asked
 * for, but nothing is missing between. */
static int exec_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		     struct ptvm_error *error)
{
	struct channel_exec *exec = (struct channel_exec *)channel;
	const bool is_file = !exec->is_command;
	const uint64_t before = is_file ? offset % BLOCK : offset;
	size_t have = exec->size;
	int r = is_file ? run_dd(exec, offset, size, &have, error) : 0;

	if (r)
		return r;
	if (have <= before)
		return 0;
	if (size > have - before)
		size = have - before;
	memcpy(data, exec->output + before, size);
	return (int)size;
}

static void exec_close(struct channel *channel)
{
}

static void exec_free(struct channel *channel)
{
	free(channel);
}

static const struct channel_way exec_way = {
	.name = "agent",
	.open = exec_open,
	.read = exec_read,
	.close = exec_close,
	.free = exec_free,
	.run = exec_run,
};

int channel_exec_new(const struct agent_line *line, struct channel **ret)
{
	struct channel_exec *exec = calloc(1, sizeof(*exec) + OUTPUT_BYTES);

	if (!exec)
		return -PTVM_NO_MEMORY;
	channel_init(&exec->channel, &exec_way);
	exec->line = *line;
	*ret = &exec->channel;
	return 0;
}
