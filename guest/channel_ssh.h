/* Files of a guest, read with the user's ssh program, so that ~/.ssh/config works. */
#pragma once

#include "guest/channel.h"

/**
 * Read files with `ssh HOST dd`: one such program runs for as long as reads follow each other.
 *
 * @host  as ssh takes it, [user@]name; borrowed until channel_free()
 * @ret   release with channel_free()
 *
 * Returns 0, -PTVM_BAD_USAGE (no host) or -PTVM_NO_MEMORY. ssh is not called before a file is read;
 * its own messages go to standard error.
 */
int channel_ssh_new(const char *host, struct channel **ret, struct ptvm_error *error);
