/* What the records of a recording say of machines: where kernels and modules are, what processes
 * mapped, how kernel text changed, which symbols came and went. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decode/base/plural.h"
#include "decode/base/vec.h"
#include "decode/code/bpf_programs.h"
#include "decode/code/machine_parts.h"
#include "decode/perf/perf_feature.h"
#include "decode/perf/perf_record.h"

enum { KSYMBOL_UNREGISTER = 1 };

struct reader {
	struct machines *machines;
	const struct perf_data *data;
	const struct perf_build_id **build_ids; /* of the host's files, sorted by name */
	size_t build_id_count;
	struct bpf_programs programs; /* of the host */
	size_t bad_records;
};

static uint16_t cpumode_of(const struct perf_record *record)
{
	return record->misc & PERF_MISC_CPUMODE;
}

/* The machine a kernel record is about: by the sample id, else by the record's mode and pid.
 * Returns 0, or as machines_guest_add(). */
static int kernel_of(struct reader *reader, const struct perf_record *record, int32_t pid,
		     struct machine **ret)
{
	if (record->machine_pid)
		return machines_guest_add(reader->machines, record->machine_pid, ret);
	if (cpumode_of(record) == PERF_CPUMODE_GUEST_KERNEL)
		return machines_guest_add(reader->machines, pid > 0 ? pid : 0, ret);
	*ret = reader->machines->host;
	return 0;
}

static bool is_kernel_map(const struct perf_record *record)
{
	uint16_t mode = cpumode_of(record);

	return mode == PERF_CPUMODE_KERNEL || mode == PERF_CPUMODE_GUEST_KERNEL;
}

/* perf's name of a module: "[kvm_intel]" for ".../kvm-intel.ko.xz". */
static char *module_name(struct arena *arena, const char *filename)
{
	const char *slash = strrchr(filename, '/'), *base = slash ? slash + 1 : filename;
	const char *suffix = strstr(base, ".ko");
	size_t size = suffix ? (size_t)(suffix - base) : strlen(base);
	char *name;

	if (filename[0] == '[')
		return arena_strndup(arena, filename, strlen(filename));
	name = arena_alloc(arena, size + 3);
	if (!name)
		return NULL;
	name[0] = '[';
	for (size_t i = 0; i < size; i++)
		name[i + 1] = base[i] == '-' ? '_' : base[i];
	name[size + 1] = ']';
	return name;
}

/* "[kernel.kallsyms]_text", "[guest.kernel.kallsyms.123]_text": what follows the bracket is the
 * symbol whose address the page offset is. */
static const char *reference_of(const char *filename)
{
	const char *bracket = strchr(filename, ']');

	if (strncmp(filename, "[kernel.kallsyms", 16) &&
	    strncmp(filename, "[guest.kernel.kallsyms", 22))
		return NULL;
	return bracket ? bracket + 1 : NULL;
}

static int read_kernel_map(struct reader *reader, const struct perf_record *record,
			   const struct perf_mmap *map)
{
	const char *reference = reference_of(map->filename), *name;
	struct machine *machine;
	int r = kernel_of(reader, record, map->pid, &machine);

	if (r)
		return r;
	name = reference ? machine->kernel_name : module_name(&machine->names, map->filename);
	if (!name)
		return -PTVM_NO_MEMORY;
	if (reference && *reference && map->page_offset && !machine->reference_name) {
		machine->reference_name = reference;
		machine->reference_address = map->page_offset;
	}
	if (!map->size || map->size > UINT64_MAX - map->start) {
		reader->bad_records++;
		return 0;
	}
	if (reference && machine == reader->machines->host && map->build_id.size)
		machine->kernel_id = map->build_id;
	return named_ranges_add(&machine->maps, map->start, map->start + map->size, record->time,
				name);
}

static int read_poke(struct reader *reader, const struct perf_record *record)
{
	struct perf_text_poke poke;
	struct machine *machine;
	int r = kernel_of(reader, record, record->pid, &machine);

	if (r)
		return r;
	if (perf_text_poke_read(record, &poke)) {
		reader->bad_records++;
		return 0;
	}
	return text_pokes_add(&machine->pokes, &poke, record->time);
}

static int read_ksymbol(struct reader *reader, const struct perf_record *record)
{
	struct perf_ksymbol symbol;
	struct machine *machine;
	int r = kernel_of(reader, record, record->pid, &machine);

	if (r)
		return r;
	if (perf_ksymbol_read(record, &symbol) || symbol.size > UINT64_MAX - symbol.address) {
		reader->bad_records++;
		return 0;
	}
	return named_ranges_add(&machine->ksymbols, symbol.address, symbol.address + symbol.size,
				record->time,
				symbol.flags & KSYMBOL_UNREGISTER ? NULL : symbol.name);
}

