#include "decode/perf/thread_table.h"

#include <stdlib.h>

#include "decode/base/cleanup.h"
#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/vec.h"

int thread_table_add_name(struct thread_table *table, struct thread_name name)
{
	return vec_push(&table->names, name) ? 0 : -PTVM_NO_MEMORY;
}

SORT_BY_TWO(compare_processes, struct thread_process, tid, order)

/* Switches tell the processes of threads again and again: sort, and keep the last of each. */
static void settle_processes(struct thread_table *table)
{
	enum { MORE = 4096 };
	struct thread_process *items = table->processes.items;
	size_t count = table->processes.count, left = 0;

	sort_vec(&table->processes, compare_processes);
	for (size_t i = 0; i < count; i++)
		if (i + 1 == count || items[i + 1].tid != items[i].tid)
			items[left++] = items[i];
	table->processes.count = left;
	table->processes.limit = 2 * left + MORE;
}

int thread_table_add_process(struct thread_table *table, size_t order, int32_t pid, int32_t tid)
{
	struct thread_told *told = &table->processes.told[(uint32_t)tid % THREAD_TABLE_TOLD];

	if (tid <= 0 || pid <= 0 || (told->tid == tid && told->pid == pid))
		return 0;
	*told = (struct thread_told){ tid, pid };
	if (table->processes.count > table->processes.limit)
		settle_processes(table);
	return vec_push(&table->processes,
			(struct thread_process){ .order = order, .tid = tid, .pid = pid })
		       ? 0
		       : -PTVM_NO_MEMORY;
}

SORT_BY_TWO(compare_names, struct thread_name, tid, order)

static int compare_forks(const void *a, const void *b)
{
	const struct thread_name *x = *(struct thread_name *const *)a;
	const struct thread_name *y = *(struct thread_name *const *)b;

	return sort_order(x->order, y->order);
}

static const char idle_name[] = "swapper";

const char *thread_table_name_by(const struct thread_table *table, int32_t tid, size_t order)
{
	const struct thread_name *names = table->names.items;
	const size_t next = search_sorted(table->names.count, i,
					  names[i].tid < tid ||
						  (names[i].tid == tid && names[i].order <= order));

	if (!tid)
		return idle_name;
	return next && names[next - 1].tid == tid ? names[next - 1].name : NULL;
}

/* A new thread is called as its parent, whose own name may come from a fork before. */
static int name_forks(struct thread_table *table)
{
	_cleanup_free_ struct thread_name **forks = calloc(table->names.count + 1, sizeof(*forks));
	size_t count = 0;

	if (!forks)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < table->names.count; i++)
		if (!table->names.items[i].name)
			forks[count++] = &table->names.items[i];
	qsort(forks, count, sizeof(struct thread_name *), compare_forks);
	for (size_t i = 0; i < count; i++)
		forks[i]->name = thread_table_name_by(table, forks[i]->parent_tid, forks[i]->order);
	return 0;
}

int thread_table_settle(struct thread_table *table)
{
	sort_vec(&table->names, compare_names);
	settle_processes(table);
	return name_forks(table);
}

/* The first name behind those that a thread has had by a time. */
static size_t names_until(const struct thread_table *table, int32_t tid, uint64_t time_ns)
{
	const struct thread_name *names = table->names.items;

	return search_sorted(table->names.count, i,
			     names[i].tid < tid ||
				     (names[i].tid == tid && names[i].time <= time_ns));
}

const char *thread_table_name(const struct thread_table *table, int32_t tid, uint64_t time_ns)
{
	size_t next = names_until(table, tid, time_ns);

	if (!tid)
		return idle_name;
	if (!next || table->names.items[next - 1].tid != tid)
		return NULL;
	return table->names.items[next - 1].name;
}

uint64_t thread_table_name_until(const struct thread_table *table, int32_t tid, uint64_t time_ns)
{
	size_t next = names_until(table, tid, time_ns);

	if (next == table->names.count || table->names.items[next].tid != tid)
		return UINT64_MAX;
	return table->names.items[next].time;
}

int32_t thread_table_pid(const struct thread_table *table, int32_t tid)
{
	size_t next =
		search_sorted(table->processes.count, i, table->processes.items[i].tid <= tid);

	if (!next || table->processes.items[next - 1].tid != tid)
		return tid ? -1 : 0;
	return table->processes.items[next - 1].pid;
}

void thread_table_free(struct thread_table *table)
{
	vec_free(&table->names);
	vec_free(&table->processes);
}
