#include "host/machine/cpu_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/machine/kernel_file.h"

/* The value in a line "key<tabs>: value" of the first CPU; NULL if there is none. */
static const char *value_of(const char *line, const char *key)
{
	size_t length = strlen(key);
	const char *colon = strchr(line, ':');

	if (!colon || strncmp(line, key, length) || (line[length] != '\t' && line[length] != ':'))
		return NULL;
	return colon[1] == ' ' ? colon + 2 : colon + 1;
}

static void read_line(const char *line, struct cpu_model *cpu)
{
	const char *value;

	if ((value = value_of(line, "vendor_id")))
		(void)snprintf(cpu->vendor, sizeof(cpu->vendor), "%s", value);
	else if ((value = value_of(line, "cpu family")))
		cpu->family = (unsigned)atoi(value);
	else if ((value = value_of(line, "model")))
		cpu->model = (unsigned)atoi(value);
	else if ((value = value_of(line, "stepping")))
		cpu->stepping = (unsigned)atoi(value);
	else if ((value = value_of(line, "model name")))
		(void)snprintf(cpu->name, sizeof(cpu->name), "%s", value);
	else if ((value = value_of(line, "flags")))
		cpu->is_virtual = strstr(value, " hypervisor") != NULL;
}

void cpu_model_read(const struct roots *roots, struct cpu_model *ret)
{
	char text[8192], *rest = text, *line;

	memset(ret, 0, sizeof(*ret));
	(void)strcpy(ret->name, "unknown");
	(void)kernel_file_read(text, sizeof(text), "%s/cpuinfo", roots->proc);
	while ((line = strsep(&rest, "\n")) && line[0])
		read_line(line, ret);
	ret->is_intel = !strcmp(ret->vendor, "GenuineIntel");
}

static bool is_one_of(unsigned model, const unsigned *models, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (models[i] == model)
			return true;
	return false;
}

bool cpu_model_stops_pt_in_vmx(const struct cpu_model *cpu)
{
	static const unsigned broadwell[] = { 0x3d, 0x47, 0x4f, 0x56 };

	return cpu->family == 6 && is_one_of(cpu->model, broadwell, 4);
}

bool cpu_model_has_skz84(const struct cpu_model *cpu)
{
	static const unsigned xeon_scalable[] = { 0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae };

	return (cpu->family == 6 && is_one_of(cpu->model, xeon_scalable, 7)) ||
	       (cpu->family == 19 && cpu->model == 1);
}
