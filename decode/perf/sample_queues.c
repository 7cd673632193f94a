#include "decode/perf/sample_queues.h"

#include <stdlib.h>

#include "decode/base/error.h"
#include "decode/base/search.h"
#include "decode/base/sort.h"
#include "decode/base/spool.h"
#include "decode/base/vec.h"

enum { TIDS = 1 << 22 }; /* the kernel has no more (PID_MAX_LIMIT) */

/* A queue by the number of its CPU or thread. */
struct queue_key {
	int32_t number;
	size_t queue;
	/* of a CPU: its switches, and how many of them have been passed */
	const struct switch_entry *switches;
	size_t switch_count, passed;
};

struct queue_keys {
	struct queue_key *items;
	size_t count, room;
};

struct sorting {
	struct queue_keys cpus, threads;
	int32_t *last_cpus; /* of each thread, 1 more than the CPU where it ran last; 0 unknown */
};

SORT_BY_TWO(compare_keys, struct queue_key, number, queue)

static bool add_keys(struct sorting *sorting, const struct sideband *sideband,
		     const struct aux_queue *queues, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool is_cpu = queues[i].cpu >= 0;
		struct queue_key key = { is_cpu ? queues[i].cpu : queues[i].tid, i };

		if (is_cpu && sideband)
			key.switches = sideband_switches(sideband, key.number, &key.switch_count);
		if (!vec_push(is_cpu ? &sorting->cpus : &sorting->threads, key))
			return false;
	}
	sort_vec(&sorting->cpus, compare_keys);
	sort_vec(&sorting->threads, compare_keys);
	return true;
}

static struct queue_key *find(const struct queue_keys *keys, int32_t number)
{
	size_t i = search_sorted(keys->count, k, keys->items[k].number < number);

	return i < keys->count && keys->items[i].number == number ? &keys->items[i] : NULL;
}

/* Switches of a CPU are from records of this CPU, so that it is enough to look when one comes. */
static void pass_switches(struct sorting *sorting, struct queue_key *cpu, uint64_t until_ns)
{
	for (; cpu->passed < cpu->switch_count; cpu->passed++) {
		const struct switch_entry *entry = &cpu->switches[cpu->passed];

		if (entry->time > until_ns)
			break;
		if (entry->tid > 0 && entry->tid < TIDS)
			sorting->last_cpus[entry->tid] = cpu->number + 1;
	}
}

/* An idle CPU's thread, 0, is on all of them. */
static const struct queue_key *last_cpu_of(const struct sorting *sorting, int32_t tid)
{
	return tid > 0 && tid < TIDS ? find(&sorting->cpus, sorting->last_cpus[tid] - 1) : NULL;
}

static bool add_record(struct sorting *sorting, const struct perf_record *record, size_t number,
		       struct sample_queues *ret)
{
	struct queue_key *cpu = find(&sorting->cpus, record->cpu);
	const struct queue_key *key = cpu;

	if (cpu)
		pass_switches(sorting, cpu, record->time);
	if (record->type != PERF_SAMPLE)
		return true;
	if (!key)
		key = find(&sorting->threads, record->tid);
	if (!key && record->cpu < 0)
		key = last_cpu_of(sorting, record->tid);
	return !key || spool_push(&ret->lists[key->queue], number);
}

static bool add_records(struct sorting *sorting, const struct perf_data *data,
			struct sample_queues *ret)
{
	struct record_trail trail = perf_data_trail(data);
	bool is_added = true;

	for (size_t i = 0; i < data->records.count && is_added; i++) {
		const struct perf_record *record = &data->records.items[i];

		perf_data_step(&trail, record->data, record->size);
		if (!record->machine_pid) /* others are of a guest's own CPUs and threads */
			is_added = add_record(sorting, record, i, ret);
	}
	return is_added;
}

int sample_queues_build(const struct perf_data *data, const struct sideband *sideband,
			const struct aux_queue *queues, size_t count, struct sample_queues *ret)
{
	struct sorting sorting = { .last_cpus = calloc(TIDS, sizeof(int32_t)) };
	bool is_built;

	*ret = (struct sample_queues){ queues, calloc(count + 1, sizeof(*ret->lists)), count };
	is_built = sorting.last_cpus && ret->lists && add_keys(&sorting, sideband, queues, count) &&
		   add_records(&sorting, data, ret);
	vec_free(&sorting.cpus);
	vec_free(&sorting.threads);
	free(sorting.last_cpus);
	if (!is_built)
		return -PTVM_NO_MEMORY;
	sample_queues_rest(ret);
	return 0;
}

const struct sample_list *sample_queues_of(const struct sample_queues *samples,
					   const struct aux_queue *queue)
{
	return &samples->lists[queue - samples->queues];
}

void sample_queues_rest(const struct sample_queues *samples)
{
	for (size_t i = 0; i < samples->count; i++)
		spool_vec_rest(&samples->lists[i]);
}

void sample_queues_free(struct sample_queues *samples)
{
	for (size_t i = 0; samples->lists && i < samples->count; i++)
		spool_vec_free(&samples->lists[i]);
	free(samples->lists);
	*samples = (struct sample_queues){ 0 };
}
