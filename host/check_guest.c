#include "host/check_guest.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "host/machine/kvm_debugfs.h"
#include "host/vm/domain.h"
#include "host/vm/guest_agent.h"
#include "host/vm/vcpu_threads.h"
#include "host/vm/vm_process.h"

static void link_close(struct domain_link **link)
{
	domain_link_close(*link);
}

#define _cleanup_link_ _cleanup_(link_close)

void check_libvirt(const char *uri, struct check_list *list)
{
	_cleanup_link_ struct domain_link *link = NULL;
	struct ptvm_error error = { 0 };
	char text[256];

	if (!domain_link_open(uri, true, &link, &error) &&
	    !domain_link_text(link, text, sizeof(text), &error))
		check_add(list, "libvirt", CHECK_OK, NULL, "%s", text);
	else
		check_add(list, "libvirt", CHECK_WARNING, DOMAIN_LINK_REMEDY, "%s",
			  ptvm_error_text(&error));
}

static void check_domain_state(const struct domain *domain, struct check_list *list)
{
	if (domain->id < 0)
		check_add(list, "domain", CHECK_BLOCKS, "virsh start", "%s, %s, %s", domain->name,
			  domain->uuid, domain->state);
	else
		check_add(list, "domain", domain->is_running ? CHECK_OK : CHECK_WARNING,
			  "virsh resume: it runs nothing now", "%s, id %d, %s, %s", domain->name,
			  domain->id, domain->uuid, domain->state);
}

/* Ask libvirt for the domain, then the command lines of processes, for QEMUs that were started by
 * hand. False where none runs. */
static bool find_domain(const struct roots *roots, const struct check_guest *guest,
			struct vm_process *vm, struct check_list *list)
{
	_cleanup_link_ struct domain_link *link = NULL;
	struct ptvm_error error = { 0 };
	struct domain domain;

	if (!domain_link_open(guest->uri, true, &link, NULL) &&
	    !domain_find(link, guest->name, &domain, NULL)) {
		check_domain_state(&domain, list);
		return domain.id >= 0 && !vm_process_find(roots, domain.uuid, vm, NULL);
	}
	if (!vm_process_find(roots, guest->name, vm, &error)) {
		check_add(list, "domain", CHECK_OK, NULL, "%s, found without libvirt", vm->name);
		return true;
	}
	check_add(list, "domain", CHECK_BLOCKS,
		  "virsh list --all shows domains; or name its process (-p)",
		  "'%s' is not known to libvirt, and %s", guest->name, error.message);
	return false;
}

static void check_accelerator(const struct vm_process *vm, bool is_emulated,
			      struct check_list *list)
{
	static const char name[] = "accelerator";

	if (is_emulated || vm->accelerator == VM_TCG)
		check_add(list, name, CHECK_BLOCKS,
			  "run the guest with KVM (type='kvm'): Intel PT sees the emulator only",
			  "TCG, an emulator");
	else if (vm->accelerator == VM_KVM)
		check_add(list, name, CHECK_OK, NULL, "KVM");
	else
		check_add(list, name, CHECK_WARNING, "run as root to see", "unknown");
}

static void vcpus_text(const struct vcpu_threads *threads, char *text, size_t size)
{
	char ways[64];
	int used = 0;

	text[0] = 0;
	for (size_t i = 0; i < threads->count && (size_t)used < size; i++)
		used += snprintf(text + used, size - (size_t)used, " %u=%d (%s)",
				 threads->items[i].index, threads->items[i].tid,
				 vcpu_ways_text(threads->items[i].ways, ways, sizeof(ways)));
}

static unsigned objections(const struct vcpu_threads *threads)
{
	unsigned against = 0;

	for (size_t i = 0; i < threads->count; i++)
		against |= threads->items[i].against;
	return against;
}

static void check_vcpus(const struct vm_process *vm, const struct vcpu_threads *threads,
			struct check_list *list)
{
	static const char name[] = "vCPU threads";
	char text[300], ways[64];

	vcpus_text(threads, text, sizeof(text));
	if (!threads->count)
		check_add(list, name, CHECK_BLOCKS,
			  "run as root with debugfs mounted, or name threads (-t): QEMU names them "
			  "with debug-threads=on",
			  "none found");
	else if (objections(threads))
		check_add(list, name, CHECK_WARNING, "believe the first, or name threads (-t)",
			  "%zu:%s; %s disagrees", threads->count, text,
			  vcpu_ways_text(objections(threads), ways, sizeof(ways)));
	else if (threads->count < vm->vcpu_fds)
		check_add(list, name, CHECK_WARNING, "run as root with debugfs mounted",
			  "%zu of %u:%s", threads->count, vm->vcpu_fds, text);
	else
		check_add(list, name, CHECK_OK, NULL, "%zu:%s", threads->count, text);
}