/* The code of a program comes and goes as if it were patched there. */
static int patch_bpf(struct reader *reader, const struct bpf_function *function, uint64_t time)
{
	struct perf_text_poke poke = { .address = function->address };
	uint32_t size = (uint32_t)function->code.size;

	if (function->state == BPF_LOADED) {
		poke.new_size = size;
		poke.new_bytes = function->code.data;
	} else {
		poke.old_size = size;
		poke.old_bytes = function->code.data;
	}
	return text_pokes_add(&reader->machines->host->pokes, &poke, time);
}

/* Each program is loaded once and unloaded once, whatever the records say. */
static int read_bpf_event(struct reader *reader, const struct perf_record *record)
{
	enum { LOAD = 1, UNLOAD = 2 };
	struct perf_bpf_event event;
	struct bpf_function *functions;
	size_t count;
	int r = 0;

	if (record->machine_pid)
		return 0;
	if (perf_bpf_event_read(record, &event)) {
		reader->bad_records++;
		return 0;
	}
	functions = bpf_programs_find(&reader->programs, event.id, &count);
	if (!functions || !((event.type == LOAD && functions->state == BPF_TO_COME) ||
			    (event.type == UNLOAD && functions->state == BPF_LOADED)))
		return 0;
	for (size_t i = 0; i < count && !r; i++) {
		functions[i].state = event.type == LOAD ? BPF_LOADED : BPF_GONE;
		r = patch_bpf(reader, &functions[i], record->time);
	}
	return r;
}

/* First pass: everything but the maps of processes, whose address spaces must be known before.
 * Returns -PTVM_END for a record of a guest that is one too many. */
static int read_first(struct reader *reader, const struct perf_record *record, uint64_t order)
{
	struct processes *processes = &reader->machines->host->processes;
	struct perf_mmap map;
	struct perf_task task;
	struct perf_comm comm;

	switch (record->type) {
	case PERF_MMAP:
	case PERF_MMAP2:
		if (perf_mmap_read(record, &map))
			reader->bad_records++;
		else if (is_kernel_map(record))
			return read_kernel_map(reader, record, &map);
		else if (!record->machine_pid)
			return processes_add(processes, map.pid);
		return 0;
	case PERF_FORK:
		if (perf_task_read(record, &task))
			reader->bad_records++;
		else if (!record->machine_pid && task.pid != task.parent_pid)
			/* perf marks so the forks it made up for processes that were there. */
			return processes_begin(processes, task.pid,
					       record->misc & PERF_MISC_EXEC ? -1 : task.parent_pid,
					       record->time, order);
		return 0;
	case PERF_COMM:
		if (perf_comm_read(record, &comm))
			reader->bad_records++;
		else if (!record->machine_pid && comm.is_exec)
			return processes_begin(processes, comm.pid, -1, record->time, order);
		return 0;
	case PERF_TEXT_POKE: return read_poke(reader, record);
	case PERF_KSYMBOL: return read_ksymbol(reader, record);
	case PERF_BPF_EVENT: return read_bpf_event(reader, record);
	default: return 0;
	}
}

static int read_all_first(struct reader *reader)
{
	struct record_trail trail = perf_data_trail(reader->data);
	int r = 0;

	for (size_t i = 0; i < reader->data->records.count && (!r || r == -PTVM_END); i++) {
		const struct perf_record *record = &reader->data->records.items[i];

		perf_data_step(&trail, record->data, record->size);
		r = read_first(reader, record, i + 1);
	}
	return r == -PTVM_END ? 0 : r;
}

static int read_programs(struct reader *reader)
{
	struct bytes section = reader->data->features.payloads[PERF_FEATURE_BPF_PROG_INFO];
	int r = section.size ? bpf_programs_read(section, &reader->programs) : 0;

	if (r == -PTVM_BAD_INPUT)
		machine_note(reader->machines->host,
			     "what the recording has of BPF programs is damaged");
	return r == -PTVM_NO_MEMORY ? r : 0;
}

static int compare_build_ids(const void *a, const void *b)
{
	const struct perf_build_id *const *left = a, *const *right = b;

	return strcmp((*left)->filename, (*right)->filename);
}

/* The recording's table of build ids, as far as it is of the host. */
static int read_build_ids(struct reader *reader)
{
	const struct perf_data *data = reader->data;

	reader->build_ids =
		reallocarray(NULL, data->build_ids.count + 1, sizeof(*reader->build_ids));
	if (!reader->build_ids)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < data->build_ids.count; i++) {
		const struct perf_build_id *id = &data->build_ids.items[i];

		if (id->pid > 0)
			continue;
		if (id->cpumode == PERF_CPUMODE_USER)
			reader->build_ids[reader->build_id_count++] = id;
		else if (id->cpumode == PERF_CPUMODE_KERNEL && reference_of(id->filename))
			reader->machines->host->kernel_id = id->id;
	}
	qsort(reader->build_ids, reader->build_id_count, sizeof(*reader->build_ids),
	      compare_build_ids);
	return 0;
}

