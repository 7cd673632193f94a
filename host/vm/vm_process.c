#include "host/vm/vm_process.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/numbered.h"
#include "decode/base/printable.h"
#include "host/machine/kernel_file.h"

/* Longer command lines are cut: libvirt's are a tenth of this, with -name at their beginning. */
enum { COMMAND_LINE_SIZE = 256 << 10 };

/* Words between NULs; `end` is where the last one's NUL is. */
struct words {
	const char *at, *end;
};

static const char *next_word(struct words *words)
{
	const char *word = words->at;

	if (word >= words->end)
		return NULL;
	words->at += strlen(word) + 1;
	return word;
}

/* The value of a key in QEMU's "first,key=value,key=value"; a comma in a value is doubled. */
static bool copy_value(const char *from, const char *key, char *to, size_t size)
{
	size_t used = 0;

	while (strncmp(from, key, strlen(key))) {
		from += strcspn(from, ",");
		if (!*from++)
			return false;
	}
	from += strlen(key);
	for (; *from && (*from != ',' || *++from == ',') && used < size - 1; from++)
		to[used++] = *from;
	to[used] = 0;
	return used > 0;
}

/* "guest=NAME,debug-threads=on", or just "NAME". */
static void read_name(const char *value, char *name, size_t size)
{
	if (!copy_value(value, "guest=", name, size) && !strstr(value, "guest="))
		(void)copy_value(value, "", name, size);
	printable(name, strlen(name));
}

static bool says(const char *value, const char *word)
{
	return strstr(value, word) != NULL;
}

static void read_option(const char *option, const char *value, struct vm_process *vm)
{
	if (!strcmp(option, "name"))
		read_name(value, vm->name, sizeof(vm->name));
	else if (!strcmp(option, "uuid"))
		(void)copy_value(value, "", vm->uuid, sizeof(vm->uuid));
	else if (!strcmp(option, "enable-kvm") ||
		 (!strcmp(option, "accel") && says(value, "kvm")) ||
		 (!strcmp(option, "machine") && says(value, "accel=kvm")))
		vm->accelerator = VM_KVM;
	else if ((!strcmp(option, "accel") && says(value, "tcg")) ||
		 (!strcmp(option, "machine") && says(value, "accel=tcg")))
		vm->accelerator = VM_TCG;
	else if (!strcmp(option, "object") && (says(value, "sev-guest") || says(value, "sev-snp")))
		vm->protection = VM_SEV;
	else if (!strcmp(option, "object") && says(value, "tdx-guest"))
		vm->protection = VM_TDX;
	else if (says(value, "org.qemu.guest_agent."))
		vm->has_agent = true;
}

/* Options as QEMU takes them, with one dash or two. */
static void read_options(struct words words, struct vm_process *vm)
{
	const char *word, *option;

	while ((word = next_word(&words))) {
		if (word[0] != '-')
			continue;
		option = word + (word[1] == '-' ? 2 : 1);
		read_option(option, words.at < words.end ? words.at : "", vm);
	}
}

static int read_command_line(const struct roots *roots, pid_t pid, struct vm_process *vm)
{
	_cleanup_free_ char *text = malloc(COMMAND_LINE_SIZE);
	int size;

	if (!text)
		return -PTVM_NO_MEMORY;
	size = kernel_file_read(text, COMMAND_LINE_SIZE, "%s/%d/cmdline", roots->proc, pid);
	if (size < 0)
		return size;
	read_options((struct words){ text, text + size }, vm);
	return 0;
}

