#include "decode/code/kallsyms.h"

#include <limits.h>
#include <string.h>

#include "decode/base/text_file.h"

enum { LINE_BYTES = 32 }; /* fewer than the average */

/* The value plus one of a hexadecimal digit, 0 for other bytes: no branch to mispredict. */
static const uint8_t hex_values[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* The symbols of code and data; perf leaves out absolute and read-only ones. */
static bool is_kept(char type)
{
	switch (type | 0x20) {
	case 't':
	case 'w':
	case 'd':
	case 'b': return true;
	default: return false;
	}
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

/* Read one line; `end`, its newline, is overwritten. False when it is none of kallsyms'. */
static bool read_line(char *line, char *end, struct symbol *ret, char *ret_type)
{
	uint64_t address = 0;
	unsigned digit;
	char *p = line;

	for (; (digit = hex_values[(uint8_t)*p]); p++) /* ends at a newline, at the latest */
		address = address << 4 | (digit - 1);
	if (p == line || p - line > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ')
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
	symbols_reserve(ret, size / LINE_BYTES);
	r = kallsyms_parse(text, size, ret);
	if (r < 0 || symbols_finish(ret, true))
		return -PTVM_NO_MEMORY;
	if (!ret->count || !ret->items[ret->count - 1].start)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: no symbol with an address; copy it as root", path);
	return 0;
}
