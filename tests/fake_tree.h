/* A directory that stands for /proc, /sys, debugfs, /dev and /lib/modules, made of a few files. */
#pragma once

#include <stddef.h>

#include "host/machine/roots.h"

struct fake_tree {
	char path[64]; /* .../ptvm-tree-PID-XXXXXX */
	char proc[80], sys[80], debugfs[80], dev[80], modules[80];
	struct roots roots; /* of these */
	struct {
		char **items;
		size_t count, room;
	} paths; /* see fake_tree_path() */
};

/**
 * Make an empty one in $TMPDIR, or /tmp; asserts that it works. Trees that a process left there
 * when it was killed are removed.
 */
void fake_tree_init(struct fake_tree *tree);

/** Remove it with all that is in it. */
void fake_tree_deinit(struct fake_tree *tree);

/** Make a file, as "proc/cpuinfo", and the directories above it; one that is there is replaced. */
void fake_tree_file(const struct fake_tree *tree, const char *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** The same for bytes, which may be NULs. */
void fake_tree_bytes(const struct fake_tree *tree, const void *data, size_t size, const char *path);

/** The path of a file in it, for as long as there is the tree. */
const char *fake_tree_path(struct fake_tree *tree, const char *name);

/** Make a symbolic link that says `target`. */
void fake_tree_link(const struct fake_tree *tree, const char *target, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** A process with a name, and with arguments each of which ends with a NUL. */
void fake_tree_process(const struct fake_tree *tree, int pid, const char *comm,
		       const char *arguments, size_t size);

/** A thread of it. */
void fake_tree_thread(const struct fake_tree *tree, int pid, int tid, const char *comm);

/** It ends; asserts that there was one of which nothing but its name is known. */
void fake_tree_thread_ends(const struct fake_tree *tree, int pid, int tid);
