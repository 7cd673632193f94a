#include "host/machine/pt_pmu.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "host/machine/kernel_file.h"

static const char pmu_path[] = "bus/event_source/devices/intel_pt";

static const char *const cap_names[PT_CAP_COUNT] = {
	[PT_CAP_CR3_FILTERING] = "cr3_filtering",
	[PT_CAP_PSB_CYC] = "psb_cyc",
	[PT_CAP_IP_FILTERING] = "ip_filtering",
	[PT_CAP_MTC] = "mtc",
	[PT_CAP_PTWRITE] = "ptwrite",
	[PT_CAP_POWER_EVENT_TRACE] = "power_event_trace",
	[PT_CAP_EVENT_TRACE] = "event_trace",
	[PT_CAP_TNT_DISABLE] = "tnt_disable",
	[PT_CAP_TOPA_OUTPUT] = "topa_output",
	[PT_CAP_TOPA_MULTIPLE_ENTRIES] = "topa_multiple_entries",
	[PT_CAP_SINGLE_RANGE_OUTPUT] = "single_range_output",
	[PT_CAP_NUM_ADDRESS_RANGES] = "num_address_ranges",
	[PT_CAP_MTC_PERIODS] = "mtc_periods",
	[PT_CAP_CYCLE_THRESHOLDS] = "cycle_thresholds",
	[PT_CAP_PSB_PERIODS] = "psb_periods",
};

const char *pt_cap_name(enum pt_cap cap)
{
	return cap_names[cap];
}

const struct pt_term *pt_pmu_term(const struct pt_pmu *pmu, const char *name, size_t length)
{
	for (size_t i = 0; i < pmu->term_count; i++)
		if (!strncmp(pmu->terms[i].name, name, length) && !pmu->terms[i].name[length])
			return &pmu->terms[i];
	return NULL;
}

uint64_t pt_term_most(const struct pt_term *term)
{
	return UINT64_MAX >> (63 - (term->high - term->low));
}

/* Capabilities are hexadecimal digits, without 0x. */
static uint32_t read_cap(const struct roots *roots, const char *name)
{
	char text[32];

	if (kernel_file_read(text, sizeof(text), "%s/%s/caps/%s", roots->sys, pmu_path, name) < 0)
		return 0;
	return (uint32_t)strtoul(text, NULL, 16);
}

/* Terms look like "config:10" or "config:14-17". */
static bool read_term(const char *text, struct pt_term *ret)
{
	int count = sscanf(text, "config:%2u-%2u", &ret->low, &ret->high);

	if (count == 1)
		ret->high = ret->low;
	return count > 0 && ret->low <= ret->high && ret->high < 64;
}

static int by_bit(const void *a, const void *b)
{
	const struct pt_term *left = a, *right = b;

	return left->low < right->low ? -1 : left->low > right->low;
}

static void read_terms(const struct roots *roots, struct pt_pmu *pmu)
{
	char path[PATH_MAX], text[64];
	struct pt_term term;
	struct dirent *entry;
	DIR *directory;

	(void)snprintf(path, sizeof(path), "%s/%s/format", roots->sys, pmu_path);
	directory = opendir(path);
	if (!directory)
		return;
	while (pmu->term_count < PT_PMU_MAX_TERMS && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(term.name))
			continue;
		if (kernel_file_read(text, sizeof(text), "%s/%s", path, entry->d_name) < 0 ||
		    !read_term(text, &term))
			continue;
		(void)stpcpy(term.name, entry->d_name);
		pmu->terms[pmu->term_count++] = term;
	}
	(void)closedir(directory);
	qsort(pmu->terms, pmu->term_count, sizeof(pmu->terms[0]), by_bit);
}

/* "294:2" is TSC ticks : crystal ticks. */
static void read_ratios(const struct roots *roots, struct pt_pmu *pmu)
{
	char text[32];
	int64_t ratio;

	if (!kernel_file_number(&ratio, "%s/%s/max_nonturbo_ratio", roots->sys, pmu_path))
		pmu->max_nonturbo_ratio = (uint32_t)ratio;
	if (kernel_file_read(text, sizeof(text), "%s/%s/tsc_art_ratio", roots->sys, pmu_path) < 0 ||
	    sscanf(text, "%9u:%9u", &pmu->tsc_ratio, &pmu->crystal_ratio) != 2)
		pmu->tsc_ratio = pmu->crystal_ratio = 0;
}

int pt_pmu_read(const struct roots *roots, struct pt_pmu *ret, struct ptvm_error *error)
{
	int64_t type;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = kernel_file_number(&type, "%s/%s/type", roots->sys, pmu_path);
	if (r == -PTVM_NOT_FOUND)
		return ptvm_fail(error, PTVM_NOT_FOUND, "the kernel has no intel_pt PMU");
	if (r || type < 0 || type > UINT32_MAX)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s/%s/type: not a number", roots->sys,
				 pmu_path);
	ret->type = (uint32_t)type;
	for (int cap = 0; cap < PT_CAP_COUNT; cap++)
		ret->caps[cap] = read_cap(roots, cap_names[cap]);
	read_terms(roots, ret);
	read_ratios(roots, ret);
	return 0;
}
