#include "decode/perf_dump.h"
#include "decode/perf_info.h"
#include "decode/pt_dump.h"
#include "decode/script_setup.h"

static void print_packets(void *context, const uint8_t *data, uint64_t size)
{
	pt_dump(data, size, 0, context);
}

int script_dump(const struct script *script, FILE *out, struct ptvm_error *error)
{
	const struct perf_dump_packets packets = { print_packets, out };
	int r;

	if (script->args.pt) {
		pt_dump(script->raw.span.data, script->raw.span.size, script->raw.span.file_offset,
			out);
		r = ferror(out) ? -PTVM_SYSTEM : 0;
	} else {
		r = perf_dump(&script->data, &packets, out);
	}
	return r ? ptvm_fail(error, (enum ptvm_err)(-r), "cannot write the dump") : 0;
}

int script_print_header(const struct script *script, FILE *out, struct ptvm_error *error)
{
	if (script->args.pt)
		return ptvm_fail(error, PTVM_BAD_USAGE, "a raw trace has no header");
	perf_info_print(&script->data, out);
	return 0;
}
