/* A program called ssh that a test wrote, found before any other. */
#pragma once

#include "tests/fake_tree.h"

struct fake_ssh {
	char *path_before; /* what PATH was */
};

/** A script that runs a command as if the tree were the root of root@guest. */
extern const char fake_ssh_honest[];

/** Put it into the tree, and first in PATH. */
void fake_ssh_init(struct fake_ssh *ssh, const struct fake_tree *tree, const char *script);

/** Forget it; accepts zeroes. */
void fake_ssh_deinit(struct fake_ssh *ssh);
