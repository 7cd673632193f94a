#include "host/cmd_record.h"

#include "host/machine/perf_kernel.h"
#include "host/record/record.h"
#include "host/record/record_options.h"
#include "host/record/recording_repair.h"

int cmd_record(int argc, char **argv, struct ptvm_error *error)
{
	const struct roots roots = roots_here();
	const struct perf_kernel kernel = perf_kernel_here();
	struct record_options options;
	int r = record_options_parse(argc, argv, &options, error);

	if (!r)
		r = options.repair ? recording_repair(options.repair, error)
				   : record(&roots, &kernel, &options, argc, argv, error);
	record_options_free(&options);
	return r;
}
