/* The calls that change files, as under correlate/file_io.h, of which one fails or is the last. */
#pragma once

#include <stdbool.h>

#include "correlate/file_io.h"

struct failing_io {
	struct file_io io;
	long left;
	bool dies;
};

/**
 * Calls that work so often and fail then, with ENOSPC and once.
 *
 * @calls  less than 0: none fails
 * @dies   whether the process ends there instead, with status 0
 */
struct failing_io failing_io_after(long calls, bool dies);
