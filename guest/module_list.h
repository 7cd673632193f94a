/* The modules of a guest's kernel, found in its memory: where they are, and where their symbols. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct page_walk;
struct text;

enum {
	MODULE_LIST_ITEMS = 4096,      /* a longer list is not believed */
	MODULE_LIST_BYTES = 512 << 20, /* of memory searched for it, at most */
	MODULE_NAME_BYTES = 56,        /* with the NUL, as the kernel's MODULE_NAME_LEN */
};

enum module_state { MODULE_LIVE, MODULE_COMING, MODULE_GOING, MODULE_UNFORMED };

struct listed_module {
	char name[MODULE_NAME_BYTES];
	enum module_state state;
	uint64_t address; /* of its struct module */
	uint64_t text;    /* where its code begins; 0: not known */
	uint64_t size;    /* as /proc/modules tells it */
	uint64_t fixed;   /* memory that has its read-only data, and maybe more; 0: not known */
	uint32_t fixed_size;
	uint64_t symbols, names, types;
	uint32_t symbol_count; /* 0: none, or not known where */
};

struct module_list {
	struct listed_module *items; /* in the order of /proc/modules */
	size_t count, room;
};

/**
 * Find the list.
 *
 * @start  where the kernel's image ends: modules are after it
 * @ret    release with module_list_free(), also after a failure; empty where no list was found,
 *         which is so too in a kernel without modules
 *
 * Returns 0, -PTVM_NO_MEMORY or an error of the memory.
 */
int module_list_find(struct page_walk *walk, uint64_t start, struct module_list *ret,
		     struct ptvm_error *error);

/** Append the lines of /proc/modules, without counts of users, which are not looked for. */
void module_list_print(const struct module_list *list, struct text *text);

/** Free everything. */
void module_list_free(struct module_list *list);
