#include "decode/base/directory.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

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
