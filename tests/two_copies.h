/* Places in a fake tree for two copies of a kernel, and for what differs. */
#pragma once

#include <stdio.h>

#include "tests/fake_tree.h"

struct two_copies {
	struct fake_tree tree;
	char before[128], after[128], path[128];
};

static inline int two_copies_set_up(void **state)
{
	static struct two_copies copies;

	fake_tree_init(&copies.tree);
	(void)snprintf(copies.before, sizeof(copies.before), "%s/before", copies.tree.path);
	(void)snprintf(copies.after, sizeof(copies.after), "%s/after", copies.tree.path);
	(void)snprintf(copies.path, sizeof(copies.path), "%s/changes", copies.tree.path);
	*state = &copies;
	return 0;
}

static inline int two_copies_tear_down(void **state)
{
	struct two_copies *copies = *state;

	fake_tree_deinit(&copies->tree);
	return 0;
}
