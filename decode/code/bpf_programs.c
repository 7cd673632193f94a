/* The section has the number of programs. For each of them follows what the kernel says of it
 * (struct bpf_prog_info of include/uapi/linux/bpf.h), and then the arrays that this points to, with
 * their offsets in place of the pointers (perf, util/bpf-utils.c). The code of a program's
 * functions lies one behind the other; in the kernel they can be anywhere. */
#include "decode/code/bpf_programs.h"

#include <stdlib.h>

#include "decode/base/byte_reader.h"
#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

/* In struct bpf_prog_info. That of older kernels ends earlier, and has no functions. */
enum {
	ID = 4,
	CODE_SIZE = 16,
	CODE = 24,
	ADDRESS_COUNT = 104,
	LENGTH_COUNT = 108,
	ADDRESSES = 112,
	LENGTHS = 120,
	INFO_NEEDED = 128,
};

/* Arrays that are there, by perf's numbers: code, addresses and lengths of functions. */
enum { ARRAYS_NEEDED = 1 << 0 | 1 << 3 | 1 << 4 };

static int read_functions(struct bytes info, struct bytes data, struct bpf_programs *ret)
{
	struct bytes code =
		bytes_slice(data, bytes_number(info, CODE, 8), bytes_number(info, CODE_SIZE, 4));
	uint64_t count = bytes_number(info, ADDRESS_COUNT, 4);
	struct bytes addresses = bytes_slice(data, bytes_number(info, ADDRESSES, 8), 8 * count);
	struct bytes lengths = bytes_slice(data, bytes_number(info, LENGTHS, 8), 4 * count);

	if (bytes_number(info, LENGTH_COUNT, 4) != count || addresses.size != 8 * count ||
	    lengths.size != 4 * count)
		return -PTVM_BAD_INPUT;
	for (uint64_t i = 0; i < count && code.size; i++) {
		const struct bpf_function function = {
			.program = (uint32_t)bytes_number(info, ID, 4),
			.address = bytes_number(addresses, 8 * i, 8),
			.code = bytes_slice(code, 0, bytes_number(lengths, 4 * i, 4)),
		};

		if (function.code.size && !vec_push(&ret->functions, function))
			return -PTVM_NO_MEMORY;
		code = bytes_slice(code, function.code.size, code.size);
	}
	return 0;
}

static int read_program(struct byte_reader *section, struct bpf_programs *ret)
{
	uint64_t info_size = byte_reader_number(section, 4);
	uint64_t data_size = byte_reader_number(section, 4);
	uint64_t arrays = byte_reader_number(section, 8);
	struct bytes info = byte_reader_take(section, info_size);
	struct bytes data = byte_reader_take(section, data_size);

	if (!info.size || section->is_bad)
		return -PTVM_BAD_INPUT;
	if (info.size < INFO_NEEDED || (arrays & ARRAYS_NEEDED) != ARRAYS_NEEDED)
		return 0;
	return read_functions(info, data, ret);
}

SORT_BY_TWO(compare, struct bpf_function, program, address)

int bpf_programs_read(struct bytes section, struct bpf_programs *ret)
{
	struct byte_reader reader = { .left = section };
	uint64_t count = byte_reader_number(&reader, 4);
	int r = reader.is_bad ? -PTVM_BAD_INPUT : 0;

	for (uint64_t i = 0; i < count && !r; i++)
		r = read_program(&reader, ret);
	sort_vec(&ret->functions, compare);
	return r;
}

struct bpf_function *bpf_programs_find(const struct bpf_programs *programs, uint32_t program,
				       size_t *count)
{
	struct bpf_function *functions = programs->functions.items;
	size_t low = search_sorted(programs->functions.count, i, functions[i].program < program);

	*count = 0;
	while (low + *count < programs->functions.count &&
	       functions[low + *count].program == program)
		++*count;
	return *count ? functions + low : NULL;
}

void bpf_programs_free(struct bpf_programs *programs)
{
	vec_free(&programs->functions);
}
