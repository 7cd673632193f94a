#include "host/machine/kvm_tracepoints.h"

#include <string.h>

#include "host/machine/kernel_file.h"

const char *const kvm_tracepoint_names[KVM_TRACEPOINT_COUNT] = {
	"kvm:kvm_entry",
	"kvm:kvm_exit",
	"kvm:kvm_write_tsc_offset",
};

static int read_id(const struct roots *roots, const char *name, int64_t *ret)
{
	if (!kernel_file_number(ret, "%s/kernel/tracing/events/kvm/%s/id", roots->sys, name))
		return 0;
	return kernel_file_number(ret, "%s/tracing/events/kvm/%s/id", roots->debugfs, name);
}

int kvm_tracepoints_read(const struct roots *roots, uint64_t ids[KVM_TRACEPOINT_COUNT],
			 struct ptvm_error *error)
{
	int64_t id;

	for (size_t i = 0; i < KVM_TRACEPOINT_COUNT; i++) {
		if (read_id(roots, strchr(kvm_tracepoint_names[i], ':') + 1, &id) || id < 0)
			return ptvm_fail(error, PTVM_NOT_FOUND,
					 "no tracepoint %s: load kvm_intel, mount tracefs on "
					 "/sys/kernel/tracing, and run as root",
					 kvm_tracepoint_names[i]);
		ids[i] = (uint64_t)id;
	}
	return 0;
}
