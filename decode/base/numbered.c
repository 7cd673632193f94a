#include "decode/base/numbered.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool numbered_read(const char *name, const char *prefix, int *ret)
{
	const size_t length = strlen(prefix);
	const char *digits = name + length;
	long number;
	char *end;

	if (strncmp(name, prefix, length) || !isdigit((unsigned char)*digits))
		return false;
	number = strtol(digits, &end, 10);
	if (*end || number > INT_MAX)
		return false;
	*ret = (int)number;
	return true;
}

struct numbered_files numbered_files_open(const char *path, const char *prefix)
{
	return (struct numbered_files){ opendir(path), prefix };
}

bool numbered_files_next(const struct numbered_files *files, int *ret)
{
	const struct dirent *entry;

	while (files->directory && (entry = readdir(files->directory)))
		if (numbered_read(entry->d_name, files->prefix, ret))
			return true;
	return false;
}

void numbered_files_close(const struct numbered_files *files)
{
	if (files->directory)
		(void)closedir(files->directory);
}
