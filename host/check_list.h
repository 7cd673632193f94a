/* What `ptvm check` finds, item by item. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum check_verdict {
	CHECK_OK,
	CHECK_WARNING, /* recording works, with less in it or more effort */
	CHECK_BLOCKS,  /* it does not */
};

struct check_item {
	const char *name; /* static */
	enum check_verdict verdict;
	char value[400];    /* printable ASCII: parts of it come from guests and from other users */
	const char *remedy; /* static; NULL where none is needed */
};

enum { CHECK_MAX_ITEMS = 48 };

/** Zero-initialise before use. */
struct check_list {
	struct check_item items[CHECK_MAX_ITEMS];
	size_t count;
};

/** Add an item; `remedy` is for those that are not ok. */
void check_add(struct check_list *list, const char *name, enum check_verdict verdict,
	       const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

/** "ok", "warning" or "blocks". */
const char *check_verdict_text(enum check_verdict verdict);

/** How many items have this verdict. */
size_t check_count(const struct check_list *list, enum check_verdict verdict);
