/* Pages of mapped files that cannot be read, since the file was cut short after it was mapped, or
 * its disk fails. The kernel tells by SIGBUS, which would end the program: instead such a page is
 * one of zeroes from then on, which is damage like any other, and is told at the end. */
#pragma once

#include "decode/base/bytes.h"
#include "decode/base/error.h"

/** Survive them from now on, in all threads. Other faults of memory still end the program. */
void lost_pages_survive(void);

/**
 * Whether all of a file could be read so far.
 *
 * @file  mapped, wholly or a part of it
 * @path  its name, for the message
 *
 * Returns 0 or -PTVM_BAD_INPUT, with the offset in `file` of a lost page: the first one, unless
 * very many were lost.
 */
int lost_pages_check(struct bytes file, const char *path, struct ptvm_error *error);
