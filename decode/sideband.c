#include "decode/sideband.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/spool.h"
#include "decode/base/vec.h"
#include "decode/perf_event.h"
#include "decode/perf_record.h"
#include "decode/perf_sample.h"

/* The switches of one CPU. */
struct cpu_switches {
	struct switch_entry *items;
	size_t count, room;
};

/* From record number `order` on, a thread has this name. */
struct thread_name {
	size_t order; /* in data->records, hence also the order of time */
	uint64_t time;
	const char *name; /* NULL until a fork's is found */
	int32_t tid, parent_tid;
};

struct thread_process {
	size_t order;
	int32_t tid, pid;
};

struct sideband {
	struct {
		struct cpu_switches *items;
		size_t count, room;
	} cpus; /* by CPU number */
	struct {
		struct thread_name *items;
		size_t count, room;
	} names; /* by tid, order */
	struct {
		struct thread_process *items;
		size_t count, room;
		size_t limit; /* count from which on there may be many that do not matter */
	} processes;          /* by tid, the last of each */
	struct arena arena;
};

/* Far more than any machine has; a number beyond is damage. */
enum { CPUS = 1 << 16 };

/* After so many switches, pages of those before are given back. */
enum { OFTEN = 1 << 16 };

/* Add that a thread gets a CPU. `is_arrival`: that is from its own record, of switching in;
 * otherwise from that of its predecessor, of switching out. */
static int add_switch(struct sideband *sideband, int32_t cpu, struct switch_entry entry,
		      bool is_arrival)
{
	struct cpu_switches *switches;

	if (cpu < 0 || cpu >= CPUS)
		return 0;
	while (sideband->cpus.count <= (size_t)cpu)
		if (!vec_push(&sideband->cpus, (struct cpu_switches){ 0 }))
			return -PTVM_NO_MEMORY;
	switches = &sideband->cpus.items[cpu];
	entry.settled = entry.time;
	if (switches->count && switches->items[switches->count - 1].tid == entry.tid &&
	    switches->items[switches->count - 1].pid == entry.pid) {
		struct switch_entry *last = &switches->items[switches->count - 1];

		if (is_arrival && last->settled == last->time)
			last->settled = entry.time;
		return 0;
	}
	if (!(switches->count % OFTEN))
		spool_vec_rest(switches);
	return spool_push(switches, entry) ? 0 : -PTVM_NO_MEMORY;
}

static int add_name(struct sideband *sideband, struct thread_name name)
{
	return vec_push(&sideband->names, name) ? 0 : -PTVM_NO_MEMORY;
}

SORT_BY_TWO(compare_processes, struct thread_process, tid, order)

/* Every switch tells the process of a thread again: sort, and keep the last of each thread. */
static void settle_processes(struct sideband *sideband)
{
	enum { MORE = 4096 };
	struct thread_process *items = sideband->processes.items;
	size_t count = sideband->processes.count, left = 0;

	if (count)
		qsort(items, count, sizeof(*items), compare_processes);
	for (size_t i = 0; i < count; i++)
		if (i + 1 == count || items[i + 1].tid != items[i].tid)
			items[left++] = items[i];
	sideband->processes.count = left;
	sideband->processes.limit = 2 * left + MORE;
}

static int add_process(struct sideband *sideband, size_t order, int32_t pid, int32_t tid)
{
	const struct thread_process *last = sideband->processes.items;

	if (tid <= 0 || pid <= 0)
		return 0;
	if (sideband->processes.count > sideband->processes.limit)
		settle_processes(sideband);
	if (sideband->processes.count) {
		last += sideband->processes.count - 1;
		if (last->tid == tid && last->pid == pid)
			return 0;
	}
	return vec_push(&sideband->processes,
			(struct thread_process){ .order = order, .tid = tid, .pid = pid })
		       ? 0
		       : -PTVM_NO_MEMORY;
}

/* The record of a thread that leaves names the one that follows. That of a thread that comes in
 * names itself, in case the other one was lost. */
static int read_switch(struct sideband *sideband, const struct perf_record *record)
{
	struct switch_entry entry = { .time = record->time,
				      .pid = record->pid,
				      .tid = record->tid };
	struct perf_switch change;

	if (perf_switch_read(record, &change) < 0)
		return 0;
	if (change.is_out) {
		if (record->type != PERF_SWITCH_CPU_WIDE)
			return 0;
		entry.pid = change.other_pid;
		entry.tid = change.other_tid;
	}
	return add_switch(sideband, record->cpu, entry, !change.is_out);
}

