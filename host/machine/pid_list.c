#include "host/machine/pid_list.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/error.h"
#include "decode/base/numbered.h"
#include "decode/base/vec.h"
#include "host/machine/kernel_file.h"

enum { STATUS_SIZE = 512 }; /* the line is among the first */

bool pid_read(const char *text, const char **end, pid_t *ret)
{
	long number;

	if (!isdigit((unsigned char)*text))
		return false;
	number = strtol(text, (char **)(uintptr_t)end, 10);
	*ret = (pid_t)number;
	return number > 0 && number <= INT_MAX;
}

int pid_list_add(struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] == pid)
			return 0;
	return vec_push(list, pid) ? 0 : -PTVM_NO_MEMORY;
}

static int add_process_of(const struct roots *roots, pid_t tid, struct pid_list *list)
{
	char text[STATUS_SIZE];
	const char *line;
	int pid;

	if (kernel_file_read(text, sizeof(text), "%s/%d/status", roots->proc, tid) < 0)
		return 0;
	line = strstr(text, "\nTgid:");
	if (!line || sscanf(line, "\nTgid: %d", &pid) != 1)
		return 0;
	return pid_list_add(list, pid);
}

/* /proc has each once. */
static int add_all(const struct roots *roots, struct pid_list *list)
{
	_cleanup_numbered_ struct numbered_files processes = numbered_files_open(roots->proc, "");
	pid_t pid;

	while (numbered_files_next(&processes, &pid))
		if (!vec_push(list, pid))
			return -PTVM_NO_MEMORY;
	return 0;
}

int pid_list_processes(const struct roots *roots, const struct pid_list *tids, struct pid_list *ret)
{
	int r = 0;

	for (size_t i = 0; i < tids->count && !r; i++)
		r = tids->items[i] < 0 ? add_all(roots, ret)
				       : add_process_of(roots, tids->items[i], ret);
	return r;
}
