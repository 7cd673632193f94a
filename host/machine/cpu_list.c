#include "host/machine/cpu_list.h"

#include <ctype.h>
#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/vec.h"
#include "host/machine/kernel_file.h"

enum { TEXT_SIZE = 4096 /* all that the kernel writes of one */, MOST = 1 << 16 };

/* One number; -1 where there is none. */
static long read_number(const char **text)
{
	char *end;
	long number;

	if (!isdigit((unsigned char)**text))
		return -1;
	number = strtol(*text, &end, 10);
	*text = end;
	return number < MOST ? number : -1;
}

/* A number or a range, and the comma behind it. */
static int read_range(const char **text, struct cpu_list *ret)
{
	long from = read_number(text), to = from;

	if (**text == '-') {
		++*text;
		to = read_number(text);
	}
	if (from < 0 || to < from || (**text && **text != ','))
		return -PTVM_NOT_FOUND;
	*text += **text == ',';
	for (; from <= to; from++)
		if (!vec_push(ret, (int)from))
			return -PTVM_NO_MEMORY;
	return 0;
}

int cpu_list_read(const struct roots *roots, const char *name, struct cpu_list *ret)
{
	char text[TEXT_SIZE];
	const char *rest = text;
	int r = kernel_file_read(text, sizeof(text), "%s/devices/system/cpu/%s", roots->sys, name);

	r = r < 0 || !*text ? -PTVM_NOT_FOUND : 0;
	while (!r && *rest)
		r = read_range(&rest, ret);
	if (r)
		vec_free(ret);
	return r;
}

size_t cpu_list_find(const struct cpu_list *list, int cpu)
{
	size_t i = 0;

	while (i < list->count && list->items[i] != cpu)
		i++;
	return i;
}
