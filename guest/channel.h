/* A way to read files of a guest: one at a time, opened, read at any offset, closed. The guest may
 * lie: a channel never gives more than was asked for, nor goes on for longer than its time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"

struct channel;

enum {
	CHANNEL_READ_BYTES = 1 << 20, /* asked for at once, at most */
	CHANNEL_SECONDS = 600,        /* that a channel works after it was made */
	CHANNEL_PATH_BYTES = 200,
};

/** What a way must be able to do; see the functions below. */
struct channel_way {
	const char *name; /* as --via has it */
	int (*open)(struct channel *channel, const char *path, struct ptvm_error *error);
	/* At most `size` bytes, at most CHANNEL_READ_BYTES; 0 at the end of the file. */
	int (*read)(struct channel *channel, uint64_t offset, void *data, size_t size,
		    struct ptvm_error *error);
	void (*close)(struct channel *channel);
	void (*free)(struct channel *channel);
	/* One of these, or neither: see channel_list() and channel_run_text(). */
	int (*list)(struct channel *channel, const char *path, char *names, size_t size);
	int (*run)(struct channel *channel, const char *command, struct ptvm_error *error);
	bool opens_fast;   /* to read hundreds of files takes no time */
	bool is_code_only; /* its /proc/kcore has nothing but code */
};

/** The beginning of what a way keeps. */
struct channel {
	const struct channel_way *way;
	char path[CHANNEL_PATH_BYTES]; /* of the file, for stories and ways; empty: none is open */
	uint64_t bytes;                /* read so far */
	int64_t end_ms;                /* of monotonic_ms(): nothing is read after it */
};

/** Begin: the channel's time counts from now. For ways. */
void channel_init(struct channel *channel, const struct channel_way *way);

/**
 * Open a file; one that is open is closed.
 *
 * @path  absolute in the guest, of letters, digits, `/`, `_`, `-` and `.`, without `..`
 *
 * Returns 0, -PTVM_NOT_FOUND, -PTVM_SYSTEM, -PTVM_BAD_INPUT or -PTVM_BAD_USAGE (such a path).
 */
int channel_open(struct channel *channel, const char *path, struct ptvm_error *error);

/**
 * Read `size` bytes of the open file at `offset`; fewer only at its end.
 * Returns their number (`size` is at most INT_MAX), or an error as above.
 */
int channel_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		 struct ptvm_error *error);

/** Close the open file; accepts that none is. */
void channel_close(struct channel *channel);

/**
 * Read the beginning of a file: `size` - 1 bytes at most, and a NUL.
 * Returns the number of bytes, or an error as above; `text` is empty then.
 */
int channel_read_text(struct channel *channel, const char *path, char *text, size_t size,
		      struct ptvm_error *error);

/**
 * List a directory, for ways that open files fast.
 *
 * @path   as channel_open() has it
 * @names  as many as `size` bytes hold, each with a NUL
 *
 * Returns how many bytes they take, or a negative value: it cannot be had.
 */
int channel_list(struct channel *channel, const char *path, char *names, size_t size);

/**
 * Let the guest's shell run a command, for ways that can; an open file is closed.
 *
 * @command  without quotes, backslashes and dollars: a shell and JSON pass it on; it has to succeed
 * @text     the beginning of what it prints: `size` - 1 bytes at most, and a NUL
 *
 * Returns the number of bytes, or -PTVM_NOT_FOUND (this way runs none), or another error.
 */
int channel_run_text(struct channel *channel, const char *command, char *text, size_t size,
		     struct ptvm_error *error);

/** Close and free; accepts NULL. */
void channel_free(struct channel *channel);
