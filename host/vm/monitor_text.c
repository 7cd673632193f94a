#include "host/vm/monitor_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/page_walk.h"

static const uint64_t paging = UINT64_C(1) << 31; /* of CR0 */
static const uint64_t five_levels = 1 << 12;      /* of CR4 */
static const uint64_t long_mode_active = 1 << 10; /* of EFER */
static const char memory_view[] = " AS \"memory\",";
static const char ranges_title[] = "\n Root memory region:";

/* The hexadecimal number after `name`, which is before `end`. */
static bool read_register(const char *text, const char *end, const char *name, uint64_t *ret)
{
	const char *found = strstr(text, name);

	if (!found || found >= end)
		return false;
	*ret = strtoull(found + strlen(name), NULL, 16);
	return true;
}

size_t monitor_text_roots(const char *text, struct page_root *ret, size_t room)
{
	static const char title[] = "CPU#";
	const char *cpu = strstr(text, title), *end;
	uint64_t cr0, cr3, cr4, efer;
	size_t count = 0;

	for (; cpu && count < room; cpu = *end ? end : NULL) {
		end = strstr(cpu + 1, title);
		if (!end)
			end = cpu + strlen(cpu);
		if (read_register(cpu, end, "CR0=", &cr0) &&
		    read_register(cpu, end, "CR3=", &cr3) &&
		    read_register(cpu, end, "CR4=", &cr4) &&
		    read_register(cpu, end, "EFER=", &efer) && cr0 & paging &&
		    efer & long_mode_active)
			ret[count++] = (struct page_root){ cr3, cr4 & five_levels };
	}
	return count;
}

size_t monitor_text_ram(const char *text, struct monitor_range *ret, size_t room)
{
	const char *view = strstr(text, memory_view);
	const char *line = view ? strstr(view, ranges_title) : NULL;
	struct monitor_range range;
	size_t count = 0;
	char type[8];
	int fields;

	/* "  0000000000100000-000000001fffffff (prio 0, ram): pc.ram @0000000000100000" */
	while (line && (line = strchr(line + 1, '\n')) && line[1] == ' ' && count < room) {
		fields = sscanf(line + 1, "  %16" SCNx64 "-%16" SCNx64 " (prio %*d, %7[^)])",
				&range.first, &range.last, type);
		if (fields < 2)
			break;
		if (fields == 3 && !strcmp(type, "ram") && range.first <= range.last)
			ret[count++] = range;
	}
	return count;
}

uint64_t monitor_text_address(const char *text)
{
	static const char before[] = " is 0x";
	const char *found = NULL, *next = text;

	while ((next = strstr(next, before)))
		found = ++next;
	return found ? strtoull(found + strlen(before) - 1, NULL, 16) : 0;
}
