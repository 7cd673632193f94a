#include "guest/channel.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/monotonic.h"

void channel_init(struct channel *channel, const struct channel_way *way)
{
	memset(channel, 0, sizeof(*channel));
	channel->way = way;
	channel->end_ms = monotonic_ms() + CHANNEL_SECONDS * MS_PER_S;
}

/* Is there no character that means something to a shell or in JSON? */
static bool is_plain(const char *path)
{
	if (path[0] != '/' || strstr(path, "/..") || strlen(path) >= CHANNEL_PATH_BYTES)
		return false;
	for (; *path; path++)
		if (!isalnum((unsigned char)*path) && !strchr("/_-.", *path))
			return false;
	return true;
}

int channel_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	int r;

	channel_close(channel);
	if (!is_plain(path))
		return ptvm_fail(error, PTVM_BAD_USAGE, "cannot ask a guest for '%s'", path);
	(void)strcpy(channel->path, path);
	r = channel->way->open(channel, path, error);
	if (r)
		channel->path[0] = '\0';
	return r;
}

int channel_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		 struct ptvm_error *error)
{
	size_t used = 0, part;
	int r;

	while (used < size) {
		part = size - used < CHANNEL_READ_BYTES ? size - used : CHANNEL_READ_BYTES;
		if (monotonic_ms() > channel->end_ms)
			return ptvm_fail(error, PTVM_SYSTEM, "%s: %s took more than %d seconds",
					 channel->path, channel->way->name, CHANNEL_SECONDS);
		r = channel->way->read(channel, offset + used, (char *)data + used, part, error);
		if (r < 0)
			return r;
		if (!r)
			break;
		used += (size_t)r;
		channel->bytes += (size_t)r;
	}
	return (int)used;
}

void channel_close(struct channel *channel)
{
	if (channel->path[0])
		channel->way->close(channel);
	channel->path[0] = '\0';
}

/* Read the beginning of what is open, and close it. */
static int take_text(struct channel *channel, char *text, size_t size, struct ptvm_error *error)
{
	int r = channel_read(channel, 0, text, size - 1, error);

	channel_close(channel);
	text[r > 0 ? r : 0] = '\0';
	return r;
}

int channel_read_text(struct channel *channel, const char *path, char *text, size_t size,
		      struct ptvm_error *error)
{
	int r;

	text[0] = '\0';
	r = channel_open(channel, path, error);
	return r ? r : take_text(channel, text, size, error);
}

int channel_list(struct channel *channel, const char *path, char *names, size_t size)
{
	if (!channel->way->list || !is_plain(path))
		return -PTVM_NOT_FOUND;
	return channel->way->list(channel, path, names, size);
}

int channel_run_text(struct channel *channel, const char *command, char *text, size_t size,
		     struct ptvm_error *error)
{
	int r;

	text[0] = '\0';
	channel_close(channel);
	if (!channel->way->run)
		return ptvm_fail(error, PTVM_NOT_FOUND, "%s runs no programs", channel->way->name);
	(void)strcpy(channel->path, "a command");
	r = channel->way->run(channel, command, error);
	if (!r)
		return take_text(channel, text, size, error);
	channel->path[0] = '\0';
	return r;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	channel_close(channel);
	channel->way->free(channel);
}
