/* Replies of the QEMU guest agent: JSON that a guest made, of which nothing is believed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

/** What guest-info says. */
struct agent_info {
	char version[32];
	bool can_read_files; /* guest-file-open, -read, -seek and -close are all allowed */
	bool can_run;        /* guest-exec and -status are allowed */
};

/** Returns 0 or -PTVM_BAD_INPUT. */
int agent_info_read(const char *reply, struct agent_info *ret, struct ptvm_error *error);

/** The number that guest-file-open returns. Returns 0 or -PTVM_BAD_INPUT. */
int agent_handle_read(const char *reply, int64_t *ret, struct ptvm_error *error);

/**
 * The bytes that guest-file-read returns, at most `size`.
 * Returns their number, 0 where the reply has none, which is how a file ends; or -PTVM_BAD_INPUT.
 */
int agent_data_read(const char *reply, void *data, size_t size, struct ptvm_error *error);

/** Where guest-file-seek says that it is. Returns 0 or -PTVM_BAD_INPUT. */
int agent_position_read(const char *reply, int64_t *ret, struct ptvm_error *error);

/** The number of the process that guest-exec starts. Returns 0 or -PTVM_BAD_INPUT. */
int agent_process_read(const char *reply, int64_t *ret, struct ptvm_error *error);

/** What guest-exec-status tells of a process. */
struct agent_output {
	bool has_ended;
	int64_t status; /* 0: it did what it should */
	size_t size;    /* of its output */
};

/**
 * Read it; the output, when it has ended, goes to `data`, at most `size` bytes.
 * Returns 0 or -PTVM_BAD_INPUT.
 */
int agent_output_read(const char *reply, void *data, size_t size, struct agent_output *ret,
		      struct ptvm_error *error);