/* What KVM gave it tells for sure, where we may see it; false where not. */
static bool read_fds(const struct roots *roots, pid_t pid, struct vm_process *vm)
{
	char path[PATH_MAX], link[128];
	struct dirent *entry;
	bool has_kvm = false;
	DIR *directory;

	(void)snprintf(path, sizeof(path), "%s/%d/fd", roots->proc, pid);
	directory = opendir(path);
	if (!directory)
		return false;
	while ((entry = readdir(directory))) {
		if (kernel_file_link(link, sizeof(link), "%s/%s", path, entry->d_name) < 0)
			continue;
		if (!strncmp(link, "anon_inode:kvm-vcpu", 19))
			vm->vcpu_fds++;
		has_kvm |= !strncmp(link, "anon_inode:kvm-v", 16);
		if (says(link, "kvm-gmem") && vm->protection == VM_OPEN)
			vm->protection = VM_GUEST_MEMFD;
	}
	(void)closedir(directory);
	if (has_kvm)
		vm->accelerator = VM_KVM;
	return true;
}

static bool is_qemu(const struct vm_process *vm)
{
	return !strncmp(vm->comm, "qemu", 4);
}

static int look(const struct roots *roots, pid_t pid, struct vm_process *vm)
{
	int r;

	memset(vm, 0, sizeof(*vm));
	vm->pid = pid;
	r = kernel_file_read(vm->comm, sizeof(vm->comm), "%s/%d/comm", roots->proc, pid);
	if (r >= 0)
		r = read_command_line(roots, pid, vm);
	return r < 0 ? r : 0;
}

/* QEMU emulates unless it is told otherwise, and where it did not get what it asked for. */
static void look_closer(const struct roots *roots, struct vm_process *vm)
{
	bool is_told = vm->accelerator != VM_ACCELERATOR_UNKNOWN;
	bool is_seen = read_fds(roots, vm->pid, vm);

	if (is_qemu(vm) && !vm->vcpu_fds && (is_seen || !is_told))
		vm->accelerator = VM_TCG;
}

int vm_process_read(const struct roots *roots, pid_t pid, struct vm_process *ret,
		    struct ptvm_error *error)
{
	int r = look(roots, pid, ret);

	if (r == -PTVM_NO_MEMORY)
		return r;
	if (r)
		return ptvm_fail(error, PTVM_NOT_FOUND, "there is no process %d", pid);
	look_closer(roots, ret);
	if (ret->accelerator == VM_ACCELERATOR_UNKNOWN)
		return ptvm_fail(error, PTVM_BAD_INPUT, "process %d runs no virtual machine", pid);
	return 0;
}

static bool has_name(const struct vm_process *vm, const char *name)
{
	return vm->name[0] && !strcmp(vm->name, name);
}

static bool has_uuid(const struct vm_process *vm, const char *uuid)
{
	return vm->uuid[0] && !strcasecmp(vm->uuid, uuid);
}

/* Anybody can start a process with any command line, and many programs have an option -name: how
 * sure is it that this one runs the machine? 0: it does not. */
static unsigned sureness(const struct roots *roots, struct vm_process *vm, const char *name)
{
	if (!has_name(vm, name) && !has_uuid(vm, name))
		return 0;
	look_closer(roots, vm);
	if (vm->vcpu_fds)
		return 2;
	return has_uuid(vm, name) || vm->accelerator != VM_ACCELERATOR_UNKNOWN;
}

int vm_process_find(const struct roots *roots, const char *name, struct vm_process *ret,
		    struct ptvm_error *error)
{
	_cleanup_numbered_ struct numbered_files processes = numbered_files_open(roots->proc, "");
	struct vm_process vm;
	unsigned sure, surest = 0;
	pid_t pid, rival = 0;

	memset(ret, 0, sizeof(*ret));
	if (!processes.directory)
		return ptvm_fail_errno(error, "%s", roots->proc);
	while (numbered_files_next(&processes, &pid)) {
		sure = look(roots, pid, &vm) ? 0 : sureness(roots, &vm, name);
		if (sure > surest) {
			*ret = vm;
			surest = sure;
			rival = 0;
		} else if (sure && sure == surest) {
			rival = pid;
		}
	}
	if (rival)
		return ptvm_fail(error, PTVM_INCONSISTENT,
				 "processes %d and %d both run a machine called '%s'", ret->pid,
				 rival, name);
	return surest ? 0
		      : ptvm_fail(error, PTVM_NOT_FOUND, "no process runs a machine called '%s'",
				  name);
}
