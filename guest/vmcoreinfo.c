#include "guest/vmcoreinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel's image is mapped at this plus its physical address, less phys_base
 * (__START_KERNEL_map, __pa_symbol() of arch/x86). */
static const uint64_t kernel_map = 0xffffffff80000000;
static const uint64_t physical_end = UINT64_C(1) << 52;

enum { PAGE = PAGE_WALK_BYTES, NUMBER_BYTES = 32 };

static const char first_line[] = "OSRELEASE=";

bool vmcoreinfo_begins(const void *page)
{
	return !memcmp(page, first_line, sizeof(first_line) - 1);
}

bool vmcoreinfo_value(const char *text, const char *name, char *value, size_t size)
{
	const char *line = text, *end;
	size_t name_size = strlen(name), length;

	value[0] = '\0';
	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (strncmp(line, name, name_size) || line[name_size] != '=')
			continue;
		line += name_size + 1;
		length = (size_t)(end - line);
		if (!length || length >= size)
			return false;
		(void)snprintf(value, size, "%.*s", (int)length, line);
		return true;
	}
	return false;
}

/* A negative number is taken modulo 2^64. */
static bool read_number(const char *text, const char *name, int base, uint64_t *ret)
{
	char value[NUMBER_BYTES], *end;

	if (!vmcoreinfo_value(text, name, value, sizeof(value)))
		return false;
	*ret = strtoull(value, &end, base);
	return !*end;
}

/* Both are the same table: x86 has the first name, all others the second one. */
static bool read_root_address(const char *text, uint64_t *ret)
{
	return read_number(text, "SYMBOL(init_top_pgt)", 16, ret) ||
	       read_number(text, "SYMBOL(swapper_pg_dir)", 16, ret);
}

bool vmcoreinfo_read(const char *text, struct vmcoreinfo *ret)
{
	uint64_t phys_base, is_5_level;

	if (!vmcoreinfo_value(text, "OSRELEASE", ret->release, sizeof(ret->release)) ||
	    !read_root_address(text, &ret->root_address) ||
	    !read_number(text, "SYMBOL(init_uts_ns)", 16, &ret->uts_address) ||
	    !read_number(text, "NUMBER(phys_base)", 10, &phys_base))
		return false;
	if (!read_number(text, "NUMBER(pgtable_l5_enabled)", 10, &is_5_level))
		is_5_level = 0;
	ret->root = (struct page_root){ ret->root_address - kernel_map + phys_base, is_5_level };
	return ret->root_address >= kernel_map && !(ret->root_address % PAGE) &&
	       !(ret->root.cr3 % PAGE) && ret->root.cr3 < physical_end;
}

int vmcoreinfo_check_root(const struct vmcoreinfo *info, struct page_walk *walk,
			  struct ptvm_error *error)
{
	struct page_run run;
	int r = page_walk_next(walk, info->root_address, info->root_address + PAGE, &run, error);

	if (r < 0)
		return r;
	return r && run.is_supervisor && run.physical == info->root.cr3 ? 0 : -PTVM_NOT_FOUND;
}
