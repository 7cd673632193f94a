/* The patches that were found, in any segment, and how many instructions they change. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/pt_flow.h"

enum {
	PATCH_LIST_MAX = 4096,
	PATCH_LIST_SITES = 1 << 20, /* that are looked at to count them */
};

/** Zero-initialise before use. */
struct patch_list {
	struct flow_patch *items; /* each does something else */
	size_t count, room;
	bool is_cut; /* there may be more */
};

struct patch_list_sites {
	size_t count;    /* of instructions, each once */
	uint64_t lowest; /* the lowest address of all; 0 when there is none */
	bool is_cut;     /* there may be more than were counted */
};

/** Add those that are new; what does not fit is left out. */
void patch_list_add(struct patch_list *list, const struct flow_patch *patches, size_t count);

/** The instructions that they change; without memory, those for which there was enough. */
struct patch_list_sites patch_list_sites(const struct patch_list *list);

/** Free the patches; accepts zeroes. */
void patch_list_free(struct patch_list *list);
