#include "host/vm/vm_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "host/vm/domain.h"
#include "host/vm/vm_process.h"

enum { PEEK_BYTES = 1 << 20 /* libvirt carries 4 MiB at once */ };

static int ask_roots(struct vm_memory *memory, struct ptvm_error *error)
{
	_cleanup_free_ char *text = NULL;
	int r = domain_monitor_ask(memory->link, memory->uuid, "info registers -a", &text, error);

	if (r)
		return r;
	memory->root_count = monitor_text_roots(text, memory->page_roots, GUEST_KERNEL_ROOTS);
	if (!memory->root_count)
		return ptvm_fail(error, PTVM_NOT_FOUND, "no vCPU of the guest is in 64-bit mode");
	return 0;
}

static int ask_ranges(struct vm_memory *memory, struct ptvm_error *error)
{
	_cleanup_free_ char *text = NULL;
	struct monitor_range found[VM_MEMORY_RANGES];
	int r = domain_monitor_ask(memory->link, memory->uuid, "info mtree -f", &text, error);

	if (r)
		return r;
	memory->count = monitor_text_ram(text, found, VM_MEMORY_RANGES);
	if (!memory->count)
		return ptvm_fail(error, PTVM_NOT_FOUND, "QEMU's monitor shows no RAM of the guest");
	for (size_t i = 0; i < memory->count; i++)
		memory->ranges[i].guest = found[i];
	return 0;
}

static int ask_addresses(struct vm_memory *memory, struct ptvm_error *error)
{
	char command[40];
	int r = 0;

	for (size_t i = 0; i < memory->count && !r; i++) {
		_cleanup_free_ char *text = NULL;

		(void)snprintf(command, sizeof(command), "gpa2hva 0x%" PRIx64,
			       memory->ranges[i].guest.first);
		r = domain_monitor_ask(memory->link, memory->uuid, command, &text, error);
		if (r)
			return r;
		memory->ranges[i].address = monitor_text_address(text);
		if (!memory->ranges[i].address)
			r = ptvm_fail(error, PTVM_NOT_FOUND,
				      "QEMU's monitor does not tell where guest memory is (%s)",
				      command);
	}
	return r;
}

static int open_file(const struct roots *roots, struct vm_memory *memory, struct ptvm_error *error)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%d/mem", roots->proc, memory->pid);
	memory->file = open(path, O_RDONLY | O_CLOEXEC);
	return memory->file >= 0 ? 0 : ptvm_fail_errno(error, "cannot read %s", path);
}

static int check_protection(const struct vm_process *vm, struct ptvm_error *error)
{
	return vm->protection == VM_OPEN
		       ? 0
		       : ptvm_fail(
				 error, PTVM_BAD_USAGE,
				 "the guest's memory is hidden from the host: copy with its help");
}

int vm_memory_open_process(const struct roots *roots, pid_t pid, struct vm_memory *ret,
			   struct ptvm_error *error)
{
	struct vm_process vm;
	int r;

	*ret = (struct vm_memory){ .pid = pid, .file = -1 };
	r = vm_process_read(roots, pid, &vm, error);
	if (!r)
		r = check_protection(&vm, error);
	return r ? r : open_file(roots, ret, error);
}

/* Where we may not read the process's memory, or it runs on another machine, libvirt does it. */
int vm_memory_open(const struct roots *roots, struct domain_link *link, const char *uuid,
		   struct vm_memory *ret, struct ptvm_error *error)
{
	struct vm_process vm;
	bool is_here = !vm_process_find(roots, uuid, &vm, NULL);
	int r;

	*ret = (struct vm_memory){ .link = link, .uuid = uuid, .file = -1 };
	if (is_here)
		ret->pid = vm.pid;
	r = is_here ? check_protection(&vm, error) : 0;
	if (!r)
		r = ask_roots(ret, error);
	if (!r)
		r = ask_ranges(ret, error);
	if (!r && is_here && !open_file(roots, ret, NULL))
		r = ask_addresses(ret, error);
	return r;
}

static int peek(const struct vm_memory *memory, uint64_t address, uint8_t *data, size_t size,
		struct ptvm_error *error)
{
	size_t part;
	int r = 0;

	for (; size && !r; address += part, data += part, size -= part) {
		part = size < PEEK_BYTES ? size : PEEK_BYTES;
		r = domain_memory_read(memory->link, memory->uuid, address, data, part, error);
	}
	return r;
}

static int read_process(const struct vm_memory *memory, uint64_t address, uint8_t *data,
			size_t size, struct ptvm_error *error)
{
	ssize_t n;

	for (; size; address += (size_t)n, data += n, size -= (size_t)n) {
		do {
			n = pread(memory->file, data, size, (off_t)address);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			return ptvm_fail_errno(error, "cannot read the memory of process %d",
					       memory->pid);
		if (!n)
			return ptvm_fail(error, PTVM_SYSTEM,
					 "the process that runs the guest has ended");
	}
	return 0;
}

static const struct vm_memory_range *find_range(const struct vm_memory *memory, uint64_t address)
{
	for (size_t i = 0; i < memory->count; i++)
		if (address >= memory->ranges[i].guest.first &&
		    address <= memory->ranges[i].guest.last)
			return &memory->ranges[i];
	return NULL;
}

static int no_range(const struct vm_memory *memory, uint64_t address, struct ptvm_error *error)
{
	if (address < memory->unknown_end && address > memory->ranges[memory->count - 1].guest.last)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "the guest uses memory that was plugged in (at %#" PRIx64
				 "), and where that is in process %d is not known",
				 address, memory->pid);
	return -PTVM_NOT_FOUND;
}

static int read_memory(void *context, uint64_t address, void *data, size_t size,
		       struct ptvm_error *error)
{
	const struct vm_memory *memory = context;
	const struct vm_memory_range *range;
	uint8_t *to = data;
	uint64_t left;
	size_t part;
	int r = 0;

	for (; size && !r; address += part, to += part, size -= part) {
		range = find_range(memory, address);
		if (!range)
			return no_range(memory, address, error);
		left = range->guest.last - address;
		part = size - 1 < left ? size : left + 1;
		r = memory->file < 0
			    ? peek(memory, address, to, part, error)
			    : read_process(memory, range->address + (address - range->guest.first),
					   to, part, error);
	}
	return r;
}

struct guest_memory vm_memory_reader(struct vm_memory *memory)
{
	return (struct guest_memory){ read_memory, memory };
}

void vm_memory_close(struct vm_memory *memory)
{
	if (memory->file >= 0)
		(void)close(memory->file);
	memory->file = -1;
}
