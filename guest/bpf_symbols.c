/* Since Linux 5.7 what is listed begins with its address, its end and its name, and then its
 * pointers in the list follow (struct bpf_ksym of include/linux/bpf.h). The room for the name is
 * KSYM_NAME_LEN, which became more in 6.1. */
#include "guest/bpf_symbols.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/bytes.h"
#include "decode/base/text.h"
#include "guest/kallsyms_tables.h"
#include "guest/kernel_image.h"
#include "guest/page_walk.h"

enum {
	NAME_AT = 16,
	POINTERS_BYTES = 16,
	SHORT_NAME_BYTES = 128,
	BEFORE = NAME_AT + KALLSYMS_NAME_BYTES, /* bytes before the pointers, at most */
};

static bool is_name(const uint8_t *name, size_t room)
{
	static const char prefix[] = "bpf_";
	size_t length = strnlen((const char *)name, room);

	if (length == room || memcmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isgraph(name[i]))
			return false;
	return true;
}

/* Append the line of one with so much room for its name; false where there is none. */
static bool print(const uint8_t *ksym, size_t room, uint64_t from, struct text *text)
{
	const uint64_t start = load_le(ksym, 8), end = load_le(ksym + 8, 8);
	char line[KALLSYMS_NAME_BYTES + 32];

	if (start < from || end > kernel_image_last || end <= start ||
	    end - start > BPF_SYMBOL_CODE_BYTES || !is_name(ksym + NAME_AT, room))
		return false;
	(void)snprintf(line, sizeof(line), "%016" PRIx64 " t %s\t[bpf]\n", start,
		       (const char *)ksym + NAME_AT);
	text_puts(text, line);
	return true;
}

void bpf_symbols_print(struct page_walk *walk, uint64_t head, uint64_t start, struct text *text)
{
	uint8_t bytes[BEFORE + POINTERS_BYTES];
	uint64_t node, last = head;

	if (page_walk_read(walk, head, bytes + BEFORE, 8, NULL))
		return;
	for (unsigned i = 0; i < BPF_SYMBOLS; i++, last = node) {
		node = load_le(bytes + BEFORE, 8);
		if (node == head || node < BEFORE ||
		    page_walk_read(walk, node - BEFORE, bytes, sizeof(bytes), NULL) ||
		    load_le(bytes + BEFORE + 8, 8) != last)
			return;
		if (!print(bytes, KALLSYMS_NAME_BYTES, start, text) &&
		    !print(bytes + BEFORE - NAME_AT - SHORT_NAME_BYTES, SHORT_NAME_BYTES, start,
			   text))
			return;
	}
}
