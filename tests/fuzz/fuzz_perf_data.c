/* Any bytes as a recording: opened, its sideband built, its header and all of it printed. */
#include <stddef.h>
#include <stdint.h>

#include "decode/base/cleanup.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/perf_info.h"
#include "decode/perf/sideband.h"
#include "decode/perf_dump.h"
#include "decode/pt_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_packets(void *context, const uint8_t *data, uint64_t size)
{
	struct page_trail nowhere = { .mapping = &(struct bytes){ NULL, 0 } };

	pt_dump(data, size, 0, &nowhere, context);
}

/* Spans must lie in the input and follow on each other. */
static void check_queue(const struct aux_queue *queue, const uint8_t *data, size_t size)
{
	uint64_t position = 0;

	for (size_t i = 0; i < queue->count; i++) {
		const struct aux_span *span = &queue->spans[i];

		if (!span->size || span->position != position)
			__builtin_trap();
		if (span->data >= data && span->data < data + size &&
		    span->size > (size_t)(data + size - span->data))
			__builtin_trap();
		position += span->size;
	}
	if (position != queue->size)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_fclose_ FILE *out = fopen("/dev/null", "w");
	struct sideband *sideband = NULL;
	struct ptvm_error error = { 0 };
	struct perf_data recording = { 0 };

	if (out && !perf_data_open_bytes((struct bytes){ data, size }, &recording, &error)) {
		const struct perf_dump_options options = { .print_packets = print_packets,
							   .context = out };

		for (size_t i = 0; i < recording.queues.count; i++)
			check_queue(&recording.queues.items[i], data, size);
		for (size_t i = 1; i < recording.records.count; i++)
			if (recording.records.items[i].time < recording.records.items[i - 1].time)
				__builtin_trap();
		if (!sideband_build(&recording, &sideband))
			(void)sideband_comm(sideband, 1, 1);
		perf_info_print(&recording, out);
		(void)perf_dump(&recording, &options, out);
		sideband_free(sideband);
	}
	perf_data_close(&recording);
	return 0;
}
