/* Which CPU this is, and its errata that matter to the trace of guests. */
#pragma once

#include <stdbool.h>

#include "host/machine/roots.h"

struct cpu_model {
	char name[64], vendor[16];
	unsigned family, model, stepping;
	bool is_intel;
	bool is_virtual; /* there is a hypervisor below us */
};

/** Read /proc/cpuinfo; zeroes where it does not say. */
void cpu_model_read(const struct roots *roots, struct cpu_model *ret);

/** Broadwell: PT is off while in VMX operation. */
bool cpu_model_stops_pt_in_vmx(const struct cpu_model *cpu);

/** Erratum SKZ84: TMA packets are damaged in guests with a TSC offset. */
bool cpu_model_has_skz84(const struct cpu_model *cpu);
