/* Notes when domains of libvirt that are recorded stand still: there is no trace of them then.
 * libvirtd may take its time to answer, or hang: a thread asks, which nobody has to wait for. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct domain;
struct record_targets;

enum { PAUSE_WATCH_MS = 200 /* between two questions: a shorter pause may be missed */ };

/** One that is over. */
struct pause {
	const char *name, *state; /* of the domain; what it was meanwhile, as "paused" */
	int64_t ms;               /* how long, about */
};

/** Belongs to its thread, too, which may outlive a recording: it has copies of all that it needs.
 */
struct pause_watch {
	char *uri; /* NULL: the default */
	struct {
		struct watched_domain {
			char name[256], uuid[40];
			const char *still;  /* what it is, where it does not run; else NULL */
			const char *paused; /* the same of a pause that is not over */
			int64_t since_ms;   /* when that began, of monotonic_ms() */
		} * items;
		size_t count, room;
	} domains;
	struct {
		struct pause *items;
		size_t count, room;
	} pauses; /* not taken yet; the last is taken first */
	pthread_t thread;
	pthread_mutex_t lock; /* of all that changes */
	pthread_cond_t changed;
	bool is_ending, has_ended, is_left;
};

/**
 * Start to watch. Returns NULL where there is no domain to watch, or it cannot be: nothing depends
 * on it. All else here accepts that.
 *
 * @uri  of libvirt, as domain_link_open()
 */
struct pause_watch *pause_watch_start(const struct record_targets *targets, const char *uri);

/** What the thread notes of a domain, in its own words. */
void pause_watch_note(struct pause_watch *watch, struct watched_domain *domain,
		      const struct domain *found, int64_t at_ms);

/** Take a pause that is over. False where there is none. */
bool pause_watch_next(struct pause_watch *watch, struct pause *ret);

/** Look once more, and no longer. If that takes more than `patience_ms`, what was seen before must
 * do. */
void pause_watch_end(struct pause_watch *watch, int64_t patience_ms);

/** What a domain was when last seen, as "paused"; NULL where it ran, or is not watched. */
const char *pause_watch_still(struct pause_watch *watch, const char *uuid);

/** After pause_watch_end(). A thread that still waits for libvirtd is left behind. */
void pause_watch_free(struct pause_watch *watch);
