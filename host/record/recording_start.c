#include "host/record/recording_start.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/numbered.h"
#include "decode/perf/perf_record.h"
#include "guest/guest_modules.h"
#include "host/machine/kernel_file.h"
#include "host/machine/map_line.h"
#include "host/machine/module_files.h"

enum {
	INFO_INTEL_PT = 1,
	SWITCHES_OF_ALL_CPUS = 3,
	TRAILER_SIZE = 32, /* TID, TIME, CPU, IDENTIFIER; 0: before all else */
	MAX_RECORD = 8192,
	IDS_PER_RECORD = (MAX_RECORD - 16) / 48,
};

/* A record in the making, and where it goes; the first failure sticks. */
struct writer {
	const struct roots *roots;
	struct recording_out *out;
	struct ptvm_error *error;
	uint8_t data[MAX_RECORD];
	size_t size;
	int result;
};

static void begin(struct writer *w, uint32_t type, uint16_t misc)
{
	memset(w->data, 0, sizeof(w->data));
	memcpy(w->data, &type, sizeof(type));
	memcpy(w->data + 4, &misc, sizeof(misc));
	w->size = 8;
}

static void put(struct writer *w, const void *data, size_t size)
{
	assert(size <= MAX_RECORD - w->size);
	memcpy(w->data + w->size, data, size);
	w->size += size;
}

static void put_u64(struct writer *w, uint64_t value)
{
	put(w, &value, sizeof(value));
}

