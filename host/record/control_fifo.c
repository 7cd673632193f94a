#include "host/record/control_fifo.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"

static const char *const words[] = {
	[CONTROL_ENABLE] = "enable", [CONTROL_DISABLE] = "disable", [CONTROL_SNAPSHOT] = "snapshot",
	[CONTROL_PING] = "ping",     [CONTROL_STOP] = "stop",
};

/* For reading and writing, so that it neither waits for the other end nor ends with it. */
static int open_fifo(const char *path, size_t length, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;
	char name[PATH_MAX];
	struct stat about;

	if (!length || length >= sizeof(name))
		return ptvm_fail(error, PTVM_BAD_USAGE, "--control: not the name of a FIFO");
	memcpy(name, path, length);
	name[length] = '\0';
	fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return ptvm_fail(error, PTVM_SYSTEM, "%s: no such FIFO: mkfifo makes one", name);
	if (fd < 0 || fstat(fd, &about))
		return ptvm_fail_errno(error, "%s", name);
	if (!S_ISFIFO(about.st_mode))
		return ptvm_fail(error, PTVM_SYSTEM, "%s: not a FIFO, as mkfifo makes one", name);
	return take_fd(&fd);
}

static int take_over(const char *text, size_t length, struct ptvm_error *error)
{
	char *end;
	long number = strtol(text, &end, 10);
	int flags;

	if (!isdigit((unsigned char)*text) || end != text + length || number > INT_MAX)
		return ptvm_fail(error, PTVM_BAD_USAGE, "--control: not a file descriptor: '%s'",
				 text);
	flags = fcntl((int)number, F_GETFL);
	if (flags < 0 || fcntl((int)number, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl((int)number, F_SETFD, FD_CLOEXEC))
		return ptvm_fail_errno(error, "file descriptor %ld", number);
	return (int)number;
}

int control_fifo_open(const char *text, struct control_fifo *ret, struct ptvm_error *error)
{
	int (*const each)(const char *, size_t, struct ptvm_error *) =
		strncmp(text, "fd:", 3) ? open_fifo : take_over;
	const char *names = strchr(text, ':'), *comma;

	*ret = control_fifo_none();
	if (!names || (strncmp(text, "fifo:", 5) && each == open_fifo))
		return ptvm_fail(error, PTVM_BAD_USAGE,
				 "--control takes fifo:FILE[,FILE] or fd:N[,N], not '%s'", text);
	names++;
	comma = strchr(names, ',');
	ret->control = each(names, comma ? (size_t)(comma - names) : strlen(names), error);
	if (ret->control < 0)
		return ret->control;
	if (comma)
		ret->ack = each(comma + 1, strlen(comma + 1), error);
	return comma && ret->ack < 0 ? ret->ack : 0;
}

static enum control_command command_of(const char *line)
{
	for (size_t i = CONTROL_ENABLE; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], line))
			return (enum control_command)i;
	return CONTROL_UNKNOWN;
}

/* A byte at a time: what is behind the line stays in the FIFO. */
enum control_command control_fifo_next(struct control_fifo *fifo)
{
	enum control_command command;
	ssize_t n = -1;
	char byte;

	while (fifo->control >= 0 && (n = read(fifo->control, &byte, 1)) == 1) {
		if (byte != '\n') {
			fifo->is_long |= fifo->used == sizeof(fifo->line) - 1;
			if (!fifo->is_long)
				fifo->line[fifo->used++] = byte;
			continue;
		}
		fifo->line[fifo->used] = '\0';
		command = fifo->is_long ? CONTROL_UNKNOWN : command_of(fifo->line);
		fifo->used = 0;
		fifo->is_long = false;
		return command;
	}
	if (!n)
		control_fifo_close(fifo);
	return CONTROL_NONE;
}

void control_fifo_ack(const struct control_fifo *fifo)
{
	static const char answer[] = "ack\n";

	if (fifo->ack >= 0)
		(void)!write(fifo->ack, answer, sizeof(answer) - 1);
}

void control_fifo_close(struct control_fifo *fifo)
{
	if (fifo->control >= 0)
		(void)close(fifo->control);
	if (fifo->ack >= 0)
		(void)close(fifo->ack);
	*fifo = control_fifo_none();
}
