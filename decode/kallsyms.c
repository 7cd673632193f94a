#include "decode/kallsyms.h"

#include <limits.h>
#include <string.h>

#include "decode/text_file.h"

/* A byte's value as a hexadecimal digit, 0xff for none. */
static unsigned hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0xff;
}

/* The symbols of code and data; perf leaves out absolute and read-only ones. */
static bool is_kept(char type)
{
	return strchr("twdb", type | 0x20);
}

/* What follows the name: "\t[kvm]". Cut the name there. */
static const char *cut_module(char *name, char *end)
{
	char *tab = memchr(name, '\t', end - name);

	if (!tab)
		return NULL;
	*tab = '\0';
	return tab + 1 < end && tab[1] == '[' ? tab + 1 : NULL;
}

/* Read one line, [p, end); `end` is overwritten. False when it is none of kallsyms'. */
static bool read_line(char *p, char *end, struct symbol *ret, char *ret_type)
{
	uint64_t address = 0;
	unsigned digits = 0, digit;

	for (; p < end && (digit = hex_digit(*p)) < 16; p++, digits++)
		address = address << 4 | digit;
	if (!digits || digits > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	*ret_type = p[1];
	*end = '\0';
	*ret = (struct symbol){
		.start = address,
		.name = p + 3,
		.is_weak = p[1] == 'W',
		.is_global = p[1] >= 'A' && p[1] <= 'Z' && p[1] != 'W',
	};
	if (is_kept(p[1]))
		ret->module = cut_module(p + 3, end);
	return true;
}

int kallsyms_parse(char *text, size_t size, struct symbols *ret)
{
	char *end = text + size;
	int bad = 0;

	for (char *line = text, *next; line < end; line = next + 1) {
		struct symbol symbol;
		char type;

		next = memchr(line, '\n', end - line);
		/* The last line has no room for a NUL: it is cut short, or nothing is left of it.
		 */
		if (!next || !read_line(line, next, &symbol, &type))
			bad += bad < INT_MAX;
		else if (is_kept(type) && symbols_add(ret, &symbol))
			return -PTVM_NO_MEMORY;
		if (!next)
			break;
	}
	return bad;
}

int kallsyms_load(const char *path, struct symbols *ret, struct ptvm_error *error)
{
	char *text;
	size_t size;
	int r = text_file_read(path, &ret->names, &text, &size, error);

	if (r)
		return r;
	r = kallsyms_parse(text, size, ret);
	if (r < 0 || symbols_finish(ret, true))
		return ptvm_fail(error, PTVM_NO_MEMORY, "%s: no memory for symbols", path);
	if (!ret->count || !ret->items[ret->count - 1].start)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: no symbol with an address", path);
	return 0;
}
