#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "correlate/tsc_offset_infer.h"
#include "correlate/tsc_patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte chooses the processor, the second where to cut the trace that follows. */
static struct pt_config config_of(const uint8_t *data)
{
	return (struct pt_config){ .tsc = true,
				   .mtc = true,
				   .mtc_shift = data[0] & 15,
				   .ctc_n = data[0] & 0x10 ? 80 : 167,
				   .ctc_d = data[0] & 0x20 ? 0 : 2,
				   .snapshot = data[0] & 0x40,
				   .conv = { .valid = true, .mult = 1 << 30, .shift = 31 },
				   .cpu_family = 6,
				   .cpu_model = data[0] & 0x80 ? 0x55 : 0 };
}

static void find_patches(const struct tsc_offsets *offsets, const struct aux_queue *queue,
			 const struct pt_config *config)
{
	struct tsc_patches patches;
	struct tsc_patch patch;

	tsc_patches_init(&patches, offsets, queue, config, (struct bytes){ 0 });
	while (!tsc_patches_next(&patches, &patch))
		if (patch.size > 8 || patch.position > queue->size ||
		    queue->size - patch.position < patch.size)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmcs_walks walks = { 0 };
	struct tsc_offsets offsets = { 0 };
	struct vmcs_table table = { 0 };
	struct aux_queue queue = { .cpu = 0 };
	struct aux_span spans[2] = { 0 };
	struct pt_config config;
	size_t cut;

	if (size < 4)
		return 0;
	config = config_of(data);
	cut = 1 + data[1] % (size - 3);
	spans[0] = (struct aux_span){ .data = data + 2, .size = cut, .stop_ns = 123456 };
	spans[1] = (struct aux_span){ .data = data + 2 + cut,
				      .size = size - 2 - cut,
				      .position = cut,
				      .stop_ns = 234567,
				      .reference = 1000000,
				      .lost_before = data[1] & 1 };
	queue.spans = spans;
	queue.count = 2;
	queue.size = size - 2;
	if (vmcs_table_collect(&table, &queue, 0, &config, &walks) ||
	    tsc_offset_infer(&table, &config, &offsets))
		abort();
	find_patches(&offsets, &queue, &config);
	tsc_offsets_free(&offsets);
	vmcs_table_free(&table);
	return 0;
}
