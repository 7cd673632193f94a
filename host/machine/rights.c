#include "host/machine/rights.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "host/machine/kernel_file.h"

enum { TEXT_SIZE = 8192, UNLIMITED_BITS = 50 };

void rights_read(const struct roots *roots, struct rights *ret)
{
	static const char key[] = "\nCapEff:";
	char text[TEXT_SIZE], *line;

	(void)kernel_file_read(text, sizeof(text), "%s/self/status", roots->proc);
	line = strstr(text, key);
	ret->capabilities = line ? strtoull(line + sizeof(key) - 1, NULL, 16) : 0;
}

bool rights_has(const struct rights *rights, unsigned number)
{
	if (number == CAP_PERFMON && rights_has(rights, CAP_SYS_ADMIN))
		return true;
	return rights->capabilities >> number & 1;
}

bool rights_lock_freely(const struct rights *rights, const struct roots *roots)
{
	int64_t level = 0;

	(void)kernel_file_number(&level, "%s/sys/kernel/perf_event_paranoid", roots->proc);
	return rights_has(rights, CAP_IPC_LOCK) || level < 0;
}

int64_t rights_memlock_kib(const struct roots *roots)
{
	static const char key[] = "Max locked memory";
	char text[TEXT_SIZE], *line, *end;
	int64_t bytes;

	(void)kernel_file_read(text, sizeof(text), "%s/self/limits", roots->proc);
	line = strstr(text, key);
	if (!line)
		return 0;
	line += sizeof(key) - 1;
	bytes = strtoll(line, &end, 10);
	/* "unlimited" is no number. */
	return end == line ? (int64_t)1 << UNLIMITED_BITS : bytes / 1024;
}
