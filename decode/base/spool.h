/* Memory for what grows with a recording. What is small is plain memory; what is large lies in a
 * temporary file without a name, so that its pages can be given back, and come again when they are
 * needed. Where no directory takes such a file, it is one in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { SPOOL_FROM = 16 << 20 }; /* bytes: what is not smaller lies in a file */

/** A temporary file without a name, in $TMPDIR, /var/tmp, /tmp or memory; -1 and errno if none can
 * be had. */
int spool_open(void);

/** Memory in a file, of at least SPOOL_FROM bytes, which are zero; spool_realloc() does not take
 * it. NULL when memory is out, or the place for the file. */
void *spool_new(size_t size);

/**
 * As realloc(), where `from` is the size so far (0: `bytes` is NULL) and `to` is larger. Returns
 * NULL, with all as it was, when memory is out, or the place for the file.
 */
void *spool_realloc(void *bytes, size_t from, size_t to);

/** Whether there ever was no room for a file of spool_new() or spool_realloc(): the disk was full,
 * or the file larger than a limit (RLIMIT_FSIZE, of which SIGXFSZ tells, too). */
bool spool_was_full(void);

/** Release `bytes` of spool_new() or spool_realloc(); accepts NULL and 0. */
void spool_free(void *bytes, size_t size);

/** Give the pages of `bytes` back as far as they lie in a file; their content stays. */
void spool_rest(const void *bytes, size_t size);

/** Make room for one more in an array as that of vec.h, all of which comes from here; returns
 * false, with the array as it was, when memory is out. */
bool spool_grow(void **items, size_t *room, size_t count, size_t size);

/* Append `...` (a value of the item type) to `v`; false when memory is out. */
#define spool_push(v, ...)                                                                         \
	(spool_grow((void **)&(v)->items, &(v)->room, (v)->count, sizeof(*(v)->items))             \
		 ? ((v)->items[(v)->count++] = (__VA_ARGS__), true)                                \
		 : false)

#define spool_vec_rest(v) spool_rest((v)->items, (v)->room * sizeof(*(v)->items))

#define spool_vec_free(v)                                                                          \
	do {                                                                                       \
		spool_free((v)->items, (v)->room * sizeof(*(v)->items));                           \
		(v)->items = NULL;                                                                 \
		(v)->count = (v)->room = 0;                                                        \
	} while (0)
