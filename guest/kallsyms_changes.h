/* Which symbols of modules a later copy of kallsyms has and an earlier one has not: those of
 * modules that were loaded meanwhile, or again elsewhere. */
#pragma once

#include "decode/base/error.h"

/**
 * Compare two copies and, if there is any such symbol, write their lines.
 *
 * @before, after  directories with a file kallsyms
 * @path           of the file to write, which must not be there
 *
 * Returns 0, -PTVM_BAD_INPUT, -PTVM_SYSTEM or -PTVM_NO_MEMORY.
 */
int kallsyms_changes_write(const char *before, const char *after, const char *path,
			   struct ptvm_error *error);
