#include <string.h>

#include "decode/perf/perf_info.h"
#include "decode/perf_dump.h"
#include "decode/pt_dump.h"
#include "decode/script.h"

/* Where packets are printed to, and how far they were read. */
struct packets {
	FILE *out;
	struct page_trail trail;
};

static void print_packets(void *context, const uint8_t *data, uint64_t size)
{
	struct packets *packets = context;

	pt_dump(data, size, 0, &packets->trail, packets->out);
}

static int dump(const struct script *script, FILE *out)
{
	struct packets packets = { out, { .mapping = &script->print.mapping } };
	const struct perf_dump_options options = { script->args.no_itrace ? NULL : print_packets,
						   &packets, script->machines.host,
						   script->print.cpus };
	const struct aux_span *span = &script->raw.span;

	if (!script->args.pt)
		return perf_dump(&script->data, &options, out);
	pt_dump(span->data, span->size, span->file_offset, &packets.trail, out);
	return ferror(out) ? -PTVM_SYSTEM : 0;
}

/* --max-lines */
struct limit {
	FILE *out;
	uint64_t lines; /* that are left */
};

/* Once there are none left, a failure, which ends the dump. */
static ssize_t write_limited(void *context, const char *data, size_t size)
{
	struct limit *limit = context;
	const char *end = data;

	while (limit->lines && end < data + size) {
		const char *newline = memchr(end, '\n', (size_t)(data + size - end));

		limit->lines -= !!newline;
		end = newline ? newline + 1 : data + size;
	}
	return (ssize_t)fwrite(data, 1, (size_t)(end - data), limit->out);
}

static int dump_limited(const struct script *script, FILE *out)
{
	struct limit limit = { out, script->args.max_lines };
	FILE *limited = fopencookie(&limit, "w", (cookie_io_functions_t){ .write = write_limited });
	int r;

	if (!limited)
		return -PTVM_NO_MEMORY;
	r = dump(script, limited);
	if (fclose(limited) && !r)
		r = -PTVM_SYSTEM;
	return r == -PTVM_SYSTEM && !limit.lines ? 0 : r;
}

int script_dump(const struct script *script, FILE *out, struct ptvm_error *error)
{
	int r = script->args.max_lines ? dump_limited(script, out) : dump(script, out);

	return r == -PTVM_SYSTEM ? ptvm_fail(error, PTVM_SYSTEM, "cannot write the dump") : r;
}

int script_print_header(const struct script *script, FILE *out, struct ptvm_error *error)
{
	if (script->args.pt)
		return ptvm_fail(error, PTVM_BAD_USAGE, "a raw trace has no header");
	perf_info_print(&script->data, out);
	return 0;
}
