/* Pieces of any bytes as the files of a recording that several threads wrote. */
#include <string.h>

#include "decode/perf/perf_data.h"
#include "decode/perf/sideband.h"
#include "tests/fake_tree.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The name of each record's place is that of one of the files, and the place is in it. */
static void check_places(const struct perf_data *data)
{
	for (size_t i = 0; i < data->records.count; i++) {
		uint64_t offset = data->records.items[i].file_offset, size = data->file.size;
		const char *path = perf_data_place(data, &offset);

		for (size_t k = 0; k < data->parts.count; k++)
			if (path == data->parts.items[k].path)
				size = data->parts.items[k].size;
		if (offset >= size)
			abort();
	}
}

/* Keeps the compiler from leaving out the reads. */
static volatile unsigned sum;

static unsigned sum_of_ends(const struct aux_queue *queue)
{
	unsigned ends = 0;

	for (size_t i = 0; i < queue->count; i++)
		ends += queue->spans[i].data[0] + queue->spans[i].data[queue->spans[i].size - 1];
	return ends;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "data", "data.1", "data.20" };
	struct bytes rest = { data, size };
	struct perf_data recording = { 0 };
	struct sideband *sideband = NULL;
	struct fake_tree tree;

	fake_tree_init(&tree);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct bytes piece = fuzz_piece(&rest);

		fake_tree_bytes(&tree, piece.data ? piece.data : data, piece.size, names[i]);
	}
	if (!perf_data_open(tree.path, &recording, NULL)) {
		check_places(&recording);
		for (size_t i = 0; i < recording.queues.count; i++)
			sum += sum_of_ends(&recording.queues.items[i]);
		if (sideband_build(&recording, &sideband))
			abort();
		sideband_free(sideband);
	}
	perf_data_close(&recording);
	fake_tree_deinit(&tree);
	return 0;
}
