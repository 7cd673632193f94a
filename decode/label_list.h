/* The jump labels that were found changed, in any segment: each once, to be counted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/pt_flow.h"

enum { LABEL_LIST_MAX = 4096 };

/** Zero-initialise before use. */
struct label_list {
	struct code_site items[LABEL_LIST_MAX];
	size_t count;
};

/** Add those that are new, of a group all its labels; what does not fit is not counted. */
void label_list_add(struct label_list *list, const struct flow_patch *patches, size_t count);

/** The lowest address of all; 0 when there is none. */
uint64_t label_list_lowest(const struct label_list *list);
