#include "correlate/vmcs_collect.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/error.h"
#include "decode/base/monotonic.h"

enum { THREADS_MAX = 64, TICK_MS = 100 };

struct crew {
	const struct aux_queue *queues;
	const size_t *order; /* the largest first */
	size_t count, next;  /* next: atomic */
	const struct pt_config *config;
	struct vmcs_walks walks;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct vmcs_table *table;
	unsigned working;
	int result;
};

static void hand_in(struct crew *crew, const struct vmcs_table *table, int r)
{
	(void)pthread_mutex_lock(&crew->lock);
	if (!r)
		r = vmcs_table_merge(crew->table, table);
	if (r && !crew->result)
		crew->result = r;
	if (r)
		__atomic_store_n(&crew->walks.stop, true, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&crew->lock);
}

static void *work(void *context)
{
	struct crew *crew = context;
	size_t i;

	while ((i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->count) {
		size_t number = crew->order[i];
		struct vmcs_table table = { 0 };
		int r = vmcs_table_collect(&table, &crew->queues[number], number, crew->config,
					   &crew->walks);

		hand_in(crew, &table, r);
		vmcs_table_free(&table);
	}
	(void)pthread_mutex_lock(&crew->lock);
	crew->working--;
	(void)pthread_cond_signal(&crew->changed);
	(void)pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static void watch_over(struct crew *crew, const struct watch *watch)
{
	uint64_t total = 0;

	for (size_t i = 0; i < crew->count; i++)
		total += crew->queues[i].size;
	(void)pthread_mutex_lock(&crew->lock);
	while (crew->working) {
		monotonic_wait(&crew->changed, &crew->lock, monotonic_ms() + TICK_MS);
		if (!watch->go_on(watch->context,
				  (double)__atomic_load_n(&crew->walks.done, __ATOMIC_RELAXED) /
					  (double)(total ? total : 1)))
			__atomic_store_n(&crew->walks.stop, true, __ATOMIC_RELAXED);
	}
	(void)pthread_mutex_unlock(&crew->lock);
}

static int run(struct crew *crew, const struct watch *watch)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = processors > 0 && processors < THREADS_MAX ? (size_t)processors : THREADS_MAX;
	pthread_t threads[THREADS_MAX];
	size_t started = 0;

	(void)pthread_mutex_lock(&crew->lock);
	while (started < most && started < crew->count &&
	       !(errno = pthread_create(&threads[started], NULL, work, crew)))
		started++;
	crew->working = (unsigned)started;
	(void)pthread_mutex_unlock(&crew->lock);
	watch_over(crew, watch);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	return crew->count && !started ? -PTVM_SYSTEM : crew->result;
}

static int compare_sizes(const void *a, const void *b, void *context)
{
	const struct aux_queue *queues = context;
	uint64_t x = queues[*(const size_t *)a].size, y = queues[*(const size_t *)b].size;

	return (x < y) - (x > y);
}

int vmcs_collect(const struct aux_queue *queues, size_t count, const struct pt_config *config,
		 struct bytes mapping, const struct watch *watch, struct vmcs_table *ret)
{
	_cleanup_free_ size_t *order = calloc(count ? count : 1, sizeof(*order));
	struct crew crew = { .queues = queues,
			     .order = order,
			     .count = count,
			     .config = config,
			     .walks = { .mapping = mapping },
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER,
			     .table = ret };

	if (!order)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), compare_sizes, (void *)queues);
	return run(&crew, watch);
}
