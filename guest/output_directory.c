#include "guest/output_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/directory.h"

static const char *const files[] = { "kcore", "kallsyms", "modules", "guest.json" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int output_directory_make(const char *path, struct output_directory *ret, struct ptvm_error *error)
{
	int length;

	memset(ret, 0, sizeof(*ret));
	length = directory_path(path, ret->path, error);
	if (length < 0)
		return length;
	memcpy(ret->work, ret->path, (size_t)length);
	(void)strcpy(ret->work + length, ".XXXXXX");
	if (mkdtemp(ret->work))
		return 0;
	ret->work[0] = '\0';
	return ptvm_fail_errno(error, "%s", ret->path);
}

static const char *join(const char *directory, const char *name, char path[PATH_MAX])
{
	int length = snprintf(path, PATH_MAX, "%s/%s", directory, name);

	return length >= 0 && length < PATH_MAX ? path : "";
}

const char *output_directory_file(const struct output_directory *directory, const char *name,
				  char path[PATH_MAX])
{
	return join(directory->work, name, path);
}

/* What a link leads to is not ours. */
static void remove_files(const char *directory)
{
	_cleanup_close_ int fd = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < COUNT(files); i++)
		(void)unlinkat(fd, files[i], 0);
}

void output_directory_clear(const struct output_directory *directory)
{
	remove_files(directory->work);
}

/* Only a copy of ours: a directory that holds anything else stays as it is, and is in the way. */
static int remove_copy(const char *path, struct ptvm_error *error)
{
	if (directory_holds_only(AT_FDCWD, path, files, COUNT(files)))
		remove_files(path);
	if (rmdir(path) && errno != ENOENT)
		return ptvm_fail_errno(error, "%s: cannot remove it", path);
	return 0;
}

int output_directory_keep(struct output_directory *directory, struct ptvm_error *error)
{
	char old[sizeof(directory->path) + DIRECTORY_SUFFIX_BYTES];
	int r = 0;

	(void)snprintf(old, sizeof(old), "%s.old", directory->path);
	if (!access(directory->path, F_OK)) {
		r = remove_copy(old, error);
		if (!r && rename(directory->path, old))
			r = ptvm_fail_errno(error, "%s: cannot rename it", directory->path);
	}
	if (!r && rename(directory->work, directory->path))
		r = ptvm_fail_errno(error, "%s", directory->path);
	if (!r)
		directory->work[0] = '\0';
	return r;
}

void output_directory_drop(struct output_directory *directory)
{
	if (!directory->work[0])
		return;
	output_directory_clear(directory);
	(void)rmdir(directory->work);
	directory->work[0] = '\0';
}