static int read_itrace_start(struct sideband *sideband, const struct perf_record *record)
{
	struct switch_entry entry = { .time = record->time };

	if (perf_thread_read(record, &entry.pid, &entry.tid) < 0)
		return 0;
	return add_switch(sideband, record->cpu, entry, false);
}

/* A sample of sched:sched_switch: next_pid (a thread in the kernel's words) lies after the common
 * fields, prev_comm, prev_pid, prev_prio, prev_state and next_comm, as in every kernel with PT. */
static int read_sched_switch(const struct perf_data *data, struct sideband *sideband,
			     const struct perf_record *record)
{
	enum { NEXT_PID = 56 };
	const struct perf_id *id = perf_event_find_id(data, record->id);
	const struct perf_event *event = id ? &data->events.items[id->event] : data->events.items;
	struct bytes body = perf_record_body(record);
	struct perf_sample sample;
	uint64_t tid;

	if (data->pt.have_sched_switch != 1 || !data->events.count ||
	    event->type != PERF_EVENT_TRACEPOINT ||
	    (*event->name && !strstr(event->name, "sched_switch")) ||
	    perf_sample_read(event, body, &sample) < 0 ||
	    !bytes_read(sample.raw, NEXT_PID, 4, &tid))
		return 0;
	return add_switch(sideband, record->cpu,
			  (struct switch_entry){ .time = record->time,
						 .pid = tid ? -1 : 0,
						 .tid = (int32_t)(uint32_t)tid },
			  false);
}

/* A thread of process `pid`, and its name. */
static int add_thread(struct sideband *sideband, int32_t pid, struct thread_name thread)
{
	int r = add_process(sideband, thread.order, pid, thread.tid);

	return r < 0 ? r : add_name(sideband, thread);
}

static int read_comm(struct sideband *sideband, const struct perf_record *record, size_t order)
{
	struct perf_comm comm;

	if (perf_comm_read(record, &comm) < 0)
		return 0;
	return add_thread(sideband, comm.pid,
			  (struct thread_name){ .order = order,
						.time = record->time,
						.name = comm.name,
						.tid = comm.tid,
						.parent_tid = -1 });
}

static int read_fork(struct sideband *sideband, const struct perf_record *record, size_t order)
{
	struct perf_task task;

	if (perf_task_read(record, &task) < 0)
		return 0;
	return add_thread(sideband, task.pid,
			  (struct thread_name){ .order = order,
						.time = record->time,
						.tid = task.tid,
						.parent_tid = task.parent_tid });
}

