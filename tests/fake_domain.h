/* A libvirt that knows what a test tells it: all of host/vm/domain.h, which a program that is
 * linked with this has from here, with libvirt or without. */
#pragma once

#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "decode/base/error.h"
#include "host/vm/domain.h"

struct fake_agent;
struct guest_memory;

struct fake_libvirt {
	/* Chosen by the test. */
	bool is_down;                /* nobody answers */
	struct domain domain;        /* the one that it knows, by its name or its UUID */
	const char *agent_info;      /* reply to guest-info; NULL: there is no agent */
	struct fake_agent *agent;    /* who answers the rest */
	const char *registers;       /* replies of the monitor; NULL: it does not answer */
	const char *memory_tree;     /* to "info mtree -f" */
	const char *address;         /* to "gpa2hva" */
	struct guest_memory *memory; /* what is read of the guest's */
	sem_t *hold;                 /* questions for domains wait for it; NULL: none does */

	/* What it was asked for. */
	const char *uri;
	bool is_read_only;       /* the last link */
	sigset_t held;           /* signals, by who opened it */
	unsigned opened, closed; /* atomic: others may ask in threads of theirs */
};

/** There is one; zeroes know no domain. */
extern struct fake_libvirt fake_libvirt;

/** As agents of all versions say it. */
#define FAKE_AGENT_INFO(file_commands, run_commands)                                               \
	"{\"return\": {\"version\": \"7.2.0\", \"supported_commands\": ["                          \
	"{\"name\": \"guest-file-open\", \"enabled\": " file_commands "},"                         \
	"{\"name\": \"guest-file-read\", \"enabled\": " file_commands "},"                         \
	"{\"name\": \"guest-file-seek\", \"enabled\": " file_commands "},"                         \
	"{\"name\": \"guest-file-close\", \"enabled\": " file_commands "},"                        \
	"{\"name\": \"guest-exec\", \"enabled\": " run_commands "},"                               \
	"{\"name\": \"guest-exec-status\", \"enabled\": " run_commands "}]}}"
