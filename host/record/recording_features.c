#include "host/record/recording_features.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "decode/base/vec.h"
#include "decode/perf/perf_data.h"
#include "decode/perf/perf_feature.h"
#include "host/machine/build_ids.h"
#include "host/machine/cpu_list.h"
#include "host/machine/cpu_model.h"
#include "host/machine/kernel_file.h"
#include "host/record/tracing_data.h"

enum {
	STRING_ALIGN = 64,
	MAX_TRACEPOINTS = 16,
};

/* A section is made in memory; errors show when it is closed. */
struct section {
	FILE *file;
	char *data;
	size_t size;
};

static int section_open(struct section *section)
{
	section->file = open_memstream(&section->data, &section->size);
	return section->file ? 0 : -PTVM_NO_MEMORY;
}

static void add(struct recording_features *features, unsigned number, void *data, size_t size)
{
	assert(features->count < RECORDING_MAX_FEATURES);
	features->items[features->count++] = (struct recording_feature){ number, data, size };
}

static int section_add(struct section *section, unsigned number,
		       struct recording_features *features)
{
	int failed = ferror(section->file);

	if (fclose(section->file) || failed) {
		free(section->data);
		return -PTVM_NO_MEMORY;
	}
	add(features, number, section->data, section->size);
	return 0;
}

static void put_u32(struct section *section, uint32_t value)
{
	(void)fwrite(&value, sizeof(value), 1, section->file);
}

static void put_u64(struct section *section, uint64_t value)
{
	(void)fwrite(&value, sizeof(value), 1, section->file);
}

/* A length, and as many bytes: the text, a NUL, and NULs up to the next multiple of 64. */
static void put_string(struct section *section, const char *text)
{
	size_t length = strlen(text) + 1;
	size_t padded = (length + STRING_ALIGN - 1) / STRING_ALIGN * STRING_ALIGN;

	put_u32(section, (uint32_t)padded);
	(void)fwrite(text, 1, length, section->file);
	for (; length < padded; length++)
		(void)fputc(0, section->file);
}

static int add_string(struct recording_features *features, unsigned number, const char *text)
{
	struct section section;
	int r = section_open(&section);

	if (r)
		return r;
	put_string(&section, text);
	return section_add(&section, number, features);
}

/* perf takes no CPU whose number is not below the first of these, and numbers may have gaps. */
static void put_cpu_counts(struct section *section, const struct cpu_list *present,
			   const struct cpu_list *online)
{
	int highest = (int)sysconf(_SC_NPROCESSORS_CONF) - 1;

	if (present->count)
		highest = present->items[present->count - 1];
	put_u32(section, (uint32_t)highest + 1);
	put_u32(section,
		online->count ? (uint32_t)online->count : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static int add_cpu_count(struct recording_features *features, const struct roots *roots)
{
	struct cpu_list present = { 0 }, online = { 0 };
	struct section section;
	int r = section_open(&section);

	if (r)
		return r;
	(void)cpu_list_read(roots, "present", &present);
	(void)cpu_list_read(roots, "online", &online);
	put_cpu_counts(&section, &present, &online);
	vec_free(&present);
	vec_free(&online);
	return section_add(&section, PERF_FEATURE_NRCPUS, features);
}

static int add_cpu(struct recording_features *features, const struct roots *roots)
{
	struct cpu_model cpu;
	char text[100];
	int r;

	cpu_model_read(roots, &cpu);
	(void)snprintf(text, sizeof(text), "%s,%u,%u,%u", cpu.vendor, cpu.family, cpu.model,
		       cpu.stepping);
	r = add_string(features, PERF_FEATURE_CPUDESC, cpu.name);
	return r ? r : add_string(features, PERF_FEATURE_CPUID, text);
}

static int add_memory(struct recording_features *features, const struct roots *roots)
{
	char text[128];
	unsigned long long kib = 0;
	struct section section;
	int r = section_open(&section);

	if (r)
		return r;
	(void)kernel_file_read(text, sizeof(text), "%s/meminfo", roots->proc);
	(void)sscanf(text, "MemTotal: %llu", &kib);
	put_u64(&section, kib);
	return section_add(&section, PERF_FEATURE_TOTAL_MEM, features);
}

static int add_command_line(struct recording_features *features,
			    const struct recording_facts *facts)
{
	struct section section;
	int r = section_open(&section);

	if (r)
		return r;
	put_u32(&section, (uint32_t)facts->argc);
	for (int i = 0; i < facts->argc; i++)
		put_string(&section, facts->argv[i]);
	return section_add(&section, PERF_FEATURE_CMDLINE, features);
}

static int add_events(struct recording_features *features, const struct recording_facts *facts)
{
	const struct recording_event *event;
	struct section section;
	int r = section_open(&section);

	if (r)
		return r;
	put_u32(&section, (uint32_t)facts->event_count);
	put_u32(&section, RECORDING_ATTR_SIZE);
	for (event = facts->events; event < facts->events + facts->event_count; event++) {
		(void)fwrite(event->attr, 1, RECORDING_ATTR_SIZE, section.file);
		put_u32(&section, (uint32_t)event->id_count);
		put_string(&section, event->name);
		(void)fwrite(event->ids, sizeof(uint64_t), event->id_count, section.file);
	}
	return section_add(&section, PERF_FEATURE_EVENT_DESC, features);
}

/* Each PMU with a type, after a place for their count. Returns the count. */
static uint32_t put_pmus(struct section *section, const struct roots *roots)
{
	char path[PATH_MAX];
	struct dirent *entry;
	uint32_t count = 0;
	DIR *directory;
	int64_t type;

	(void)snprintf(path, sizeof(path), "%s/bus/event_source/devices", roots->sys);
	put_u32(section, 0);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' ||
		    kernel_file_number(&type, "%s/%s/type", path, entry->d_name))
			continue;
		put_u32(section, (uint32_t)type);
		put_string(section, entry->d_name);
		count++;
	}
	if (directory)
		(void)closedir(directory);
	return count;
}

