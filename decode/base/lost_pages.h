/* Pages of mapped files that cannot be read, because the file was cut short after it was mapped or
 * because its disk fails. The kernel then sends SIGBUS, which would end the program. Instead a page
 * of zeroes takes the place of the lost one: damage like any other, which is reported at the end.
 */
#pragma once

#include "decode/base/bytes.h"
#include "decode/base/error.h"

/** Install the handler that survives lost pages, for all threads. Other faults, such as accesses to
 * memory that is not mapped, still end the program. */
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
