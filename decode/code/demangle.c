#include "decode/code/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "decode/base/text.h"

/* A mangled name can refer to its own parts, so that a few bytes may stand for a text of any
 * length, which takes any time to write. When the text becomes too long the demangler is left by
 * longjmp(). That leaks the memory that it holds at that point, so after a few such names the rest
 * of a file is not demangled. */
enum {
	MOST_TEXT = 4096,
	MOST_FAILURES = 16,
	MOST_NAME = 64 << 10, /* each name is read to its end, and all may have the same end */
};

struct demangler {
	struct text text;
	jmp_buf too_long;
};

static void take(const char *piece, size_t size, void *context)
{
	struct demangler *demangler = context;

	if (demangler->text.size + size > MOST_TEXT)
		longjmp(demangler->too_long, 1);
	text_add(&demangler->text, piece, size);
}

/* The name in demangler->text: 1, 0 when there is none to be had, -1 when it becomes too long. */
static int demangle(struct demangler *demangler, const char *name)
{
	demangler->text.size = 0;
	if (setjmp(demangler->too_long))
		return -1;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, take, demangler))
		return demangler->text.size > 0;
	demangler->text.size = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, take, demangler) &&
	       demangler->text.size;
}

static size_t suffix_size(const char *name)
{
	static const char plt[] = "@plt";
	size_t length = strlen(name);

	return length >= sizeof(plt) && !strcmp(name + length - (sizeof(plt) - 1), plt)
		       ? sizeof(plt) - 1
		       : 0;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && strnlen(name, MOST_NAME) < MOST_NAME;
}

/* Returns false when the name becomes too long. */
static bool demangle_symbol(struct demangler *demangler, struct symbols *symbols,
			    struct symbol *symbol)
{
	size_t suffix = suffix_size(symbol->name), length = strlen(symbol->name) - suffix;
	char *name = suffix ? strndup(symbol->name, length) : NULL;
	int r = suffix && !name ? 0 : demangle(demangler, name ? name : symbol->name);
	const char *copy;

	free(name);
	if (r <= 0)
		return !r;
	text_add(&demangler->text, symbol->name + length, suffix);
	copy = demangler->text.failed
		       ? NULL
		       : arena_strndup(&symbols->names, demangler->text.data, demangler->text.size);
	if (copy)
		symbol->name = copy;
	return true;
}

void demangle_symbols(struct symbols *symbols)
{
	struct demangler demangler = { .text = { 0 } };
	unsigned failures = 0;

	for (size_t i = 0; i < symbols->count && failures < MOST_FAILURES; i++)
		if (is_mangled(symbols->items[i].name))
			failures += !demangle_symbol(&demangler, symbols, &symbols->items[i]);
	text_free(&demangler.text);
}