static void put_u32(struct writer *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

/* A NUL, and more of them up to a multiple of 8. */
static void put_text(struct writer *w, const char *text)
{
	put(w, text, strlen(text) + 1);
	w->size = (w->size + 7) & ~(size_t)7;
}

static void end(struct writer *w)
{
	const struct ring_bytes bytes = { .first = w->data, .first_size = w->size };
	const uint16_t size = (uint16_t)w->size;

	memcpy(w->data + 6, &size, sizeof(size));
	if (!w->result)
		w->result = recording_out_records(w->out, &bytes, w->error);
}

/* Records of kinds that the kernel writes, too, end with a trailer. */
static void end_with_trailer(struct writer *w)
{
	w->size += TRAILER_SIZE;
	end(w);
}

static void write_time(struct writer *w, const struct recording_start *start)
{
	const uint8_t flags[8] = { start->conv.valid, start->is_time_short };

	begin(w, PERF_TIME_CONV, 0);
	put_u64(w, start->conv.shift);
	put_u64(w, start->conv.mult);
	put_u64(w, start->conv.zero);
	put_u64(w, start->time_cycles);
	put_u64(w, start->time_mask);
	put(w, flags, sizeof(flags));
	end(w);
}

static void write_ids(struct writer *w, const struct start_id *ids, size_t count)
{
	begin(w, PERF_ID_INDEX, 0);
	put_u64(w, count);
	for (size_t i = 0; i < count; i++) {
		put_u64(w, ids[i].id);
		put_u64(w, ids[i].queue);
		put_u64(w, (uint64_t)(int64_t)ids[i].cpu);
		put_u64(w, (uint64_t)(int64_t)ids[i].tid);
	}
	for (size_t i = 0; i < count; i++) {
		put_u64(w, (uint64_t)ids[i].machine_pid);
		put_u64(w, (uint64_t)(int64_t)ids[i].vcpu);
	}
	end(w);
}

static void write_all_ids(struct writer *w, const struct recording_start *start)
{
	size_t count;

	for (size_t at = 0; at < start->id_count; at += count) {
		count = start->id_count - at;
		count = count < IDS_PER_RECORD ? count : IDS_PER_RECORD;
		write_ids(w, start->ids + at, count);
	}
}

/* The bits of attr.config that hold an option; 0 where the CPU does not have it. */
static uint64_t term_bits(const struct pt_pmu *pmu, const char *name)
{
	const struct pt_term *term = pt_pmu_term(pmu, name, strlen(name));

	return term ? pt_term_most(term) << term->low : 0;
}

static void write_info(struct writer *w, const struct recording_start *start)
{
	const struct pt_pmu *pmu = start->pmu;

	begin(w, PERF_AUXTRACE_INFO, 0);
	put_u64(w, INFO_INTEL_PT);
	put_u64(w, pmu->type);
	put_u64(w, start->conv.shift);
	put_u64(w, start->conv.mult);
	put_u64(w, start->conv.zero);
	put_u64(w, start->conv.valid);
	put_u64(w, term_bits(pmu, "tsc"));
	put_u64(w, term_bits(pmu, "noretcomp"));
	put_u64(w, start->is_per_thread ? 0 : SWITCHES_OF_ALL_CPUS);
	put_u64(w, start->is_snapshot);
	put_u64(w, !start->is_per_thread);
	put_u64(w, term_bits(pmu, "mtc"));
	put_u64(w, term_bits(pmu, "mtc_period"));
	put_u64(w, pmu->tsc_ratio);
	put_u64(w, pmu->crystal_ratio);
	put_u64(w, term_bits(pmu, "cyc"));
	put_u64(w, pmu->max_nonturbo_ratio);
	put_u64(w, start->filter ? strlen(start->filter) : 0);
	if (start->filter)
		put_text(w, start->filter);
	put_u64(w, pmu->caps[PT_CAP_EVENT_TRACE] != 0);
	end(w);
}

/* Whose kernel: the files that tell where it is, and how records name it. */
struct kernel {
	const char *directory; /* has kallsyms and modules */
	const char *name;      /* "[kernel.kallsyms]" */
	uint16_t misc;
	uint32_t pid;                        /* UINT32_MAX: the host's */
	struct module_files *files;          /* of the host */
	const struct guest_modules *modules; /* NULL: it is the host, or nothing is known */
};

static void write_kernel_map(struct writer *w, const struct kernel *kernel, uint64_t address,
			     uint64_t size, uint64_t offset, const char *name)
{
	begin(w, PERF_MMAP, kernel->misc);
	put_u32(w, kernel->pid);
	put_u32(w, 0);
	put_u64(w, address);
	put_u64(w, size);
	put_u64(w, offset);
	put_text(w, name);
	end_with_trailer(w);
}

static FILE *open_text(const char *directory, const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	return fopen(path, "re");
}

/* Where the kernel's text begins, and its data ends. */
struct kernel_bounds {
	uint64_t text, stext, etext, edata;
};

static void find_bounds(FILE *kallsyms, struct kernel_bounds *ret)
{
	char line[512], name[32];
	uint64_t address;

	memset(ret, 0, sizeof(*ret));
	while (!ret->edata && fgets(line, sizeof(line), kallsyms)) {
		if (sscanf(line, "%" SCNx64 " %*c %31s", &address, name) != 2)
			continue;
		if (!strcmp(name, "_text"))
			ret->text = address;
		else if (!strcmp(name, "_stext"))
			ret->stext = address;
		else if (!strcmp(name, "_etext"))
			ret->etext = address;
		else if (!strcmp(name, "_edata"))
			ret->edata = address;
	}
}

/* The name says by which symbol a reader finds out how far the kernel was moved. */
static void write_kernel(struct writer *w, const struct kernel *kernel)
{
	_cleanup_fclose_ FILE *kallsyms = open_text(kernel->directory, "kallsyms");
	struct kernel_bounds bounds;
	uint64_t start, stop;
	char name[64];

	if (!kallsyms)
		return;
	find_bounds(kallsyms, &bounds);
	start = bounds.text ? bounds.text : bounds.stext;
	stop = bounds.edata ? bounds.edata : bounds.etext;
	(void)snprintf(name, sizeof(name), "%s%s", kernel->name, bounds.text ? "_text" : "_stext");
	if (start && stop > start)
		write_kernel_map(w, kernel, start, stop - start, start, name);
}

/* A line of modules. A guest can write anything there. */
static bool read_module(const char *line, char name[64], uint64_t *ret_address, uint64_t *ret_size)
{
	return sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name, ret_size, ret_address) ==
		       3 &&
	       *ret_address && guest_modules_is_name(name, strlen(name));
}

static void name_module(const struct kernel *kernel, const char *name, char ret[PATH_MAX])
{
	const struct guest_module *module =
		kernel->modules ? guest_modules_find(kernel->modules, name) : NULL;

	if (module && module->path)
		(void)snprintf(ret, PATH_MAX, "%s", module->path);
	else
		module_files_name(kernel->files, name, ret);
}

static void write_modules(struct writer *w, const struct kernel *kernel)
{
	_cleanup_fclose_ FILE *modules = open_text(kernel->directory, "modules");
	_cleanup_free_ char *line = NULL;
	char name[64], path[PATH_MAX];
	uint64_t address, size;
	size_t room = 0;

	while (modules && getline(&line, &room, modules) > 0) {
		if (!read_module(line, name, &address, &size))
			continue;
		name_module(kernel, name, path);
		write_kernel_map(w, kernel, address, size, 0, path);
	}
}

