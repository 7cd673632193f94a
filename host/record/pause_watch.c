#include "host/record/pause_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/monotonic.h"
#include "decode/base/quiet_thread.h"
#include "decode/base/vec.h"
#include "host/record/record_targets.h"
#include "host/vm/domain.h"

static void release(struct pause_watch *watch)
{
	(void)pthread_mutex_destroy(&watch->lock);
	(void)pthread_cond_destroy(&watch->changed);
	vec_free(&watch->domains);
	vec_free(&watch->pauses);
	free(watch->uri);
	free(watch);
}

/* One that is gone is neither paused nor running. */
void pause_watch_note(struct pause_watch *watch, struct watched_domain *domain,
		      const struct domain *found, int64_t at_ms)
{
	domain->still = found->is_running ? NULL : found->state;
	if (found->id < 0)
		return;
	if (domain->still && !domain->paused) {
		domain->paused = domain->still;
		domain->since_ms = at_ms;
	} else if (!domain->still && domain->paused) {
		/* Without memory for it, a pause is not reported. */
		(void)vec_push(&watch->pauses, (struct pause){ domain->name, domain->paused,
							       at_ms - domain->since_ms });
		domain->paused = NULL;
	}
}

static void look(struct pause_watch *watch, struct domain_link *link)
{
	struct domain found;

	for (size_t i = 0; i < watch->domains.count; i++) {
		struct watched_domain *domain = &watch->domains.items[i];

		if (domain_find(link, domain->uuid, &found, NULL))
			continue;
		(void)pthread_mutex_lock(&watch->lock);
		pause_watch_note(watch, domain, &found, monotonic_ms());
		(void)pthread_mutex_unlock(&watch->lock);
	}
}

/* Wait until it is time to look again; false: it is time to end. */
static bool wait(struct pause_watch *watch)
{
	const int64_t until = monotonic_ms() + PAUSE_WATCH_MS;
	bool is_ending;

	(void)pthread_mutex_lock(&watch->lock);
	while (!watch->is_ending && monotonic_ms() < until)
		monotonic_wait(&watch->changed, &watch->lock, until);
	is_ending = watch->is_ending;
	(void)pthread_mutex_unlock(&watch->lock);
	return !is_ending;
}

static void watch_domains(struct pause_watch *watch)
{
	struct domain_link *link;

	if (domain_link_open(watch->uri, true, &link, NULL))
		return;
	do
		look(watch, link);
	while (wait(watch));
	look(watch, link);
	domain_link_close(link);
}

static void *work(void *context)
{
	struct pause_watch *watch = context;
	bool is_left;

	watch_domains(watch);
	(void)pthread_mutex_lock(&watch->lock);
	watch->has_ended = true;
	is_left = watch->is_left;
	(void)pthread_cond_signal(&watch->changed);
	(void)pthread_mutex_unlock(&watch->lock);
	if (is_left)
		release(watch);
	return NULL;
}

/* False where memory is out. */
static bool add_domains(struct pause_watch *watch, const struct record_targets *targets)
{
	for (size_t i = 0; i < targets->machines.count; i++) {
		const struct trace_machine *machine = &targets->machines.items[i];
		struct watched_domain domain = { .still = NULL };

		if (!machine->has_domain)
			continue;
		(void)snprintf(domain.name, sizeof(domain.name), "%s", machine->name);
		(void)snprintf(domain.uuid, sizeof(domain.uuid), "%s", machine->uuid);
		if (!vec_push(&watch->domains, domain))
			return false;
	}
	return true;
}

struct pause_watch *pause_watch_start(const struct record_targets *targets, const char *uri)
{
	struct pause_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	(void)pthread_mutex_init(&watch->lock, NULL);
	(void)pthread_cond_init(&watch->changed, NULL);
	watch->uri = uri ? strdup(uri) : NULL;
	if ((!uri || watch->uri) && add_domains(watch, targets) && watch->domains.count &&
	    !quiet_thread_start(&watch->thread, work, watch))
		return watch;
	release(watch);
	return NULL;
}

bool pause_watch_next(struct pause_watch *watch, struct pause *ret)
{
	bool is_one;

	if (!watch)
		return false;
	(void)pthread_mutex_lock(&watch->lock);
	is_one = watch->pauses.count;
	if (is_one)
		*ret = watch->pauses.items[--watch->pauses.count];
	(void)pthread_mutex_unlock(&watch->lock);
	return is_one;
}

void pause_watch_end(struct pause_watch *watch, int64_t patience_ms)
{
	const int64_t until = monotonic_ms() + patience_ms;

	if (!watch)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->is_ending = true;
	(void)pthread_cond_signal(&watch->changed);
	while (!watch->has_ended && monotonic_ms() < until)
		monotonic_wait(&watch->changed, &watch->lock, until);
	(void)pthread_mutex_unlock(&watch->lock);
}

const char *pause_watch_still(struct pause_watch *watch, const char *uuid)
{
	const char *still = NULL;

	if (!watch)
		return NULL;
	(void)pthread_mutex_lock(&watch->lock);
	for (size_t i = 0; i < watch->domains.count; i++)
		if (!strcmp(watch->domains.items[i].uuid, uuid))
			still = watch->domains.items[i].still;
	(void)pthread_mutex_unlock(&watch->lock);
	return still;
}

void pause_watch_free(struct pause_watch *watch)
{
	pthread_t thread;
	bool has_ended;

	if (!watch)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	thread = watch->thread;
	has_ended = watch->has_ended;
	watch->is_left = !has_ended; /* the thread releases it then */
	(void)pthread_mutex_unlock(&watch->lock);
	if (has_ended) {
		(void)pthread_join(thread, NULL);
		release(watch);
	} else {
		(void)pthread_detach(thread);
	}
}
