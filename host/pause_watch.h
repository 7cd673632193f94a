/* Notes when domains of libvirt that are recorded stand still for a while: there is no trace of
 * them then. libvirtd may take its time to answer, so a thread of its own asks. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_targets;

enum { PAUSE_WATCH_MS = 200 /* between two questions: a shorter pause may be missed */ };

/** One that is over. */
struct pause {
	const char *name, *state; /* of the domain; what it was meanwhile, as "paused" */
	int64_t ms;               /* how long, about */
};

/** Zero-initialise before use. */
struct pause_watch {
	const char *uri;
	struct {
		struct watched_domain {
			const char *name, *uuid; /* of the machine */
			const char *state;       /* what it is, where it does not run; else NULL */
			int64_t since_ms;        /* of monotonic_ms() */
		} * items;
		size_t count, room;
	} domains;
	struct {
		struct pause *items;
		size_t count, room;
	} pauses; /* not taken yet; the last is taken first */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_started, is_stopping;
};

/**
 * Start it, where there is a domain to watch. That it cannot be is not told: nothing depends on it.
 *
 * @targets  its machines are borrowed until pause_watch_stop()
 * @uri      of libvirt, as domain_link_open(); borrowed, too
 */
void pause_watch_start(struct pause_watch *watch, const struct record_targets *targets,
		       const char *uri);

/** What the thread notes of a domain: `state` where it does not run, else NULL. */
void pause_watch_note(struct pause_watch *watch, struct watched_domain *domain, const char *state,
		      int64_t at_ms);

/** Take a pause that is over. False where there is none. */
bool pause_watch_next(struct pause_watch *watch, struct pause *ret);

/** End the thread; waits for an answer of libvirtd that is due. Accepts zeroes. */
void pause_watch_stop(struct pause_watch *watch);
