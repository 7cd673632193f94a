#include "host/map_line.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
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
