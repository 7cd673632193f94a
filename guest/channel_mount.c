#include "guest/channel_mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "decode/base/cleanup.h"

/* Read at once of files that have no size, such as those of /proc: the kernel makes their text
 * while they are read, and gives a page of it at most. sshfs splits a larger read into several
 * requests, which it sends at once. For each the kernel makes the text from its beginning, and
 * sshfs drops most answers, since those before them were short. */
enum { TEXT_READ_BYTES = 16 << 10 };

struct channel_mount {
	struct channel channel;
	int root, file;
	size_t most; /* asked for at once of the file */
	char directory[];
};

static int fail(const char *directory, const char *path, struct ptvm_error *error)
{
	if (errno != ENOENT && errno != ENOTDIR)
		return ptvm_fail_errno(error, "%s%s", directory, path);
	return ptvm_fail(error, PTVM_NOT_FOUND, "%s%s: %s", directory, path, strerror(errno));
}

/* Open `name` below `at`, and close `at` unless it is the root. */
static int descend(int root, int at, const char *name, int flags)
{
	int fd = openat(at, name, flags | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int saved = errno;

	if (at != root)
		(void)close(at);
	errno = saved;
	return fd;
}

static int walk(int root, const char *path, int flags)
{
	char copy[CHANNEL_PATH_BYTES], *name = copy, *slash;
	int at = root;

	(void)strcpy(copy, path);
	while (*name == '/')
		name++;
	while ((slash = strchr(name, '/')) && at >= 0) {
		*slash = '\0';
		at = descend(root, at, name, O_DIRECTORY);
		name = slash + 1;
	}
	return at < 0 ? at : descend(root, at, name, flags);
}

static int mount_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	struct channel_mount *mount = (struct channel_mount *)channel;
	struct stat status;
	_cleanup_close_ int fd = walk(mount->root, path, O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &status))
		return fail(mount->directory, path, error);
	if (!S_ISREG(status.st_mode))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s%s: not a regular file",
				 mount->directory, path);
	mount->most = status.st_size ? CHANNEL_READ_BYTES : TEXT_READ_BYTES;
	mount->file = take_fd(&fd);
	return 0;
}

static int mount_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		      struct ptvm_error *error)
{
	const struct channel_mount *mount = (const struct channel_mount *)channel;
	ssize_t n;

	if (offset > INT64_MAX)
		return 0;
	size = size < mount->most ? size : mount->most;
	do {
		n = pread(mount->file, data, size, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? ptvm_fail_errno(error, "%s%s", mount->directory, channel->path) : (int)n;
}

static int mount_list(struct channel *channel, const char *path, char *names, size_t size)
{
	int fd = walk(((const struct channel_mount *)channel)->root, path, O_DIRECTORY);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t used = 0, length;

	while (directory && (entry = readdir(directory))) {
		length = strlen(entry->d_name) + 1;
		if (length > size - used)
			break;
		memcpy(names + used, entry->d_name, length);
		used += length;
	}
	if (directory)
		(void)closedir(directory);
	else if (fd >= 0)
		(void)close(fd);
	return directory ? (int)used : -PTVM_NOT_FOUND;
}

static void mount_close(struct channel *channel)
{
	struct channel_mount *mount = (struct channel_mount *)channel;

	(void)close(mount->file);
	mount->file = -1;
}

static void mount_free(struct channel *channel)
{
	(void)close(((struct channel_mount *)channel)->root);
	free(channel);
}

static const struct channel_way mount_way = {
	.name = "mount",
	.open = mount_open,
	.read = mount_read,
	.close = mount_close,
	.free = mount_free,
	.list = mount_list,
	.opens_fast = true,
};

int channel_mount_new(const char *directory, struct channel **ret, struct ptvm_error *error)
{
	size_t length = strlen(directory);
	struct channel_mount *mount;
	int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return fail(directory, "", error);
	while (length && directory[length - 1] == '/')
		length--; /* paths begin with one */
	mount = malloc(sizeof(*mount) + length + 1);
	if (!mount) {
		(void)close(root);
		return -PTVM_NO_MEMORY;
	}
	channel_init(&mount->channel, &mount_way);
	mount->root = root;
	mount->file = -1;
	memcpy(mount->directory, directory, length);
	mount->directory[length] = '\0';
	*ret = &mount->channel;
	return 0;
}