/* Names that the recorder gave threads before anything else, if it gave any. */
static int read_thread_map(struct sideband *sideband, const struct perf_record *record,
			   size_t order)
{
	char name[17];
	int32_t tid;

	for (uint64_t i = 0; !perf_thread_map_entry(record, i, &tid, name); i++) {
		char *copy;

		if (!*name || tid <= 0)
			continue;
		copy = arena_strndup(&sideband->arena, name, strlen(name));
		if (!copy || add_name(sideband, (struct thread_name){ .order = order,
								      .name = copy,
								      .tid = tid,
								      .parent_tid = -1 }) < 0)
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int read_record(const struct perf_data *data, struct sideband *sideband, size_t order)
{
	const struct perf_record *record = &data->records.items[order];
	int r = add_process(sideband, order, record->pid, record->tid);

	if (r < 0)
		return r;
	switch (record->type) {
	case PERF_SWITCH:
	case PERF_SWITCH_CPU_WIDE: return read_switch(sideband, record);
	case PERF_ITRACE_START: return read_itrace_start(sideband, record);
	case PERF_SAMPLE: return read_sched_switch(data, sideband, record);
	case PERF_COMM: return read_comm(sideband, record, order);
	case PERF_FORK: return read_fork(sideband, record, order);
	case PERF_THREAD_MAP: return read_thread_map(sideband, record, order);
	default: return 0;
	}
}

SORT_BY_TWO(compare_names, struct thread_name, tid, order)

static int compare_forks(const void *a, const void *b)
{
	const struct thread_name *x = *(struct thread_name *const *)a;
	const struct thread_name *y = *(struct thread_name *const *)b;

	return sort_order(x->order, y->order);
}

/* The last name of `tid` before record `order`; NULL none. */
static const char *name_before(const struct sideband *sideband, int32_t tid, size_t order)
{
	const struct thread_name *names = sideband->names.items;
	const size_t next = search_sorted(sideband->names.count, i,
					  names[i].tid < tid ||
						  (names[i].tid == tid && names[i].order < order));

	return next && names[next - 1].tid == tid ? names[next - 1].name : NULL;
}

/* A new thread is called as its parent, whose own name may come from a fork before. */
static int name_forks(struct sideband *sideband)
{
	_cleanup_free_ struct thread_name **forks =
		calloc(sideband->names.count + 1, sizeof(*forks));
	size_t count = 0;

	if (!forks)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < sideband->names.count; i++)
		if (!sideband->names.items[i].name)
			forks[count++] = &sideband->names.items[i];
	qsort(forks, count, sizeof(struct thread_name *), compare_forks);
	for (size_t i = 0; i < count; i++)
		forks[i]->name = name_before(sideband, forks[i]->parent_tid, forks[i]->order);
	return 0;
}

/* Samples of sched_switch do not say the process. */
static void complete_switches(struct sideband *sideband)
{
	for (size_t cpu = 0; cpu < sideband->cpus.count; cpu++) {
		struct cpu_switches *switches = &sideband->cpus.items[cpu];

		for (size_t i = 0; i < switches->count; i++) {
			struct switch_entry *entry = &switches->items[i];

			if (entry->pid < 0 && entry->tid > 0)
				entry->pid = sideband_pid_of(sideband, entry->tid);
			if (!(i % OFTEN))
				spool_vec_rest(switches);
		}
	}
}

static int build(const struct perf_data *data, struct sideband *sideband)
{
	struct record_trail trail = perf_data_trail(data);
	int r = 0;

	/* Records of a guest's own recording (machine_pid) are about other threads and CPUs. */
	for (size_t i = 0; i < data->records.count && !r; i++) {
		const struct perf_record *record = &data->records.items[i];

		perf_data_step(&trail, record->data, record->size);
		if (!record->machine_pid)
			r = read_record(data, sideband, i);
	}
	if (r < 0)
		return r;
	sort_vec(&sideband->names, compare_names);
	settle_processes(sideband);
	complete_switches(sideband);
	return name_forks(sideband);
}

int sideband_build(const struct perf_data *data, struct sideband **ret)
{
	struct sideband *sideband = calloc(1, sizeof(*sideband));
	int r;

	if (!sideband)
		return -PTVM_NO_MEMORY;
	r = build(data, sideband);
	if (r < 0) {
		sideband_free(sideband);
		return r;
	}
	*ret = sideband;
	return 0;
}

void sideband_rest(const struct sideband *sideband)
{
	for (size_t i = 0; i < sideband->cpus.count; i++)
		spool_vec_rest(&sideband->cpus.items[i]);
}

void sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return;
	for (size_t i = 0; i < sideband->cpus.count; i++)
		spool_vec_free(&sideband->cpus.items[i]);
	vec_free(&sideband->cpus);
	vec_free(&sideband->names);
	vec_free(&sideband->processes);
	arena_free(&sideband->arena);
	free(sideband);
}

const struct switch_entry *sideband_switches(const struct sideband *sideband, int32_t cpu,
					     size_t *count)
{
	*count = 0;
	if (cpu < 0 || (size_t)cpu >= sideband->cpus.count)
		return NULL;
	*count = sideband->cpus.items[cpu].count;
	return sideband->cpus.items[cpu].items;
}

/* The first name behind those that a thread has had by a time. */
static size_t names_until(const struct sideband *sideband, int32_t tid, uint64_t time_ns)
{
	const struct thread_name *names = sideband->names.items;

	return search_sorted(sideband->names.count, i,
			     names[i].tid < tid ||
				     (names[i].tid == tid && names[i].time <= time_ns));
}

const char *sideband_comm(const struct sideband *sideband, int32_t tid, uint64_t time_ns)
{
	size_t next = names_until(sideband, tid, time_ns);

	if (!tid)
		return "swapper";
	if (!next || sideband->names.items[next - 1].tid != tid)
		return NULL;
	return sideband->names.items[next - 1].name;
}

uint64_t sideband_comm_until(const struct sideband *sideband, int32_t tid, uint64_t time_ns)
{
	size_t next = names_until(sideband, tid, time_ns);

	if (next == sideband->names.count || sideband->names.items[next].tid != tid)
		return UINT64_MAX;
	return sideband->names.items[next].time;
}

int32_t sideband_pid_of(const struct sideband *sideband, int32_t tid)
{
	size_t low = search_sorted(sideband->processes.count, i,
				   sideband->processes.items[i].tid <= tid);

	if (!low || sideband->processes.items[low - 1].tid != tid)
		return tid ? -1 : 0;
	return sideband->processes.items[low - 1].pid;
}

size_t switches_settled(const struct switch_entry *switches, size_t count, uint64_t time_ns)
{
	return search_sorted(count, i, switches[i].settled <= time_ns);
}

size_t switches_begun(const struct switch_entry *switches, size_t count, uint64_t time_ns)
{
	return search_sorted(count, i, switches[i].time <= time_ns);
}
