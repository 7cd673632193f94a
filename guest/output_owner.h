/* Who owns what is written. Tracing needs root, reading does not: files that are complete are given
 * to the user who called sudo. (perf leaves them to root, and then refuses to read them without
 * -f.) */
#pragma once

#include "decode/base/error.h"

/**
 * Give a directory of ours and the regular files in it, and in directories in it, to the user whom
 * SUDO_UID and SUDO_GID name. Links are left alone, and files that have other names elsewhere or
 * are not ours. Does nothing without sudo.
 *
 * Returns 0 or -PTVM_SYSTEM.
 */
int output_owner_give(const char *directory, struct ptvm_error *error);
