#include "correlate/offset_given.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "decode/base/vec.h"
#include "decode/pt/pt_offsets.h"

/* A number as in C; what follows it goes to `end`. */
static bool read_number(const char *text, bool may_be_negative, uint64_t *ret, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)text[text[0] == '-' && may_be_negative]))
		return false;
	errno = 0;
	*ret = strtoull(text, &stop, 0);
	*end = stop;
	return !errno;
}

static int add(struct offsets_given *given, uint64_t vmcs, uint64_t offset,
	       struct ptvm_error *error)
{
	if (given->count == GIVEN_MAX)
		return ptvm_fail(error, PTVM_BAD_USAGE, "more than %d TSC offsets", GIVEN_MAX);
	given->items[given->count].vmcs = vmcs;
	given->items[given->count++].offset = offset & PT_TSC_MASK;
	return 0;
}

static int refuse(const char *text, struct ptvm_error *error)
{
	return ptvm_fail(error, PTVM_BAD_USAGE,
			 "--tsc-offset takes OFFSET[:VMCS,...], as 0xfffffff7e1d98d60:0x2664e, "
			 "not '%s'",
			 text);
}

int offsets_given_parse(const char *text, struct offsets_given *ret, struct ptvm_error *error)
{
	uint64_t offset, vmcs;
	const char *p;

	if (!read_number(text, true, &offset, &p) || (*p && *p != ':'))
		return refuse(text, error);
	if (!*p)
		return add(ret, PT_NO_VMCS, offset, error);
	do {
		int r;

		if (!read_number(p + 1, false, &vmcs, &p) || (*p && *p != ',') ||
		    vmcs >= PT_NO_VMCS)
			return refuse(text, error);
		r = add(ret, vmcs, offset, error);
		if (r)
			return r;
	} while (*p);
	return 0;
}

/* The last one given for this VMCS by name, otherwise for any. */
static bool find(const struct offsets_given *given, uint64_t vmcs, uint64_t *ret)
{
	bool named = false, found = false;

	for (unsigned i = 0; i < given->count; i++) {
		bool name = given->items[i].vmcs == vmcs;

		if (!name && (named || given->items[i].vmcs != PT_NO_VMCS))
			continue;
		*ret = given->items[i].offset;
		named |= name;
		found = true;
	}
	return found;
}

int offsets_given_use(const struct offsets_given *given, struct tsc_offsets *offsets)
{
	for (size_t i = 0; i < offsets->guests.count; i++) {
		struct vmcs_offsets *guest = &offsets->guests.items[i];
		struct tsc_segment segment = { .to = UINT64_MAX,
					       .ratio = TSC_RATIO_ONE,
					       .host = guest->first_host,
					       .source = TSC_GIVEN,
					       .confidence = TSC_HIGH };

		if (!find(given, guest->vmcs, &segment.offset))
			continue;
		if (guest->segments.count)
			segment.host = guest->segments.items[0].host;
		guest->segments.count = 0;
		if (!vec_push(&guest->segments, segment))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}
