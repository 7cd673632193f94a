/* Which files belong to which machine of a recording, and the order in which they are read. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/numbered.h"
#include "decode/code/machine_parts.h"

const char *machine_path(struct machine *machine, const char *directory, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", directory, name);

	if (n < 0 || n >= PATH_MAX || access(path, F_OK))
		return NULL;
	return arena_strndup(&machine->names, path, (size_t)n);
}

/* The file `name` beside another file. */
static const char *file_beside(struct machine *machine, const char *other, const char *name)
{
	const char *slash = strrchr(other, '/');
	char directory[PATH_MAX] = ".";

	if (slash && slash - other < PATH_MAX)
		*(char *)mempcpy(directory, other, (size_t)(slash - other)) = 0;
	return machine_path(machine, directory, name);
}

struct kernel_files machine_kernel_files(struct machine *machine, const char *directory)
{
	return (struct kernel_files){
		.kallsyms = machine_path(machine, directory, "kallsyms"),
		.kcore = machine_path(machine, directory, "kcore"),
		.modules = machine_path(machine, directory, "modules"),
	};
}

/* What the user named goes before what was found; a kcore belongs to the kallsyms beside it. */
static void prefer(struct machine *machine, struct kernel_files *files,
		   const struct kernel_files *asked)
{
	if (asked->kallsyms) {
		files->kallsyms = asked->kallsyms;
		files->kcore = file_beside(machine, asked->kallsyms, "kcore");
		files->modules = file_beside(machine, asked->kallsyms, "modules");
		files->later_kcore = files->later_kallsyms = NULL;
	}
	if (asked->vmlinux)
		files->vmlinux = asked->vmlinux;
	if (asked->modules)
		files->modules = asked->modules;
	if (asked->kcore)
		files->kcore = asked->kcore;
}

/* What a later copy has besides. `recording`: its directory, NULL none. */
static const char *later_file(struct machine *machine, const char *recording, const char *what)
{
	char name[60];

	if (machine->pid)
		(void)snprintf(name, sizeof(name), "data.ptvm-%s__%d", what, machine->pid);
	else
		(void)snprintf(name, sizeof(name), "data.ptvm-%s", what);
	return recording ? machine_path(machine, recording, name) : NULL;
}

/* A directory that root keeps to itself, as perf makes it, looks as if nothing were in it. */
static void note_denied(struct machine *machine, const char *directory)
{
	if (!access(directory, X_OK) || errno != EACCES)
		return;
	machine_note(machine, "%s: %s", directory, strerror(EACCES));
	machine->no_kernel_noted = true;
}

static int load(struct machine *machine, const char *recording, const char *directory,
		const struct kernel_files *asked, struct ptvm_error *error)
{
	struct kernel_files files = { 0 };

	if (directory) {
		files = machine_kernel_files(machine, directory);
		note_denied(machine, directory);
	}
	if (!files.kallsyms && !files.kcore && !asked->kallsyms && !asked->vmlinux)
		files = machine_cached_kernel(machine);
	files.later_kcore = later_file(machine, recording, "kcore");
	files.later_kallsyms = later_file(machine, recording, "kallsyms");
	prefer(machine, &files, asked);
	return machine_load_kernel(machine, &files, asked, error);
}

/* Make the machine of a guest, unless there are too many. */
static int add_guest(struct machines *machines, int32_t pid)
{
	struct machine *guest;
	int r = machines_guest_add(machines, pid, &guest);

	return r == -PTVM_END ? 0 : r;
}

/* Make a machine of every directory in `path` that is named by a pid. */
static int find_guests(struct machines *machines, const char *path, const char *prefix)
{
	_cleanup_numbered_ struct numbered_files directories = numbered_files_open(path, prefix);
	int32_t pid;
	int r = 0;

	while (!r && numbered_files_next(&directories, &pid))
		if (pid)
			r = add_guest(machines, pid);
	return r;
}

static int make_machines(struct machines *machines, const struct perf_data *data,
			 const struct machine_options *options)
{
	bool has_default = options->guest_kallsyms || options->guest_kcore ||
			   options->guest_modules || options->guest_vmlinux;

	machines->host = machine_new(0, false);
	if (!machines->host || (has_default && add_guest(machines, 0)))
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < data->id_index.count; i++) {
		int32_t pid = data->id_index.items[i].machine_pid;

		if (pid && add_guest(machines, pid))
			return -PTVM_NO_MEMORY;
	}
	if (data->directory && find_guests(machines, data->directory, "kcore_dir__"))
		return -PTVM_NO_MEMORY;
	if (options->guest_mount && find_guests(machines, options->guest_mount, ""))
		return -PTVM_NO_MEMORY;
	return 0;
}

