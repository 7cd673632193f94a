#include "guest/output_owner.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"

enum { DEPTH = 2 }; /* a recording, and kcore_dir in it */

struct owner {
	uid_t user;
	gid_t group;
};

/* A user or group number; those with all bits set mean "as it is" to chown. */
static bool read_number(const char *variable, uint32_t *ret)
{
	const char *text = getenv(variable);
	unsigned long number;
	char *end;

	if (!text || !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	number = strtoul(text, &end, 10);
	*ret = (uint32_t)number;
	return !errno && !*end && number < UINT32_MAX;
}

static bool find_owner(struct owner *ret)
{
	return !geteuid() && read_number("SUDO_UID", &ret->user) &&
	       read_number("SUDO_GID", &ret->group) && ret->user;
}

static int give(int fd, const struct owner *owner, int depth);

/* What is no file or directory of ours is passed over, and so is what has just gone. */
static int give_entry(int directory, const char *name, const struct owner *owner, int depth)
{
	_cleanup_close_ int fd =
		openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || status.st_uid != geteuid())
		return 0;
	if (S_ISDIR(status.st_mode))
		return depth ? give(fd, owner, depth) : 0;
	if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
		return 0;
	return fchown(fd, owner->user, owner->group);
}

/* The directory comes last: what is in it cannot be exchanged before. Returns 0, or -1 with errno.
 */
static int give(int fd, const struct owner *owner, int depth)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int r = 0;

	if (!directory)
		return -1;
	while (!r && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = give_entry(fd, entry->d_name, owner, depth - 1);
	(void)closedir(directory);
	return r ? r : fchown(fd, owner->user, owner->group);
}

int output_owner_give(const char *directory, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;
	struct owner owner;

	if (!find_owner(&owner))
		return 0;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || give(fd, &owner, DEPTH))
		return ptvm_fail_errno(error, "%s: cannot give it to user %u", directory,
				       owner.user);
	return 0;
}
