#include "host/machine/address_filter.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/code/kallsyms.h"

/* What is left to translate, and the symbols once they are needed. */
struct translation {
	const char *rest, *kallsyms;
	struct symbols symbols;
	bool has_symbols;
	struct ptvm_error *error;
};

/* A place in the code: where a symbol begins and ends, or a number, as both. */
struct place {
	uint64_t start, end;
	bool is_symbol;
};

static int fail(const struct translation *t)
{
	return ptvm_fail(t->error, PTVM_BAD_USAGE,
			 "--filter takes 'filter START[/SIZE|/END]' or 'tracestop …', "
			 "not '%.80s'",
			 t->rest);
}

static void skip_space(struct translation *t)
{
	t->rest += strspn(t->rest, " \t");
}

static bool take(struct translation *t, const char *word)
{
	const size_t length = strlen(word);

	skip_space(t);
	if (strncmp(t->rest, word, length))
		return false;
	t->rest += length;
	return true;
}

static int find_symbol(struct translation *t, const char *name, size_t length, struct place *ret)
{
	const struct symbol *symbol;
	int r = t->has_symbols ? 0 : kallsyms_load(t->kallsyms, &t->symbols, t->error);

	if (r)
		return r;
	t->has_symbols = true;
	for (size_t i = 0; i < t->symbols.count; i++) {
		symbol = &t->symbols.items[i];
		if (strncmp(symbol->name, name, length) || symbol->name[length])
			continue;
		if (ret->is_symbol)
			return ptvm_fail(
				t->error, PTVM_BAD_USAGE,
				"--filter: several symbols are called '%s': give an address",
				symbol->name);
		*ret = (struct place){ symbol->start, symbol->end, true };
	}
	if (!ret->is_symbol || !ret->start)
		return ptvm_fail(t->error, PTVM_NOT_FOUND,
				 "--filter: the kernel shows no symbol '%.*s'", (int)length, name);
	return 0;
}

static int read_place(struct translation *t, struct place *ret)
{
	const char *text;
	size_t length;
	char *end;

	memset(ret, 0, sizeof(*ret));
	skip_space(t);
	text = t->rest;
	length = strcspn(text, " \t,/");
	if (!length)
		return fail(t);
	t->rest += length;
	if (!isdigit((unsigned char)*text))
		return find_symbol(t, text, length, ret);
	errno = 0;
	ret->start = ret->end = strtoull(text, &end, 0);
	t->rest = end == text + length && !errno ? t->rest : text;
	return t->rest == text ? fail(t) : 0;
}

/* The size in bytes. */
static int read_size(struct translation *t, const struct place *start, uint64_t *ret)
{
	struct place end = *start;
	int r = 0;

	if (take(t, "/"))
		r = read_place(t, &end);
	else if (!start->is_symbol)
		return fail(t);
	if (r)
		return r;
	*ret = end.is_symbol ? end.end - start->start : end.end;
	if (!*ret || (end.is_symbol && end.end <= start->start) || *ret > UINT64_MAX - start->start)
		return ptvm_fail(t->error, PTVM_BAD_USAGE,
				 "--filter: a range ends before it begins");
	return 0;
}

static int translate_one(struct translation *t, FILE *out)
{
	const char *action = take(t, "filter")      ? "filter"
			     : take(t, "tracestop") ? "tracestop"
						    : NULL;
	struct place start;
	uint64_t size = 0;
	int r;

	if (!action || !isspace((unsigned char)*t->rest))
		return fail(t);
	r = read_place(t, &start);
	if (!r)
		r = read_size(t, &start, &size);
	if (!r)
		(void)fprintf(out, "%s 0x%" PRIx64 "/0x%" PRIx64, action, start.start, size);
	return r;
}

static int translate(struct translation *t, FILE *out)
{
	int r = translate_one(t, out);

	while (!r && take(t, ",")) {
		(void)fputc(',', out);
		r = translate_one(t, out);
	}
	skip_space(t);
	return r ? r : *t->rest ? fail(t) : 0;
}

int address_filter_translate(const char *filters, const char *kallsyms, char *text, size_t size,
			     struct ptvm_error *error)
{
	struct translation t = { .rest = filters, .kallsyms = kallsyms, .error = error };
	FILE *out = fmemopen(text, size, "w");
	int r = out ? translate(&t, out) : -PTVM_NO_MEMORY;

	if (out && fclose(out) && !r)
		r = ptvm_fail(error, PTVM_BAD_USAGE, "--filter: too many");
	symbols_free(&t.symbols);
	return r;
}
