/* A stretch of the lines of one queue, with their times, on its way from a printer to the output.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "decode/base/text.h"
#include "decode/base/vec.h"
#include "decode/print/outcome.h"

/** Lines that share a time: those from the former run's end up to `end` in the text. */
struct print_run {
	uint64_t time_ns;
	size_t end;
	size_t record; /* 0; or these are no lines but the sample_origin of record number - 1 */
};

struct print_runs {
	struct print_run *items;
	size_t count, room;
};

struct chunk {
	struct chunk *next;
	struct text text;
	struct print_runs runs;   /* of all the text */
	struct outcome *outcomes; /* of segments that end with it */
};

/** Chunks in order. */
struct chunk_list {
	struct chunk *first, *last;
};

/** The memory for a chunk that is full when it has `bytes` of text: the last lines go beyond that.
 */
static inline size_t chunk_room(size_t bytes)
{
	return bytes + bytes / 2;
}

/** An empty one, with room for somewhat more than `bytes` of text; NULL when memory is out. */
static inline struct chunk *chunk_new(size_t bytes)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));

	if (chunk)
		(void)text_reserve(&chunk->text, chunk_room(bytes));
	return chunk;
}

static inline void chunk_free(struct chunk *chunk)
{
	struct outcome *outcome;

	while ((outcome = chunk->outcomes)) {
		chunk->outcomes = outcome->next;
		free(outcome);
	}
	text_free(&chunk->text);
	vec_free(&chunk->runs);
	free(chunk);
}

static inline void chunk_list_push(struct chunk_list *list, struct chunk *chunk)
{
	chunk->next = NULL;
	if (list->first)
		list->last->next = chunk;
	else
		list->first = chunk;
	list->last = chunk;
}

/** The first one, no longer in the list; NULL when it is empty. */
static inline struct chunk *chunk_list_pop(struct chunk_list *list)
{
	struct chunk *chunk = list->first;

	if (chunk)
		list->first = chunk->next;
	return chunk;
}

/** Append all of `more`, which is empty then. */
static inline void chunk_list_join(struct chunk_list *list, struct chunk_list *more)
{
	if (!more->first)
		return;
	if (list->first)
		list->last->next = more->first;
	else
		list->first = more->first;
	list->last = more->last;
	more->first = NULL;
}

static inline void chunk_list_free(struct chunk_list *list)
{
	struct chunk *chunk;

	while ((chunk = chunk_list_pop(list)))
		chunk_free(chunk);
}