static void write_host(struct writer *w)
{
	const struct kernel kernel = {
		w->roots->proc, "[kernel.kallsyms]",         PERF_CPUMODE_KERNEL,
		UINT32_MAX,     module_files_open(w->roots), NULL
	};

	write_kernel(w, &kernel);
	write_modules(w, &kernel);
	module_files_close(kernel.files);
}

static void write_guest(struct writer *w, const struct start_guest *guest)
{
	char name[48];
	const struct kernel kernel = { guest->directory,     name, PERF_CPUMODE_GUEST_KERNEL,
				       (uint32_t)guest->pid, NULL, guest->modules };

	(void)snprintf(name, sizeof(name), "[guest.kernel.kallsyms.%d]", guest->pid);
	write_modules(w, &kernel);
	write_kernel(w, &kernel);
}

static void write_comm(struct writer *w, pid_t pid, pid_t tid)
{
	char comm[32];

	if (kernel_file_read(comm, sizeof(comm), "%s/%d/task/%d/comm", w->roots->proc, pid, tid) <
	    0)
		return;
	comm[15] = 0;
	begin(w, PERF_COMM, 0);
	put_u32(w, (uint32_t)pid);
	put_u32(w, (uint32_t)tid);
	put_text(w, comm);
	end_with_trailer(w);
}

static void write_threads(struct writer *w, pid_t pid)
{
	char path[PATH_MAX];
	pid_t tid;

	/* The process first: readers know a thread by it. */
	write_comm(w, pid, pid);
	(void)snprintf(path, sizeof(path), "%s/%d/task", w->roots->proc, pid);
	_cleanup_numbered_ struct numbered_files tasks = numbered_files_open(path, "");

	while (numbered_files_next(&tasks, &tid))
		if (tid != pid)
			write_comm(w, pid, tid);
}

static void write_map(struct writer *w, pid_t pid, const struct map_line *map)
{
	begin(w, PERF_MMAP2, PERF_CPUMODE_USER);
	put_u32(w, (uint32_t)pid);
	put_u32(w, (uint32_t)pid);
	put_u64(w, map->from);
	put_u64(w, map->to - map->from);
	put_u64(w, map->offset);
	put_u32(w, map->major);
	put_u32(w, map->minor);
	put_u64(w, map->inode);
	put_u64(w, 0);
	put_u32(w, map->protection);
	put_u32(w, map->flags);
	put_text(w, map->name);
	end_with_trailer(w);
}

/* Code only: nothing runs elsewhere. */
static void write_maps(struct writer *w, pid_t pid)
{
	_cleanup_(map_lines_close) struct map_lines maps = { 0 };
	struct map_line map;

	(void)map_lines_open(w->roots, pid, &maps, NULL);
	while (map_lines_next(&maps, &map))
		if (map.protection & MAP_CAN_RUN)
			write_map(w, pid, &map);
}

static struct writer *writer_new(const struct roots *roots, struct recording_out *out,
				 struct ptvm_error *error)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->roots = roots;
	w->out = out;
	w->error = error;
	return w;
}

int recording_start_id(const struct start_id *id, struct recording_out *out,
		       struct ptvm_error *error)
{
	_cleanup_free_ struct writer *w = writer_new(NULL, out, error);

	if (!w)
		return -PTVM_NO_MEMORY;
	write_ids(w, id, 1);
	return w->result;
}

int recording_start_thread(const struct roots *roots, pid_t pid, pid_t tid,
			   struct recording_out *out, struct ptvm_error *error)
{
	_cleanup_free_ struct writer *w = writer_new(roots, out, error);

	if (!w)
		return -PTVM_NO_MEMORY;
	write_comm(w, pid, tid);
	return w->result;
}

int recording_start_write(const struct roots *roots, const struct recording_start *start,
			  struct recording_out *out, struct ptvm_error *error)
{
	_cleanup_free_ struct writer *w = writer_new(roots, out, error);

	if (!w)
		return -PTVM_NO_MEMORY;
	write_time(w, start);
	write_all_ids(w, start);
	write_info(w, start);
	write_host(w);
	for (size_t i = 0; i < start->guest_count; i++)
		write_guest(w, &start->guests[i]);
	for (size_t i = 0; i < start->pid_count; i++) {
		write_threads(w, start->pids[i]);
		write_maps(w, start->pids[i]);
	}
	begin(w, PERF_FINISHED_INIT, 0);
	end(w);
	return w->result;
}