static int add_pmus(struct recording_features *features, const struct roots *roots)
{
	struct section section;
	uint32_t count;
	int r = section_open(&section);

	if (r)
		return r;
	count = put_pmus(&section, roots);
	r = section_add(&section, PERF_FEATURE_PMU_MAPPINGS, features);
	if (!r)
		memcpy(section.data, &count, sizeof(count));
	return r;
}

static int add_times(struct recording_features *features, const struct recording_facts *facts)
{
	struct section section;
	int r = section_open(&section);

	if (r)
		return r;
	put_u64(&section, facts->first_ns);
	put_u64(&section, facts->last_ns);
	return section_add(&section, PERF_FEATURE_SAMPLE_TIME, features);
}

static int add_build_ids(struct recording_features *features, const struct build_ids *ids)
{
	void *data;
	size_t size;
	int r = build_ids_section(ids, &data, &size);

	if (!r)
		add(features, PERF_FEATURE_BUILD_ID, data, size);
	return r;
}

static bool is_tracepoint(const struct recording_event *event)
{
	uint32_t type;

	memcpy(&type, event->attr, sizeof(type));
	return type == PERF_EVENT_TRACEPOINT;
}

/* perf opens no file that has tracepoints without their formats. */
static int add_formats(struct recording_features *features, const struct roots *roots,
		       const struct recording_facts *facts)
{
	const char *names[MAX_TRACEPOINTS];
	size_t count = 0, size;
	char *data;
	int r;

	for (size_t i = 0; i < facts->event_count && count < MAX_TRACEPOINTS; i++)
		if (is_tracepoint(&facts->events[i]))
			names[count++] = facts->events[i].name;
	r = count ? tracing_data_make(roots, names, count, &data, &size) : -PTVM_NOT_FOUND;
	if (!r)
		add(features, PERF_FEATURE_TRACING_DATA, data, size);
	return r == -PTVM_NOT_FOUND ? 0 : r;
}

static int add_all(const struct roots *roots, const struct recording_facts *facts,
		   struct recording_features *features)
{
	struct utsname name;
	int r = add_formats(features, roots, facts);

	if (uname(&name))
		memset(&name, 0, sizeof(name));
	if (!r && facts->build_ids)
		r = add_build_ids(features, facts->build_ids);
	if (!r)
		r = add_string(features, PERF_FEATURE_HOSTNAME, name.nodename);
	if (!r)
		r = add_string(features, PERF_FEATURE_OSRELEASE, name.release);
	if (!r)
		r = add_string(features, PERF_FEATURE_VERSION, facts->version);
	if (!r)
		r = add_string(features, PERF_FEATURE_ARCH, name.machine);
	if (!r)
		r = add_cpu_count(features, roots);
	if (!r)
		r = add_cpu(features, roots);
	if (!r)
		r = add_memory(features, roots);
	if (!r)
		r = add_command_line(features, facts);
	if (!r)
		r = add_events(features, facts);
	if (!r)
		r = add_pmus(features, roots);
	if (!r && facts->last_ns)
		r = add_times(features, facts);
	return r;
}

int recording_features_make(const struct roots *roots, const struct recording_facts *facts,
			    struct recording_features *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	r = add_all(roots, facts, ret);
	if (r)
		recording_features_free(ret);
	return r;
}

/* A file without data would count as one that was never completed, and has no features: so it gets
 * a record. */
int recording_features_keep(const struct recording_features *features, const char *path,
			    struct ptvm_error *error)
{
	struct recording_out out = { .fd = -1 };
	int r = recording_out_create(&out, path, NULL, 0, error);

	if (!r)
		r = recording_out_round(&out, error);
	if (!r)
		r = recording_out_finish(&out, features->items, features->count, error);
	recording_out_close(&out);
	return r;
}

void recording_features_free(struct recording_features *features)
{
	for (size_t i = 0; i < features->count; i++)
		free((void *)(uintptr_t)features->items[i].data);
	features->count = 0;
}
