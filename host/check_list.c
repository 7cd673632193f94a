#include "host/check_list.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void check_add(struct check_list *list, const char *name, enum check_verdict verdict,
	       const char *remedy, const char *format, ...)
{
	struct check_item *item = &list->items[list->count];
	va_list args;

	assert(list->count < CHECK_MAX_ITEMS);
	list->count++;
	item->name = name;
	item->verdict = verdict;
	item->remedy = verdict == CHECK_OK ? NULL : remedy;
	va_start(args, format);
	(void)vsnprintf(item->value, sizeof(item->value), format, args);
	va_end(args);
	for (char *c = item->value; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

const char *check_verdict_text(enum check_verdict verdict)
{
	static const char *const words[] = { "ok", "warning", "blocks" };

	return words[verdict];
}

size_t check_count(const struct check_list *list, enum check_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->items[i].verdict == verdict;
	return count;
}
