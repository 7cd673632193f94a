#include "host/recording_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUFFIX_BYTES = 8 };

/* What a recording consists of, ours or perf's; in directories too. */
static const char *const parts[] = { "data", "data.*", "kcore_dir", "kcore_dir__*" };
static const char *const copies[] = { "kcore", "kcore.*", "kallsyms", "modules", "guest.json" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_one_of(const char *name, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

static const char *join(const char *directory, const char *name, char path[PATH_MAX])
{
	const int length = snprintf(path, PATH_MAX, "%s/%s", directory, name);

	return length >= 0 && length < PATH_MAX ? path : "";
}

/* Files of these names; false where something else is in there. */
static bool remove_files(const char *path, const char *const *names, size_t count)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char file[PATH_MAX];

	if (!directory)
		return false;
	while ((entry = readdir(directory)))
		if (is_one_of(entry->d_name, names, count))
			(void)unlink(join(path, entry->d_name, file));
	(void)closedir(directory);
	return !rmdir(path);
}

static void remove_copies(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char copy[PATH_MAX];

	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (!strncmp(entry->d_name, "kcore_dir", 9))
			(void)remove_files(join(path, entry->d_name, copy), copies, COUNT(copies));
	(void)closedir(directory);
}

static int remove_recording(const char *path, struct ptvm_error *error)
{
	if (access(path, F_OK))
		return 0;
	remove_copies(path);
	if (!remove_files(path, parts, COUNT(parts)))
		return ptvm_fail_errno(error, "%s: cannot remove it", path);
	return 0;
}

/* A file or a directory, of any content, is only renamed. */
static int rename_to_old(const char *path, struct ptvm_error *error)
{
	char old[PATH_MAX + SUFFIX_BYTES];
	struct stat about;
	int r = 0;

	if (lstat(path, &about))
		return errno == ENOENT ? 0 : ptvm_fail_errno(error, "%s", path);
	(void)snprintf(old, sizeof(old), "%s.old", path);
	if (!lstat(old, &about))
		r = S_ISDIR(about.st_mode) ? remove_recording(old, error)
		    : unlink(old)          ? ptvm_fail_errno(error, "%s: cannot remove it", old)
					   : 0;
	if (!r && rename(path, old))
		r = ptvm_fail_errno(error, "%s: cannot rename it", path);
	return r;
}

int recording_directory_make(const char *path, struct recording_directory *ret,
			     struct ptvm_error *error)
{
	size_t length = strlen(path);
	int r;

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (!length || length + SUFFIX_BYTES >= sizeof(ret->path) || !strcmp(path, "/"))
		return ptvm_fail(error, PTVM_BAD_USAGE, "'%.100s' cannot be a directory to make",
				 path);
	memcpy(ret->path, path, length);
	ret->path[length] = '\0';
	r = rename_to_old(ret->path, error);
	if (!r && mkdir(ret->path, 0700))
		r = ptvm_fail_errno(error, "%s", ret->path);
	if (r)
		ret->path[0] = '\0';
	return r;
}

const char *recording_directory_file(const struct recording_directory *directory, const char *name,
				     char path[PATH_MAX])
{
	return join(directory->path, name, path);
}

void recording_directory_remove(struct recording_directory *directory)
{
	if (directory->path[0])
		(void)remove_recording(directory->path, NULL);
	directory->path[0] = '\0';
}
