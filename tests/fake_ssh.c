#include "tests/fake_ssh.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

const char fake_ssh_honest[] =
	"#!/bin/sh\n"
	"[ \"$1 $2 $3\" = '-T -- root@guest' ] || exit 9\n"
	"cd \"$(dirname \"$0\")/..\" && eval \"$(echo \"$4\" | sed s,if=/,if=,)\"\n";

void fake_ssh_init(struct fake_ssh *ssh, const struct fake_tree *tree, const char *script)
{
	char path[PATH_MAX];

	fake_tree_file(tree, script, "bin/ssh");
	(void)snprintf(path, sizeof(path), "%s/bin/ssh", tree->path);
	assert_int_equal(chmod(path, 0700), 0);
	ssh->path_before = strdup(getenv("PATH"));
	(void)snprintf(path, sizeof(path), "%s/bin:%s", tree->path, ssh->path_before);
	assert_int_equal(setenv("PATH", path, 1), 0);
}

void fake_ssh_deinit(struct fake_ssh *ssh)
{
	if (ssh->path_before)
		(void)setenv("PATH", ssh->path_before, 1);
	free(ssh->path_before);
	ssh->path_before = NULL;
}
