/* sim_recording FILE KIND: write a perf.data file with the trace of a simulated machine, whose
 * guest has a TSC of that kind, and print the true offsets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "tests/perf_build.h"
#include "tests/sim_vm.h"

enum { SEED = 3, PIECES = 32, STEPS = 60000 };

static bool set_kind(const char *kind, struct sim_options *options)
{
	options->instructions = STEPS;
	options->pt.psb_bytes = 256;
	if (!strcmp(kind, "changed")) {
		options->tsc_change = STEPS / 2;
		options->tsc_changed = options->tsc_offset[0] + 1000000;
	} else if (!strcmp(kind, "none")) {
		options->tsc_offset[0] = 0;
	} else if (!strcmp(kind, "no-tma")) {
		options->pt.mtc = false;
	} else {
		return !strcmp(kind, "plain");
	}
	return true;
}

/* In pieces, whose ends lie in packets as often as between them. */
static void add_trace(const struct pt_bytes *trace, struct perf_build *build)
{
	size_t size = trace->size / PIECES + 1;

	perf_build_pt(build, 0, 1);
	for (size_t at = 0; at < trace->size; at += size)
		perf_build_aux(build, 0, at, trace->data + at,
			       trace->size - at < size ? trace->size - at : size);
}

int main(int argc, char **argv)
{
	struct sim_options options = sim_options_plain(SEED);
	struct perf_build build = { 0 };
	struct bytes file;
	struct sim_vm vm;

	if (argc != 3 || !set_kind(argv[2], &options))
		return 2;
	_cleanup_fclose_ FILE *out = fopen(argv[1], "wbx");
	if (!out)
		return 1;
	sim_vm_run(&options, &vm);
	add_trace(&vm.pt.out, &build);
	file = perf_build_file(&build);
	if (fwrite(file.data, 1, file.size, out) != file.size)
		return 1;
	(void)printf("%#" PRIx64 "\n", options.tsc_offset[0]);
	if (options.tsc_change)
		(void)printf("%#" PRIx64 "\n", options.tsc_changed);
	perf_build_free(&build);
	sim_vm_free(&vm);
	return 0;
}
