#include "host/machine/kvm_debugfs.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/machine/kernel_file.h"

static bool is_machine_of(const struct roots *roots, pid_t pid, const char *name)
{
	int tid = atoi(name);

	return tid > 0 && strchr(name, '-') &&
	       kernel_file_is_readable("%s/%d/task/%d", roots->proc, pid, tid);
}

int kvm_debugfs_find(const struct roots *roots, pid_t pid, size_t nth, char *path, size_t size)
{
	int used = snprintf(path, size, "%s/kvm", roots->debugfs);
	struct dirent *entry;
	DIR *directory;

	directory = opendir(path);
	if (!directory)
		return -PTVM_NOT_FOUND;
	while ((entry = readdir(directory)))
		if (is_machine_of(roots, pid, entry->d_name) && !nth--)
			break;
	if (entry)
		(void)snprintf(path + used, size - (size_t)used, "/%s", entry->d_name);
	(void)closedir(directory);
	return entry ? 0 : -PTVM_NOT_FOUND;
}

int vcpu_clock_read(const char *path, unsigned index, struct vcpu_clock *ret)
{
	int64_t bits, ratio;
	int r;

	*ret = (struct vcpu_clock){ .ratio = 1 };
	r = kernel_file_number(&ret->offset, "%s/vcpu%u/tsc-offset", path, index);
	if (r)
		return r;
	/* Only a CPU that can scale has these. */
	r = kernel_file_number(&bits, "%s/vcpu%u/tsc-scaling-ratio-frac-bits", path, index);
	if (r == -PTVM_NOT_FOUND)
		return 0;
	if (!r)
		r = kernel_file_number(&ratio, "%s/vcpu%u/tsc-scaling-ratio", path, index);
	if (r)
		return r;
	if (bits < 0 || bits > 63 || ratio <= 0)
		return -PTVM_BAD_INPUT;
	ret->fraction_bits = (unsigned)bits;
	ret->ratio = (uint64_t)ratio;
	return 0;
}
