/* Any bytes as formats of tracepoints, and a sample of each kind that its number may name. The
 * library that reads formats may well fail on them: that must not reach us. */
#include <stdlib.h>

#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/print/trace_formats.h"
#include "decode/print/tracepoint_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RAW = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes section = { data, size };
	struct machines machines = { .host = machine_new(0, false) };
	struct trace_formats formats = { 0 };
	struct tracepoint_text points;
	struct text text = { 0 };

	if (!machines.host)
		abort();
	(void)trace_formats_read(section, &formats);
	for (size_t i = 0; i < formats.list.count; i++)
		if (!formats.list.items[i].system || !formats.list.items[i].text.size)
			abort();
	tracepoint_text_start(&points, section, &machines);
	for (uint64_t id = 0x234; id < 0x236; id++)
		tracepoint_text_add(&points, id, 0, 0,
				    bytes_slice(section, size > RAW ? size - RAW : 0, RAW), &text);
	if (size && !text.size && !points.pid)
		abort();
	tracepoint_text_stop(&points);
	trace_formats_free(&formats);
	text_free(&text);
	machines_free(&machines);
	return 0;
}
