/* A copy of some of a live kcore: an ELF core file with one PT_LOAD for each piece, one piece after
 * the other, as perf's kcore_dir has it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct channel;
struct code_ranges;
struct kcore_head;

enum {
	KCORE_COPY_BYTES = 256 << 20, /* more is refused */
	KCORE_COPY_PIECES = 4096,     /* what elf_file reads */
};

struct kcore_piece {
	uint64_t address, size;
	uint64_t from, to; /* offsets in the live file and in ours */
};

struct kcore_copy {
	struct {
		struct kcore_piece *items;
		size_t count, room;
	} pieces;
	uint64_t total, done; /* bytes of all pieces */
	uint64_t left;        /* of piece `at` */
	size_t at;
	uint8_t *buffer;
	int file; /* -1: none */
};

/**
 * Choose the pieces: what of `ranges` the live kcore has.
 *
 * @ret  release with kcore_copy_free(), also after a failure
 *
 * Returns 0, -PTVM_BAD_INPUT (no kernel text in it, or more than the limits) or -PTVM_NO_MEMORY.
 */
int kcore_copy_plan(const struct kcore_head *head, const struct code_ranges *ranges,
		    struct kcore_copy *ret, struct ptvm_error *error);

/** Make the file, which must not be there, and its headers. Returns 0 or -PTVM_SYSTEM. */
int kcore_copy_create(struct kcore_copy *copy, const char *path, struct ptvm_error *error);

/**
 * Copy the next CHANNEL_READ_BYTES or less.
 *
 * @channel  /proc/kcore is open in it
 *
 * Returns 1 while there is more, 0 when all is copied, -PTVM_BAD_INPUT where the guest's file ends
 * before its headers say so, or another error.
 */
int kcore_copy_next(struct kcore_copy *copy, struct channel *channel, struct ptvm_error *error);

/** Close the file and free everything; accepts zeroes with `file` -1. */
void kcore_copy_free(struct kcore_copy *copy);
