#include "decode/perf/raw_trace.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/mapped_file.h"
#include "decode/perf/perf_header.h"

static bool parse_number(const char **p, uint64_t *ret)
{
	char *end;

	if (**p < '0' || **p > '9')
		return false;
	*ret = strtoull(*p, &end, 0);
	*p = end;
	return true;
}

/* A path may have colons: what follows the last ones counts only if it is all numbers. */
static bool parse_tail(const char *text, bool range, struct file_range *ret)
{
	if (!parse_number(&text, range ? &ret->from : &ret->address))
		return false;
	if (range && *text == '-') {
		text++;
		if (!parse_number(&text, &ret->to))
			return false;
	}
	return !*text;
}

int file_range_parse(const char *text, bool with_address, struct file_range *ret,
		     struct ptvm_error *error)
{
	char *colon;

	*ret = (struct file_range){ .from = 0 };
	if (strlen(text) >= sizeof(ret->path))
		return ptvm_fail(error, PTVM_BAD_USAGE, "file name too long");
	strcpy(ret->path, text);
	colon = strrchr(ret->path, ':');
	if (with_address) {
		if (!colon || !parse_tail(colon + 1, false, ret))
			return ptvm_fail(error, PTVM_BAD_USAGE,
					 "--raw takes FILE[:FROM-TO]:ADDRESS, not '%s'", text);
		ret->have_address = true;
		*colon = 0;
		colon = strrchr(ret->path, ':');
	}
	if (colon && parse_tail(colon + 1, true, ret))
		*colon = 0;
	return 0;
}

int raw_trace_open(const struct file_range *range, struct raw_trace *ret, struct ptvm_error *error)
{
	int r = mapped_file_open(range->path, &ret->file, error);
	uint64_t to;

	if (r)
		return r;
	if (!perf_header_check(ret->file, range->path, NULL) && !range->from)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: a recording, which -i reads, not a raw trace", range->path);
	to = range->to && range->to < ret->file.size ? range->to : ret->file.size;
	if (range->from >= to)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: no trace in bytes %#llx to %#llx",
				 range->path, (unsigned long long)range->from,
				 (unsigned long long)to);
	ret->span = (struct aux_span){ .data = ret->file.data + range->from,
				       .size = to - range->from,
				       .file_offset = range->from };
	ret->queue = (struct aux_queue){ .cpu = -1,
					 .tid = -1,
					 .pid = -1,
					 .spans = &ret->span,
					 .count = 1,
					 .size = ret->span.size };
	return 0;
}

void raw_trace_close(struct raw_trace *trace)
{
	mapped_file_close(&trace->file);
}

int raw_trace_parse_cpu(const char *text, struct pt_config *config, struct ptvm_error *error)
{
	uint64_t family, model, stepping = 0;
	const char *p = text;

	if (parse_number(&p, &family) && *p++ == '/' && parse_number(&p, &model) &&
	    (!*p || (*p++ == '/' && parse_number(&p, &stepping))) && !*p) {
		config->cpu_family = (uint32_t)family;
		config->cpu_model = (uint32_t)model;
		config->cpu_stepping = (uint32_t)stepping;
		return 0;
	}
	return ptvm_fail(error, PTVM_BAD_USAGE, "--cpu takes FAMILY/MODEL[/STEPPING], not '%s'",
			 text);
}
