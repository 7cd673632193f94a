/* The kernel's intel_pt PMU: what the CPU's Processor Trace can do, and where its options go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "host/machine/roots.h"

/* Of /sys/bus/event_source/devices/intel_pt/caps; CPUID leaf 0x14 says the same. */
enum pt_cap {
	PT_CAP_CR3_FILTERING,
	PT_CAP_PSB_CYC, /* cycle counts and PSB period */
	PT_CAP_IP_FILTERING,
	PT_CAP_MTC, /* the crystal's clock, which correlation needs */
	PT_CAP_PTWRITE,
	PT_CAP_POWER_EVENT_TRACE,
	PT_CAP_EVENT_TRACE,
	PT_CAP_TNT_DISABLE,
	PT_CAP_TOPA_OUTPUT,
	PT_CAP_TOPA_MULTIPLE_ENTRIES, /* without it one buffer is one contiguous region */
	PT_CAP_SINGLE_RANGE_OUTPUT,
	PT_CAP_NUM_ADDRESS_RANGES,
	PT_CAP_MTC_PERIODS, /* bit n: mtc_period=n is legal */
	PT_CAP_CYCLE_THRESHOLDS,
	PT_CAP_PSB_PERIODS,
	PT_CAP_COUNT,
};

/** An option of the event, as `mtc_period`, and the bits of attr.config that hold its value. */
struct pt_term {
	char name[24];
	unsigned low, high; /* 0 to 63, low <= high */
};

enum { PT_PMU_MAX_TERMS = 32 };

struct pt_pmu {
	uint32_t type; /* for attr.type */
	uint32_t caps[PT_CAP_COUNT];
	uint32_t max_nonturbo_ratio;       /* in units of the 100 MHz bus clock; 0: not known */
	uint32_t tsc_ratio, crystal_ratio; /* TSC : crystal; 0: not known */
	struct pt_term terms[PT_PMU_MAX_TERMS]; /* in the order of their bits */
	size_t term_count;
};

/** The name of a capability as sysfs has it. */
const char *pt_cap_name(enum pt_cap cap);

/** The term whose name is the first `length` bytes of `name`; NULL where the CPU has none. */
const struct pt_term *pt_pmu_term(const struct pt_pmu *pmu, const char *name, size_t length);

/** The largest value that its bits can hold. */
uint64_t pt_term_most(const struct pt_term *term);

/**
 * Read what sysfs says of intel_pt. What it does not say of a capability is 0.
 * Returns 0, -PTVM_NOT_FOUND where there is no such PMU, or -PTVM_BAD_INPUT.
 */
int pt_pmu_read(const struct roots *roots, struct pt_pmu *ret, struct ptvm_error *error);
