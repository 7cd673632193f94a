/* What the threads of a recording are called, since when, and of which processes they are. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** From record number `order` on, a thread has this name. */
struct thread_name {
	size_t order; /* of the recording's records, hence also the order of time */
	uint64_t time;
	const char *name;        /* NULL: that of its parent */
	int32_t tid, parent_tid; /* the latter only without a name */
};

enum { THREAD_TABLE_TOLD = 64 };

/** Zero-initialise before use. */
struct thread_table {
	struct {
		struct thread_name *items;
		size_t count, room;
	} names; /* by tid, order */
	struct {
		struct thread_process {
			size_t order;
			int32_t tid, pid;
		} * items;
		size_t count, room;
		size_t limit; /* count from which on there may be many that do not matter */
		struct thread_told {
			int32_t tid, pid;
		} told[THREAD_TABLE_TOLD]; /* the last ones, by tid modulo */
	} processes;                       /* by tid, the last of each */
};

/** Add a name, which is borrowed. Returns 0 or -PTVM_NO_MEMORY. */
int thread_table_add_name(struct thread_table *table, struct thread_name name);

/** Add that record number `order` tells the process of a thread; numbers below 1 tell nothing.
 * Returns 0 or -PTVM_NO_MEMORY. */
int thread_table_add_process(struct thread_table *table, size_t order, int32_t pid, int32_t tid);

/** No more will be added: the table can be asked. Returns 0 or -PTVM_NO_MEMORY. */
int thread_table_settle(struct thread_table *table);

/** The name of a thread at a time; NULL unknown. The idle thread 0 is "swapper". */
const char *thread_table_name(const struct thread_table *table, int32_t tid, uint64_t time_ns);

/** The same as of record number `order`, this one included. */
const char *thread_table_name_by(const struct thread_table *table, int32_t tid, size_t order);

/** When a thread takes another name after a time, in ns; UINT64_MAX never. */
uint64_t thread_table_name_until(const struct thread_table *table, int32_t tid, uint64_t time_ns);

/** The process of a thread, -1 unknown. */
int32_t thread_table_pid(const struct thread_table *table, int32_t tid);

/** Free everything; accepts zeroes. */
void thread_table_free(struct thread_table *table);
