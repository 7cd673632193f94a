#include "decode/perf/sideband.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/search.h"
#include "decode/base/spool.h"
#include "decode/base/vec.h"
#include "decode/perf/perf_event.h"
#include "decode/perf/perf_record.h"
#include "decode/perf/perf_sample.h"
#include "decode/perf/thread_table.h"

/* The switches of one CPU. */
struct cpu_switches {
	struct switch_entry *items;
	size_t count, room;
};

struct sideband {
	struct {
		struct cpu_switches *items;
		size_t count, room;
	} cpus; /* by CPU number */
	struct thread_table threads;
	struct arena arena; /* names that are not in the recording as they are */
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
	int r = thread_table_add_process(&sideband->threads, thread.order, pid, thread.tid);

	return r < 0 ? r : thread_table_add_name(&sideband->threads, thread);
}

static int read_comm(struct sideband *sideband, const struct perf_record *record, size_t order)
{
	struct perf_comm comm;

	if (perf_comm_read(record, &comm) < 0)
		return 0;
	return add_thread(sideband, comm.pid,
			  (struct thread_name){ order, record->time, comm.name, .tid = comm.tid });
}

static int read_fork(struct sideband *sideband, const struct perf_record *record, size_t order)
{
	struct perf_task task;

	if (perf_task_read(record, &task) < 0)
		return 0;
	return add_thread(
		sideband, task.pid,
		(struct thread_name){ order, record->time, NULL, task.tid, task.parent_tid });
}

/* Names that the recorder gave threads before anything else, if it gave any. */
static int read_thread_map(struct sideband *sideband, const struct perf_record *record,
			   size_t order)
{
	char name[17];
	int32_t tid;

	for (uint64_t i = 0; !perf_thread_map_entry(record, i, &tid, name); i++) {
		struct thread_name entry = { .order = order, .tid = tid };

		if (!*name || tid <= 0)
			continue;
		entry.name = arena_strndup(&sideband->arena, name, strlen(name));
		if (!entry.name || thread_table_add_name(&sideband->threads, entry))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int read_record(const struct perf_data *data, struct sideband *sideband, size_t order)
{
	const struct perf_record *record = &data->records.items[order];
	int r = thread_table_add_process(&sideband->threads, order, record->pid, record->tid);

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
	if (!r)
		r = thread_table_settle(&sideband->threads);
	if (!r)
		complete_switches(sideband);
	return r;
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
	thread_table_free(&sideband->threads);
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

const char *sideband_comm(const struct sideband *sideband, int32_t tid, uint64_t time_ns)
{
	return thread_table_name(&sideband->threads, tid, time_ns);
}

const char *sideband_comm_by(const struct sideband *sideband, int32_t tid, size_t order)
{
	return thread_table_name_by(&sideband->threads, tid, order);
}

uint64_t sideband_comm_until(const struct sideband *sideband, int32_t tid, uint64_t time_ns)
{
	return thread_table_name_until(&sideband->threads, tid, time_ns);
}

int32_t sideband_pid_of(const struct sideband *sideband, int32_t tid)
{
	return thread_table_pid(&sideband->threads, tid);
}

size_t switches_settled(const struct switch_entry *switches, size_t count, uint64_t time_ns)
{
	return search_sorted(count, i, switches[i].settled <= time_ns);
}

size_t switches_begun(const struct switch_entry *switches, size_t count, uint64_t time_ns)
{
	return search_sorted(count, i, switches[i].time <= time_ns);
}
