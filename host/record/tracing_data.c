#include "host/record/tracing_data.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "host/machine/kernel_file.h"

/* The layout is that of trace-cmd's files, of version 0.6, by way of perf
 * (tools/perf/util/trace-event-info.c): a head; the formats of pages and events in ftrace's own
 * buffers; the formats of tracepoints, by system; then texts that formats refer to. */
enum { MAX_FILE = 1 << 20, NAME_SIZE = 64 };

static const char head[] = "\x17\x08"
			   "Dtracing0.6";

struct section {
	const struct roots *roots;
	FILE *out;
	char *text; /* MAX_FILE bytes, of the file at hand */
};

static void put_u32(const struct section *section, uint32_t value)
{
	(void)fwrite(&value, sizeof(value), 1, section->out);
}

static void put_u64(const struct section *section, uint64_t value)
{
	(void)fwrite(&value, sizeof(value), 1, section->out);
}

static void put_string(const struct section *section, const char *text)
{
	(void)fwrite(text, 1, strlen(text) + 1, section->out);
}

/* A file of tracefs, with a newline at its end. Returns its size, 0 where it is not there. */
static size_t read_file(const struct section *section, const char *name)
{
	int size = kernel_file_read(section->text, MAX_FILE - 1, "%s/kernel/tracing/%s",
				    section->roots->sys, name);

	if (size <= 0)
		size = kernel_file_read(section->text, MAX_FILE - 1, "%s/tracing/%s",
					section->roots->debugfs, name);
	if (size <= 0)
		return 0;
	section->text[size] = '\n';
	return (size_t)size + 1;
}

static void put_file(const struct section *section, const char *name)
{
	const size_t size = read_file(section, name);

	put_u64(section, size);
	(void)fwrite(section->text, 1, size, section->out);
}

static void put_head(const struct section *section)
{
	(void)fwrite(head, 1, sizeof(head), section->out);
	(void)fputc(0, section->out); /* little endian */
	(void)fputc(sizeof(long), section->out);
	put_u32(section, (uint32_t)sysconf(_SC_PAGESIZE));
	put_string(section, "header_page");
	put_file(section, "events/header_page");
	put_string(section, "header_event");
	put_file(section, "events/header_event");
	put_u32(section, 0); /* of ftrace itself */
}

static size_t system_length(const char *name)
{
	return strcspn(name, ":");
}

/* How many of them are of the first one's system. */
static size_t count_system(const char *const *names, size_t count)
{
	const size_t length = system_length(names[0]) + 1;
	size_t same = 1;

	while (same < count && !strncmp(names[0], names[same], length))
		same++;
	return same;
}

static int put_format(const struct section *section, const char *name)
{
	const size_t length = system_length(name);
	char path[PATH_MAX];
	long before;

	(void)snprintf(path, sizeof(path), "events/%.*s/%s/format", (int)length, name,
		       name + length + 1);
	before = ftell(section->out);
	put_file(section, path);
	return ftell(section->out) - before > (long)sizeof(uint64_t) ? 0 : -PTVM_NOT_FOUND;
}

static int put_system(const struct section *section, const char *const *names, size_t count)
{
	char system[NAME_SIZE];
	int r = 0;

	(void)snprintf(system, sizeof(system), "%.*s", (int)system_length(names[0]), names[0]);
	put_string(section, system);
	put_u32(section, (uint32_t)count);
	for (size_t i = 0; i < count && !r; i++)
		r = put_format(section, names[i]);
	return r;
}

static int put_formats(const struct section *section, const char *const *names, size_t count)
{
	uint32_t systems = 0;
	int r = 0;

	for (size_t at = 0; at < count; at += count_system(names + at, count - at))
		systems++;
	put_u32(section, systems);
	for (size_t at = 0, same; at < count && !r; at += same) {
		same = count_system(names + at, count - at);
		r = put_system(section, names + at, same);
	}
	return r;
}

/* No symbols, which the kernel's copy has, and no names of threads, which records have. */
static void put_texts(const struct section *section)
{
	const size_t size = read_file(section, "printk_formats");

	put_u32(section, 0);
	put_u32(section, (uint32_t)size);
	(void)fwrite(section->text, 1, size, section->out);
	put_u64(section, 0);
}

int tracing_data_make(const struct roots *roots, const char *const *names, size_t count, char **ret,
		      size_t *ret_size)
{
	_cleanup_free_ char *text = malloc(MAX_FILE);
	_cleanup_free_ char *data = NULL;
	struct section section = { roots, NULL, text };
	int r, failed;

	section.out = text ? open_memstream(&data, ret_size) : NULL;
	if (!section.out)
		return -PTVM_NO_MEMORY;
	put_head(&section);
	r = put_formats(&section, names, count);
	put_texts(&section);
	failed = ferror(section.out);
	if (fclose(section.out) || failed)
		return -PTVM_NO_MEMORY;
	if (!r)
		*ret = take_ptr(data);
	return r;
}