/* The vDSO of a process that runs 32-bit code. perf's table and cache have but one vDSO, that of
 * perf itself, which is another. */
static bool is_vdso_of_32_bits(const struct perf_mmap *map)
{
	return !strcmp(map->filename, "[vdso]") && map->start <= UINT32_MAX;
}

/* A build id that the map's record does not have may be in the table. */
static void add_build_id(const struct reader *reader, struct perf_mmap *map)
{
	struct perf_build_id wanted = { .filename = map->filename };
	const struct perf_build_id *key = &wanted, **found;

	if (map->build_id.size || is_vdso_of_32_bits(map))
		return;
	found = bsearch(&key, reader->build_ids, reader->build_id_count, sizeof(*reader->build_ids),
			compare_build_ids);
	if (found)
		map->build_id = (*found)->id;
}

/* Memory that is no file's. */
static bool is_anonymous(const struct perf_mmap *map)
{
	static const char *const names[] = { "//anon", "/dev/zero", "/anon_hugepage",
					     "[stack", "/SYSV",     "[heap]" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(map->filename, names[i], strlen(names[i])))
			return true;
	return false;
}

/* perf's name for code made at run time, which /tmp/perf-PID.map describes; NULL: no memory. */
static const char *user_name(struct machine *host, const struct perf_mmap *map)
{
	char name[40];

	if (!is_anonymous(map) || !(map->protection & PROT_EXEC))
		return map->filename;
	(void)snprintf(name, sizeof(name), "/tmp/perf-%d.map", map->pid);
	return arena_strndup(&host->names, name, strlen(name));
}

static int read_user_map(struct reader *reader, const struct perf_record *record, uint64_t order)
{
	struct machine *host = reader->machines->host;
	struct process_map process_map;
	struct perf_mmap map;
	struct dso *dso;
	const char *name;

	if (perf_mmap_read(record, &map) || is_kernel_map(record) || record->machine_pid)
		return 0;
	add_build_id(reader, &map);
	name = user_name(host, &map);
	if (!name)
		return -PTVM_NO_MEMORY;
	dso = machine_dso(host, name, &map.build_id);
	if (!dso)
		return -PTVM_NO_MEMORY;
	dso->is_anonymous = is_anonymous(&map);
	process_map = (struct process_map){ map.start, map.page_offset, dso };
	return processes_map(&host->processes, map.pid, &process_map, map.size, record->time,
			     order);
}

static int finish(struct reader *reader, struct machine *machine)
{
	size_t pokes = 0, maps = 0, symbols = 0;

	if (text_pokes_finish(&machine->pokes, &pokes) ||
	    history_finish(&machine->maps.history, &maps) ||
	    history_finish(&machine->ksymbols.history, &symbols))
		return -PTVM_NO_MEMORY;
	if (pokes + maps + symbols)
		machine_note(machine,
			     "%zu text poke%s, %zu map%s and %zu symbol%s of %s left out: too much "
			     "overlap",
			     pokes, plural(pokes), maps, plural(maps), symbols, plural(symbols),
			     machine->kernel_name);
	machine->is_timeless = reader->data->is_timeless;
	return 0;
}

static int read_user_maps(struct reader *reader)
{
	struct record_trail trail = perf_data_trail(reader->data);
	int r = 0;

	for (size_t i = 0; i < reader->data->records.count && !r; i++) {
		const struct perf_record *record = &reader->data->records.items[i];

		perf_data_step(&trail, record->data, record->size);
		if (record->type == PERF_MMAP || record->type == PERF_MMAP2)
			r = read_user_map(reader, record, i + 1);
	}
	return r;
}

int machines_read_records(struct machines *machines, const struct perf_data *data)
{
	struct reader reader = { .machines = machines, .data = data };
	struct machine *host = machines->host;
	int r = read_programs(&reader);

	if (!r)
		r = read_build_ids(&reader);
	if (!r)
		r = read_all_first(&reader);
	if (!r)
		r = processes_link(&host->processes);
	if (!r)
		r = read_user_maps(&reader);
	free(reader.build_ids);
	bpf_programs_free(&reader.programs);
	if (!r)
		r = processes_finish(&host->processes);
	if (!r)
		r = finish(&reader, host);
	for (size_t i = 0; !r && i < machines->guest_count; i++)
		r = finish(&reader, machines->guests[i]);
	if (reader.bad_records)
		machine_note(host, "%zu damaged record%s of maps, forks, names or kernel text",
			     reader.bad_records, plural(reader.bad_records));
	if (host->processes.lost)
		machine_note(host, "%zu map%s of processes not known: too many forks or overlaps",
			     host->processes.lost, plural(host->processes.lost));
	return r;
}