static void check_clocks(const struct roots *roots, const struct vm_process *vm,
			 const struct vcpu_threads *threads, struct check_list *list)
{
	static const char name[] = "TSC offsets";
	char path[PATH_MAX], text[300] = "";
	struct vcpu_clock clock;
	int used = 0;

	if (kvm_debugfs_find(roots, vm->pid, 0, path, sizeof(path)))
		path[0] = 0;
	for (size_t i = 0; path[0] && i < threads->count && (size_t)used < sizeof(text); i++)
		if (!vcpu_clock_read(path, threads->items[i].index, &clock))
			used += snprintf(text + used, sizeof(text) - (size_t)used,
					 " %u=%" PRId64 "%s", threads->items[i].index, clock.offset,
					 vcpu_clock_is_unscaled(&clock) ? "" : " (scaled)");
	check_add(list, name, text[0] ? CHECK_OK : CHECK_WARNING,
		  "run as root with debugfs mounted; else they are inferred from the trace", "%s",
		  text[0] ? text + 1 : "unknown");
}

static void check_memory(const struct vm_process *vm, struct check_list *list)
{
	static const char *const words[] = {
		[VM_OPEN] = "open to the host",
		[VM_SEV] = "SEV",
		[VM_TDX] = "TDX",
		[VM_GUEST_MEMFD] = "guest_memfd",
	};

	check_add(list, "guest memory", vm->protection == VM_OPEN ? CHECK_OK : CHECK_WARNING,
		  "copy the guest's code with its help: from outside its memory cannot be read",
		  "%s", words[vm->protection]);
}

static void check_process(const struct roots *roots, const struct vm_process *vm,
			  struct check_list *list)
{
	struct vcpu_threads threads = { 0 };

	check_add(list, "process", CHECK_OK, NULL, "%d, %s", vm->pid, vm->comm);
	(void)vcpu_threads_find(roots, vm->pid, &threads, NULL);
	check_accelerator(vm, threads.is_emulated, list);
	check_vcpus(vm, &threads, list);
	if (vm->accelerator == VM_KVM)
		check_clocks(roots, vm, &threads, list);
	check_memory(vm, list);
	vcpu_threads_free(&threads);
}

static void check_guest_pointers(struct domain_link *link, const char *uuid,
				 struct check_list *list)
{
	static const char name[] = "guest kptr_restrict";
	char text[32];

	if (guest_agent_read(link, uuid, "/proc/sys/kernel/kptr_restrict", text, sizeof(text),
			     NULL) <= 0)
		check_add(list, name, CHECK_WARNING, "see that it is not 2 in the guest",
			  "unknown, the agent does not read it");
	else
		check_add(list, name, text[0] == '2' ? CHECK_WARNING : CHECK_OK,
			  "sysctl kernel.kptr_restrict=1 in the guest: it hides its symbols",
			  "%.*s", (int)strcspn(text, "\n"), text);
}

static void check_agent_info(struct domain_link *link, const char *uuid,
			     const struct agent_info *info, struct check_list *list)
{
	static const char *const words[2][2] = {
		{ "reads no files, runs no commands", "runs commands, reads no files" },
		{ "reads files, runs no commands", "reads files, runs commands" },
	};

	check_add(list, "guest agent",
		  info->can_read_files || info->can_run ? CHECK_OK : CHECK_WARNING,
		  "allow guest-file-* or guest-exec in its configuration in the guest, or copy "
		  "the guest's code another way",
		  "version %s, %s", info->version, words[info->can_read_files][info->can_run]);
	check_guest_pointers(link, uuid, list);
}

static void check_no_agent(const char *why, struct check_list *list)
{
	check_add(list, "guest agent", CHECK_WARNING,
		  "install and start qemu-guest-agent in the guest, or copy its code another way",
		  "%s", why);
	check_add(list, "guest kptr_restrict", CHECK_WARNING, "see that it is not 2 in the guest",
		  "unknown without the agent");
}

/* An agent has root's rights in the guest, so libvirt lets only those talk to it who may change
 * the domain. */
static void check_agent(const struct check_guest *guest, const struct vm_process *vm,
			struct check_list *list)
{
	_cleanup_link_ struct domain_link *link = NULL;
	struct ptvm_error error = { 0 };
	struct agent_info info;

	if (!vm->has_agent)
		check_no_agent("no channel to one", list);
	else if (domain_link_open(guest->uri, false, &link, &error) ||
		 guest_agent_info(link, vm->uuid, &info, &error))
		check_no_agent(ptvm_error_text(&error), list);
	else
		check_agent_info(link, vm->uuid, &info, list);
}

void check_guest(const struct roots *roots, const struct check_guest *guest,
		 struct check_list *list)
{
	struct ptvm_error error = { 0 };
	struct vm_process vm = { 0 };
	bool found;

	if (guest->name)
		found = find_domain(roots, guest, &vm, list);
	else
		found = !vm_process_read(roots, guest->pid, &vm, &error);
	if (!found) {
		check_add(list, "process", CHECK_BLOCKS,
			  "start the guest, or run as root to see it", "%s",
			  error.code ? error.message : "none found");
		return;
	}
	check_process(roots, &vm, list);
	check_agent(guest, &vm, list);
}
