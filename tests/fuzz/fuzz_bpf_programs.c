/* Any bytes as a recording's BPF programs: all code lies within them, all functions are found. */
#include <stdlib.h>

#include "decode/code/bpf_programs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bpf_programs programs = { 0 };
	size_t count;

	(void)bpf_programs_read((struct bytes){ data, size }, &programs);
	for (size_t i = 0; i < programs.functions.count; i++) {
		const struct bpf_function *function = &programs.functions.items[i];

		if (!function->code.size || function->code.data < data ||
		    function->code.data + function->code.size > data + size ||
		    !bpf_programs_find(&programs, function->program, &count) || !count)
			abort();
	}
	bpf_programs_free(&programs);
	return 0;
}
