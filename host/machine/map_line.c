#include "host/machine/map_line.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool map_line_read(char *line, struct map_line *ret)
{
	char rights[5];
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &ret->from,
		   &ret->to, rights, &ret->offset, &ret->major, &ret->minor, &ret->inode,
		   &at) != 7 ||
	    ret->to < ret->from)
		return false;
	ret->protection = (rights[0] == 'r') | (rights[1] == 'w') << 1 | (rights[2] == 'x') << 2;
	ret->flags = rights[3] == 's' ? 1 : 2;
	ret->name = at && line[at] ? line + at : "//anon";
	/* No file can be opened by a longer name. */
	return strlen(ret->name) < PATH_MAX;
}

int map_lines_open(const struct roots *roots, pid_t pid, struct map_lines *ret,
		   struct ptvm_error *error)
{
	char path[PATH_MAX];

	*ret = (struct map_lines){ 0 };
	(void)snprintf(path, sizeof(path), "%s/%d/maps", roots->proc, pid);
	ret->file = fopen(path, "re");
	return ret->file ? 0 : ptvm_fail_errno(error, "cannot read %s", path);
}

bool map_lines_next(struct map_lines *lines, struct map_line *ret)
{
	while (lines->file && getline(&lines->line, &lines->room, lines->file) > 0)
		if (map_line_read(lines->line, ret))
			return true;
	return false;
}

void map_lines_close(struct map_lines *lines)
{
	if (lines->file)
		(void)fclose(lines->file);
	free(lines->line);
}
