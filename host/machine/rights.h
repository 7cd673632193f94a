/* What this process may do: capabilities and limits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/machine/roots.h"

struct rights {
	uint64_t capabilities; /* a bit for each CAP_ in effect */
};

/** Read /proc/self/status; none where it cannot be read. */
void rights_read(const struct roots *roots, struct rights *ret);

/** Is capability `number` (CAP_SYSLOG, ...) in effect? CAP_SYS_ADMIN stands for CAP_PERFMON. */
bool rights_has(const struct rights *rights, unsigned number);

/** May we lock as much memory for buffers as we like? perf_event_paranoid allows it to all, too. */
bool rights_lock_freely(const struct rights *rights, const struct roots *roots);

/** The limit of locked memory (ulimit -l) in KiB; very large where there is none. */
int64_t rights_memlock_kib(const struct roots *roots);