static int load_host(struct machine *host, const struct perf_data *data,
		     const struct machine_options *options, struct ptvm_error *error)
{
	const struct kernel_files asked = {
		.kallsyms = options->kallsyms,
		.kcore = options->kcore,
		.vmlinux = options->vmlinux,
	};
	char directory[PATH_MAX];
	int n = data->directory
			? snprintf(directory, sizeof(directory), "%s/kcore_dir", data->directory)
			: -1;

	return load(host, data->directory, n > 0 && n < PATH_MAX ? directory : NULL, &asked, error);
}

/* Where a guest's files are: in the recording, else below the mount. */
static const char *guest_directory(struct machine *guest, const struct perf_data *data,
				   const struct machine_options *options, char ret[PATH_MAX])
{
	int n = -1;

	if (guest->pid && data->directory)
		n = snprintf(ret, PATH_MAX, "%s/kcore_dir__%d", data->directory, guest->pid);
	if (n > 0 && n < PATH_MAX && !access(ret, F_OK))
		return ret;
	n = -1;
	if (guest->pid && options->guest_mount)
		n = snprintf(ret, PATH_MAX, "%s/%d/proc", options->guest_mount, guest->pid);
	return n > 0 && n < PATH_MAX ? ret : NULL;
}

static int load_guest(struct machine *guest, const struct perf_data *data,
		      const struct machine_options *options, struct ptvm_error *error)
{
	struct kernel_files asked = { 0 };
	char directory[PATH_MAX];

	if (!guest->pid)
		asked = (struct kernel_files){
			.kallsyms = options->guest_kallsyms,
			.kcore = options->guest_kcore,
			.modules = options->guest_modules,
			.vmlinux = options->guest_vmlinux,
		};
	return load(guest, guest->pid ? data->directory : NULL,
		    guest_directory(guest, data, options, directory), &asked, error);
}

static int set_places(struct machine *host, const struct machine_options *options)
{
	const char *home = getenv("HOME"), *symfs = options->symfs ? options->symfs : "";
	char path[PATH_MAX];
	int n;

	n = options->build_id_dir ? snprintf(path, sizeof(path), "%s", options->build_id_dir)
				  : snprintf(path, sizeof(path), "%s/.debug", home ? home : "");
	host->places.keep_mangled = options->keep_mangled;
	host->places.symfs = arena_strndup(&host->names, symfs, strlen(symfs));
	if (n > 0 && n < PATH_MAX)
		host->places.build_id_dir = arena_strndup(&host->names, path, (size_t)n);
	return host->places.symfs ? 0 : -PTVM_NO_MEMORY;
}

/* What the user named must be there, also what no machine turns out to need: a slip of the pen is
 * told, not passed over. */
static int check_named(const struct machine_options *options, struct ptvm_error *error)
{
	const char *const files[] = { options->kallsyms,      options->vmlinux,
				      options->kcore,         options->guest_kallsyms,
				      options->guest_modules, options->guest_vmlinux,
				      options->guest_kcore };
	const char *const directories[] = { options->guest_mount, options->symfs };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i] && access(files[i], R_OK))
			return ptvm_fail_errno(error, "%s", files[i]);
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		DIR *directory = directories[i] && *directories[i] ? opendir(directories[i]) : NULL;

		if (directory)
			(void)closedir(directory);
		else if (directories[i] && *directories[i])
			return ptvm_fail_errno(error, "%s", directories[i]);
	}
	return 0;
}

int machines_load(const struct perf_data *data, const struct machine_options *options,
		  struct machines *ret, struct ptvm_error *error)
{
	int r;

	*ret = (struct machines){ 0 };
	r = check_named(options, error);
	if (r)
		return r;
	r = make_machines(ret, data, options);
	if (!r)
		r = set_places(ret->host, options);
	if (!r)
		r = machines_read_records(ret, data);
	if (r)
		return -PTVM_NO_MEMORY;
	r = load_host(ret->host, data, options, error);
	for (size_t i = 0; !r && i < ret->guest_count; i++)
		r = load_guest(ret->guests[i], data, options, error);
	return r;
}
