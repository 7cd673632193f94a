#include "host/record/trace_machine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "host/machine/kernel_file.h"

static int find_threads(const struct roots *roots, struct trace_machine *machine,
			struct ptvm_error *error)
{
	return vcpu_threads_find(roots, machine->vm.pid, &machine->vcpus, error);
}

/* A program that was replaced since it started may be of another version. */
static bool runs_what_is_installed(const struct roots *roots, pid_t pid)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX];
	const int length = kernel_file_link(path, sizeof(path), "%s/%d/exe", roots->proc, pid);
	const int before = length - (int)strlen(deleted);

	return length > 0 && (before < 0 || strcmp(path + before, deleted) != 0);
}

static int find_process(const struct roots *roots, const struct domain *domain,
			struct vm_process *ret, struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	int r = vm_process_find(roots, domain->uuid, ret, &why);

	if (r == -PTVM_NOT_FOUND)
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "domain '%s' is %s, but no process here has its UUID %s: record "
				 "on the host that runs it",
				 domain->name, domain->state, domain->uuid);
	return r ? ptvm_fail_as(error, &why, r) : 0;
}

/* `unreachable` gets why libvirt cannot be asked. */
static int find_domain(const struct roots *roots, const char *uri, const char *name,
		       struct trace_machine *machine, struct ptvm_error *unreachable,
		       struct ptvm_error *error)
{
	struct domain_link *link = NULL;
	struct domain domain;
	int r = domain_link_open(uri, true, &link, unreachable);

	if (!r)
		r = domain_find(link, name, &domain, NULL);
	if (!r)
		domain_link_versions(link, &machine->versions);
	domain_link_close(link);
	if (r)
		return r;
	machine->has_domain = true;
	(void)snprintf(machine->name, sizeof(machine->name), "%s", domain.name);
	(void)snprintf(machine->uuid, sizeof(machine->uuid), "%s", domain.uuid);
	if (domain.id < 0)
		return ptvm_fail(error, PTVM_NOT_FOUND, "domain '%s' is %s", domain.name,
				 domain.state);
	r = find_process(roots, &domain, &machine->vm, error);
	if (!r && !runs_what_is_installed(roots, machine->vm.pid))
		machine->versions.vmm[0] = '\0';
	return r;
}

/* A QEMU that was started by hand. */
static int find_by_command_line(const struct roots *roots, const char *name,
				const struct ptvm_error *unreachable, struct trace_machine *machine,
				struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	int r = vm_process_find(roots, name, &machine->vm, &why);

	if (r == -PTVM_NOT_FOUND && unreachable->code)
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "%s, and libvirt cannot be asked: %s; " DOMAIN_LINK_REMEDY,
				 why.message, unreachable->message);
	if (r == -PTVM_NOT_FOUND)
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "domain '%s' is not known to libvirt, and %s", name, why.message);
	if (r)
		return ptvm_fail_as(error, &why, r);
	(void)snprintf(machine->name, sizeof(machine->name), "%s", machine->vm.name);
	(void)snprintf(machine->uuid, sizeof(machine->uuid), "%s", machine->vm.uuid);
	return 0;
}

int trace_machine_of_domain(const struct roots *roots, const char *uri, const char *name,
			    struct trace_machine *ret, struct ptvm_error *error)
{
	struct ptvm_error unreachable = { 0 };
	int r = find_domain(roots, uri, name, ret, &unreachable, error);

	if (r && !ret->has_domain)
		r = find_by_command_line(roots, name, &unreachable, ret, error);
	return r ? r : find_threads(roots, ret, error);
}

int trace_machine_of_process(const struct roots *roots, pid_t pid, struct trace_machine *ret,
			     struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	int r = vm_process_read(roots, pid, &ret->vm, &why);

	if (r == -PTVM_BAD_INPUT)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: name its threads with -t",
				 why.message);
	if (r)
		return ptvm_fail_as(error, &why, r);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", ret->vm.name);
	(void)snprintf(ret->uuid, sizeof(ret->uuid), "%s", ret->vm.uuid);
	return find_threads(roots, ret, error);
}

static bool has_vcpu(const struct trace_machine *machine, int64_t index)
{
	for (size_t i = 0; i < machine->vcpus.count; i++)
		if (machine->vcpus.items[i].index == index)
			return true;
	return false;
}

int trace_machine_select(struct trace_machine *machine, const struct number_ranges *wanted,
			 struct ptvm_error *error)
{
	struct vcpu_threads *vcpus = &machine->vcpus;
	size_t kept = 0;

	for (unsigned i = 0; i < wanted->count; i++)
		if (!has_vcpu(machine, wanted->items[i].from) ||
		    !has_vcpu(machine, wanted->items[i].to))
			return ptvm_fail(error, PTVM_NOT_FOUND,
					 "machine '%s' has %zu vCPUs that are known, not all of "
					 "those wanted",
					 machine->name, vcpus->count);
	for (size_t i = 0; i < vcpus->count; i++)
		if (number_ranges_has(wanted, vcpus->items[i].index))
			vcpus->items[kept++] = vcpus->items[i];
	vcpus->count = kept;
	return 0;
}

void trace_machine_free(struct trace_machine *machine)
{
	vcpu_threads_free(&machine->vcpus);
}
