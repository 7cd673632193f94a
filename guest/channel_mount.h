/* Files of a guest whose root is mounted here, as sshfs does it. */
#pragma once

#include "guest/channel.h"

/**
 * Read files below a directory. Symbolic links are not followed: the guest makes them, and they
 * would lead into the host; of what else there may be only regular files are read.
 *
 * @ret  release with channel_free()
 *
 * Returns 0, -PTVM_NOT_FOUND, -PTVM_SYSTEM or -PTVM_NO_MEMORY.
 */
int channel_mount_new(const char *directory, struct channel **ret, struct ptvm_error *error);
