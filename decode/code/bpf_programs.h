/* The code that the kernel made of BPF programs, as a recording keeps it (HEADER_BPF_PROG_INFO). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/bytes.h"

/** One function of a program. */
struct bpf_function {
	uint32_t program; /* its id, by which BPF_EVENT records name it */
	uint64_t address;
	struct bytes code; /* > 0 */
	/* as of the BPF_EVENT records read so far; kept by their reader */
	enum { BPF_TO_COME, BPF_LOADED, BPF_GONE } state;
};

/** Zero-initialise before use. Code is that of the section, which must outlive this. */
struct bpf_programs {
	struct {
		struct bpf_function *items;
		size_t count, room;
	} functions; /* sorted by program */
};

/**
 * Read the section. Programs without their code, which a recorder may not be shown, have no
 * functions.
 * Returns 0, -PTVM_BAD_INPUT (damaged: what came before is there) or -PTVM_NO_MEMORY;
 * bpf_programs_free() in any case.
 */
int bpf_programs_read(struct bytes section, struct bpf_programs *ret);

/** The functions of a program, `*count` of them; NULL where there are none. */
struct bpf_function *bpf_programs_find(const struct bpf_programs *programs, uint32_t program,
				       size_t *count);

/** Free the list (not the section); accepts zeroes. */
void bpf_programs_free(struct bpf_programs *programs);
