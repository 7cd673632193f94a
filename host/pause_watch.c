#include "host/pause_watch.h"

#include "decode/base/monotonic.h"
#include "decode/base/vec.h"
#include "host/domain.h"
#include "host/record_targets.h"

void pause_watch_note(struct pause_watch *watch, struct watched_domain *domain, const char *state,
		      int64_t at_ms)
{
	if (state && !domain->state) {
		domain->state = state;
		domain->since_ms = at_ms;
	} else if (!state && domain->state) {
		/* Without memory for it, a pause is not reported. */
		(void)vec_push(&watch->pauses, (struct pause){ domain->name, domain->state,
							       at_ms - domain->since_ms });
		domain->state = NULL;
	}
}

/* Nothing is noted of a domain that is gone: it is neither paused nor running. */
static void look(struct pause_watch *watch, struct domain_link *link)
{
	struct domain found;

	for (size_t i = 0; i < watch->domains.count; i++) {
		struct watched_domain *domain = &watch->domains.items[i];

		if (domain_find(link, domain->uuid, &found, NULL) || found.id < 0)
			continue;
		(void)pthread_mutex_lock(&watch->lock);
		pause_watch_note(watch, domain, found.is_running ? NULL : found.state,
				 monotonic_ms());
		(void)pthread_mutex_unlock(&watch->lock);
	}
}

/* Wait until it is time to look again; false: it is time to end. */
static bool wait(struct pause_watch *watch)
{
	const int64_t until = monotonic_ms() + PAUSE_WATCH_MS;
	bool is_stopping;

	(void)pthread_mutex_lock(&watch->lock);
	while (!watch->is_stopping && monotonic_ms() < until)
		monotonic_wait(&watch->wake, &watch->lock, until);
	is_stopping = watch->is_stopping;
	(void)pthread_mutex_unlock(&watch->lock);
	return !is_stopping;
}

static void *work(void *context)
{
	struct pause_watch *watch = context;
	struct domain_link *link;

	if (domain_link_open(watch->uri, true, &link, NULL))
		return NULL;
	do {
		look(watch, link);
	} while (wait(watch));
	domain_link_close(link);
	return NULL;
}

void pause_watch_start(struct pause_watch *watch, const struct record_targets *targets,
		       const char *uri)
{
	watch->uri = uri;
	(void)pthread_mutex_init(&watch->lock, NULL);
	(void)pthread_cond_init(&watch->wake, NULL);
	for (size_t i = 0; i < targets->machines.count; i++) {
		const struct trace_machine *machine = &targets->machines.items[i];

		if (machine->has_domain)
			(void)vec_push(
				&watch->domains,
				(struct watched_domain){ machine->name, machine->uuid, NULL, 0 });
	}
	watch->is_started =
		watch->domains.count && !pthread_create(&watch->thread, NULL, work, watch);
}

bool pause_watch_next(struct pause_watch *watch, struct pause *ret)
{
	bool is_one;

	if (!watch->is_started)
		return false;
	(void)pthread_mutex_lock(&watch->lock);
	is_one = watch->pauses.count;
	if (is_one)
		*ret = watch->pauses.items[--watch->pauses.count];
	(void)pthread_mutex_unlock(&watch->lock);
	return is_one;
}

void pause_watch_stop(struct pause_watch *watch)
{
	if (watch->is_started) {
		(void)pthread_mutex_lock(&watch->lock);
		watch->is_stopping = true;
		(void)pthread_cond_signal(&watch->wake);
		(void)pthread_mutex_unlock(&watch->lock);
		(void)pthread_join(watch->thread, NULL);
	}
	vec_free(&watch->domains);
	vec_free(&watch->pauses);
	watch->is_started = false;
}
