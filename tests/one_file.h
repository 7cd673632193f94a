/* A fake tree, and the path of a file in it that a test makes. */
#pragma once

#include <stdio.h>

#include "tests/fake_tree.h"

struct one_file {
	struct fake_tree tree;
	char path[128]; /* of "file" */
};

static inline int one_file_set_up(void **state)
{
	static struct one_file one;

	fake_tree_init(&one.tree);
	(void)snprintf(one.path, sizeof(one.path), "%s/file", one.tree.path);
	*state = &one;
	return 0;
}

static inline int one_file_tear_down(void **state)
{
	struct one_file *one = *state;

	fake_tree_deinit(&one->tree);
	return 0;
}
