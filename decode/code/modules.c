#include "decode/code/modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/sort.h"
#include "decode/base/text_file.h"
#include "decode/base/vec.h"

/* The end of the word at `p`, after blanks. */
static const char *next_word(const char *p, const char *end, const char **ret_word)
{
	while (p < end && *p == ' ')
		p++;
	*ret_word = p;
	while (p < end && *p != ' ')
		p++;
	return p;
}

/* The number that the word [p, end) is; false for anything else. */
static bool read_number(const char *p, const char *end, int base, uint64_t *ret)
{
	char text[24], *stop;
	size_t size = end - p;

	if (!size || size >= sizeof(text) || !isxdigit((unsigned char)*p))
		return false;
	memcpy(text, p, size);
	text[size] = '\0';
	*ret = strtoull(text, &stop, base);
	return stop == text + size;
}

/* "[NAME]" in the arena. */
static const char *bracketed(struct arena *arena, const char *name, size_t size)
{
	char *text = arena_alloc(arena, size + 3);

	if (!text)
		return NULL;
	text[0] = '[';
	memcpy(text + 1, name, size);
	text[size + 1] = ']';
	return text;
}

static int read_line(const char *p, const char *end, struct modules *ret)
{
	const char *word[6], *word_end[6];
	uint64_t size, address;
	struct module module;

	for (unsigned i = 0; i < 6; i++)
		p = word_end[i] = next_word(p, end, &word[i]);
	if (word_end[0] == word[0] || !read_number(word[1], word_end[1], 10, &size) ||
	    !read_number(word[5], word_end[5], 16, &address) || !address || !size ||
	    size > UINT64_MAX - address)
		return 0;
	module = (struct module){ address, address + size,
				  bracketed(&ret->names, word[0], word_end[0] - word[0]) };
	return module.name && vec_push(ret, module) ? 0 : -PTVM_NO_MEMORY;
}

SORT_BY(compare, struct module, start)

int modules_parse(const char *text, size_t size, struct modules *ret)
{
	const char *end = text + size, *next;

	for (const char *line = text; line < end; line = next + 1) {
		next = memchr(line, '\n', end - line);
		if (!next)
			next = end;
		if (read_line(line, next, ret))
			return -PTVM_NO_MEMORY;
	}
	sort_vec(ret, compare);
	return 0;
}

int modules_load(const char *path, struct modules *ret, struct ptvm_error *error)
{
	struct arena arena = { 0 };
	char *text;
	size_t size;
	int r = text_file_read(path, &arena, &text, &size, error);

	if (!r && modules_parse(text, size, ret))
		r = -PTVM_NO_MEMORY;
	if (!r && size && !ret->count)
		r = ptvm_fail(error, PTVM_BAD_INPUT,
			      "%s: no module with an address; copy it as root", path);
	arena_free(&arena);
	return r;
}

void modules_free(struct modules *modules)
{
	vec_free(modules);
	arena_free(&modules->names);
}
