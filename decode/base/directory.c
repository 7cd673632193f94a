#include "decode/base/directory.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

int directory_path(const char *path, char ret[PATH_MAX], struct ptvm_error *error)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (!length || length + DIRECTORY_SUFFIX_BYTES >= PATH_MAX ||
	    (length == 1 && path[0] == '/'))
		return ptvm_fail(error, PTVM_BAD_USAGE, "'%.100s' cannot be a directory to make",
				 path);
	memcpy(ret, path, length);
	ret[length] = '\0';
	return (int)length;
}

DIR *directory_open(int at, const char *name)
{
	const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !directory)
		(void)close(fd);
	return directory;
}

bool directory_is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

bool directory_matches(const char *name, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

bool directory_holds_only(int at, const char *name, const char *const *patterns, size_t count)
{
	DIR *directory = directory_open(at, name);
	const struct dirent *entry;
	bool r = true;

	while (directory && r && (entry = readdir(directory)))
		r = directory_is_dots(entry->d_name) ||
		    directory_matches(entry->d_name, patterns, count);
	if (directory)
		(void)closedir(directory);
	return r;
}
