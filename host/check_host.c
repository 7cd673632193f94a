#include "host/check_host.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "decode/base/bytes.h"
#include "decode/base/cleanup.h"
#include "decode/base/plural.h"
#include "host/machine/cpu_model.h"
#include "host/machine/kernel_file.h"
#include "host/machine/pt_pmu.h"
#include "host/machine/rights.h"

enum {
	MSR_VMX_MISC = 0x485,
	VMX_MISC_PT = 1 << 14,             /* PT may run while in VMX operation */
	AUX_KIB_PER_CPU = 16 * 1024 + 512, /* that a recording takes for trace and records */
	LEAST_FREE_MIB = 1024,
};

static void check_cpu(const struct roots *roots, struct check_list *list)
{
	struct cpu_model cpu;
	const char *remedy = NULL;
	enum check_verdict verdict = CHECK_OK;

	cpu_model_read(roots, &cpu);
	if (!cpu.is_intel) {
		verdict = CHECK_BLOCKS;
		remedy = "Processor Trace is Intel's: record on an Intel CPU, Skylake or later";
	} else if (cpu_model_stops_pt_in_vmx(&cpu)) {
		verdict = CHECK_BLOCKS;
		remedy = "Broadwell has no trace while KVM runs a guest: record on a later CPU";
	} else if (cpu_model_has_skz84(&cpu)) {
		verdict = CHECK_WARNING;
		remedy =
			"erratum SKZ84, damaged TMA packets in guests: ptvm steps over them, other "
			"decoders may not";
	}
	check_add(list, "cpu", verdict, remedy, "%s, family %u model %u stepping %u%s", cpu.name,
		  cpu.family, cpu.model, cpu.stepping, cpu.is_virtual ? ", itself virtual" : "");
}

static void check_pmu_found(const struct pt_pmu *pmu, struct check_list *list)
{
	char caps[300] = "", *end = caps;

	for (int cap = 0; cap < PT_CAP_COUNT; cap++)
		if (pmu->caps[cap])
			end += snprintf(end, sizeof(caps) - (size_t)(end - caps), " %s=%x",
					pt_cap_name(cap), pmu->caps[cap]);
	check_add(list, "intel_pt", CHECK_OK, NULL, "PMU type %u, %zu option%s", pmu->type,
		  pmu->term_count, plural(pmu->term_count));
	if (!pmu->caps[PT_CAP_MTC])
		check_add(list, "intel_pt caps", CHECK_WARNING,
			  "without mtc a guest's clock cannot be inferred: its recorded offset is "
			  "used",
			  "no mtc;%s", caps);
	else if (!pmu->caps[PT_CAP_PSB_CYC])
		check_add(list, "intel_pt caps", CHECK_WARNING,
			  "without psb_cyc there are no cycle counts", "no psb_cyc;%s", caps);
	else
		check_add(list, "intel_pt caps", CHECK_OK, NULL, "%s", caps + 1);
}

static void check_pmu(const struct roots *roots, struct check_list *list)
{
	struct ptvm_error error = { 0 };
	struct pt_pmu pmu;

	if (!pt_pmu_read(roots, &pmu, &error)) {
		check_pmu_found(&pmu, list);
		return;
	}
	check_add(list, "intel_pt", CHECK_BLOCKS,
		  "record on a host whose CPU has Intel PT and whose firmware and hypervisor "
		  "leave it to the kernel",
		  "%s", error.message);
	check_add(list, "intel_pt caps", CHECK_WARNING, "known where there is intel_pt", "unknown");
}

/* May PT go on while KVM is in VMX operation? Root can ask the CPU itself. */
static void check_vmx(const struct roots *roots, struct check_list *list)
{
	static const char name[] = "VMX_MISC[14]";
	_cleanup_close_ int fd = -1;
	uint8_t value[8];
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/cpu/0/msr", roots->dev);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || pread(fd, value, sizeof(value), MSR_VMX_MISC) != sizeof(value))
		check_add(list, name, CHECK_WARNING,
			  "modprobe msr, as root, to know; Skylake and later have it", "unknown");
	else if (load_le(value, sizeof(value)) & VMX_MISC_PT)
		check_add(list, name, CHECK_OK, NULL, "set, trace goes on in guests");
	else
		check_add(list, name, CHECK_BLOCKS, "record on a CPU that traces in VMX operation",
			  "clear, trace stops while KVM is in use");
}

static void check_kvm(const struct roots *roots, struct check_list *list)
{
	static const char path[] = "%s/module/kvm_intel/parameters/pt_mode";
	int64_t mode;

	if (!kernel_file_is_readable("%s/module/kvm_intel", roots->sys)) {
		check_add(list, "kvm_intel", CHECK_BLOCKS, "modprobe kvm_intel", "not loaded");
		check_add(list, "pt_mode", CHECK_WARNING, "known where kvm_intel is loaded",
			  "unknown");
		return;
	}
	check_add(list, "kvm_intel", CHECK_OK, NULL, "loaded");
	/* Newer kernels have no such parameter, and mode 0 only. */
	if (kernel_file_number(&mode, path, roots->sys) || !mode)
		check_add(list, "pt_mode", CHECK_OK, NULL, "0, system");
	else
		check_add(list, "pt_mode", CHECK_BLOCKS,
			  "stop all guests; modprobe -r kvm_intel; modprobe kvm_intel pt_mode=0",
			  "%" PRId64 ", host-guest: the host sees nothing of guests", mode);
}

static void check_rights(const struct rights *rights, struct check_list *list)
{
	static const char remedy[] = "run as root";
	static const struct {
		const char *name, *without;
		unsigned number;
	} wanted[] = {
		{ "CAP_PERFMON", "trace of kernels", CAP_PERFMON },
		{ "CAP_SYSLOG", "kernel symbols", CAP_SYSLOG },
		{ "CAP_SYS_RAWIO", "kernel code", CAP_SYS_RAWIO },
		{ "CAP_SYS_PTRACE", "other users' guests", CAP_SYS_PTRACE },
	};
	char missing[200] = "", *end = missing;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!rights_has(rights, wanted[i].number))
			end += snprintf(end, sizeof(missing) - (size_t)(end - missing), "%s%s (%s)",
					end > missing ? ", " : "", wanted[i].name,
					wanted[i].without);
	if (missing[0])
		check_add(list, "capabilities", CHECK_WARNING, remedy, "missing: %s", missing);
	else
		check_add(list, "capabilities", CHECK_OK, NULL,
			  "CAP_PERFMON, CAP_SYSLOG, CAP_SYS_RAWIO, CAP_SYS_PTRACE");
}

static void check_paranoid(const struct roots *roots, const struct rights *rights,
			   struct check_list *list)
{
	static const char name[] = "perf_event_paranoid";
	int64_t level;

	if (kernel_file_number(&level, "%s/sys/kernel/perf_event_paranoid", roots->proc))
		check_add(list, name, CHECK_BLOCKS, "a kernel with CONFIG_PERF_EVENTS",
			  "not there: this kernel has no perf events");
	else if (rights_has(rights, CAP_PERFMON))
		check_add(list, name, CHECK_OK, NULL, "%" PRId64 ", of no effect with CAP_PERFMON",
			  level);
	else if (level > 0)
		check_add(list, name, CHECK_BLOCKS,
			  "run as root, or sysctl kernel.perf_event_paranoid=-1", "%" PRId64 ", %s",
			  level,
			  level > 1 ? "kernels are not traced for us"
				    : "what happens on whole CPUs is not for us");
	else if (!level)
		check_add(list, name, CHECK_WARNING,
			  "run as root, or sysctl kernel.perf_event_paranoid=-1",
			  "0, buffers are small");
	else
		check_add(list, name, CHECK_OK, NULL, "%" PRId64, level);
}

static void check_mlock(const struct roots *roots, const struct rights *rights,
			struct check_list *list)
{
	static const char name[] = "locked memory";
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t wanted_kib = (cpus > 0 ? cpus : 1) * AUX_KIB_PER_CPU;
	int64_t kib_per_cpu = 0, limit_kib;

	(void)kernel_file_number(&kib_per_cpu, "%s/sys/kernel/perf_event_mlock_kb", roots->proc);
	limit_kib = kib_per_cpu * (cpus > 0 ? cpus : 1) + rights_memlock_kib(roots);
	if (rights_lock_freely(rights, roots))
		check_add(list, name, CHECK_OK, NULL, "unlimited, %" PRId64 " MiB by default",
			  wanted_kib / 1024);
	else if (limit_kib >= wanted_kib)
		check_add(list, name, CHECK_OK, NULL, "enough for %" PRId64 " MiB",
			  wanted_kib / 1024);
	else
		check_add(list, name, CHECK_WARNING,
			  "run as root, raise ulimit -l or kernel.perf_event_mlock_kb, or record "
			  "with smaller buffers (-m)",
			  "%" PRId64 " MiB may be locked, %" PRId64 " MiB are wanted",
			  limit_kib / 1024, wanted_kib / 1024);
}

static void check_kcore(const struct roots *roots, struct check_list *list)
{
	if (kernel_file_is_readable("%s/kcore", roots->proc))
		check_add(list, "kcore", CHECK_OK, NULL, "%s/kcore is readable", roots->proc);
	else
		check_add(list, "kcore", CHECK_WARNING,
			  "run as root, on a kernel with CONFIG_PROC_KCORE and without lockdown; "
			  "else the host's kernel cannot be decoded",
			  "%s/kcore is not readable", roots->proc);
}

/*
 * The kernel shows zeroes to those who may not see addresses. But the first symbols of an x86
 * kernel before 6.15 are at zero for everybody: they are offsets in the data of a CPU.
 */
static bool has_addresses(const char *symbols)
{
	while (symbols) {
		symbols += strspn(symbols, "\n0");
		if (*symbols && *symbols != ' ')
			return true;
		symbols = strchr(symbols, '\n');
	}
	return false;
}

static void check_symbols(const struct roots *roots, struct check_list *list)
{
	int64_t restricted = -1;
	char text[4096];
	int length;

	(void)kernel_file_number(&restricted, "%s/sys/kernel/kptr_restrict", roots->proc);
	length = kernel_file_read(text, sizeof(text), "%s/kallsyms", roots->proc);
	if (length > 0 && has_addresses(text))
		check_add(list, "kptr_restrict", CHECK_OK, NULL,
			  "%" PRId64 ", kernel symbols have addresses", restricted);
	else
		check_add(list, "kptr_restrict", CHECK_WARNING,
			  "run as root with sysctl kernel.kptr_restrict=1 or 0; else the host's "
			  "kernel has no symbols",
			  "%" PRId64 ", %s", restricted,
			  length > 0 ? "kernel symbols have no addresses"
				     : "there are no kernel symbols");
}

static void check_lockdown(const struct roots *roots, struct check_list *list)
{
	char text[128];

	if (kernel_file_read(text, sizeof(text), "%s/kernel/security/lockdown", roots->sys) < 0)
		check_add(list, "lockdown", CHECK_OK, NULL, "none");
	else if (strstr(text, "[integrity]"))
		check_add(list, "lockdown", CHECK_WARNING,
			  "boot without lockdown: debugfs is closed, so that TSC offsets must be "
			  "inferred",
			  "integrity");
	else if (strstr(text, "[confidentiality]"))
		check_add(list, "lockdown", CHECK_WARNING,
			  "boot without lockdown: kcore, debugfs and tracefs are closed",
			  "confidentiality");
	else
		check_add(list, "lockdown", CHECK_OK, NULL, "none");
}

static void check_debugfs(const struct roots *roots, struct check_list *list)
{
	if (kernel_file_is_readable("%s/kvm", roots->debugfs))
		check_add(list, "debugfs", CHECK_OK, NULL, "%s/kvm tells TSC offsets",
			  roots->debugfs);
	else
		check_add(list, "debugfs", CHECK_WARNING,
			  "mount -t debugfs none /sys/kernel/debug, as root with KVM loaded; else "
			  "TSC offsets are inferred",
			  "no %s/kvm", roots->debugfs);
}

static void check_tracefs(const struct roots *roots, struct check_list *list)
{
	if (kernel_file_is_readable("%s/kernel/tracing/events/kvm", roots->sys) ||
	    kernel_file_is_readable("%s/tracing/events/kvm", roots->debugfs))
		check_add(list, "tracefs", CHECK_OK, NULL, "tracepoints kvm:*");
	else
		check_add(
			list, "tracefs", CHECK_WARNING,
			"mount -t tracefs none /sys/kernel/tracing, as root with KVM loaded; else "
			"reasons of exits are not recorded",
			"no tracepoints kvm:*");
}

static void check_disk(const char *directory, struct check_list *list)
{
	struct statvfs fs;
	uint64_t free_mib;

	if (statvfs(directory, &fs)) {
		check_add(list, "disk space", CHECK_WARNING, "record elsewhere (-o)",
			  "unknown in %s", directory);
		return;
	}
	free_mib = (uint64_t)fs.f_bavail * fs.f_frsize >> 20;
	check_add(list, "disk space", free_mib < LEAST_FREE_MIB ? CHECK_WARNING : CHECK_OK,
		  "make room, or record elsewhere (-o): a busy CPU makes some 100 MiB a second",
		  "%" PRIu64 " MiB in %s", free_mib, directory);
}

void check_host(const struct roots *roots, const char *directory, struct check_list *list)
{
	struct rights rights;

	rights_read(roots, &rights);
	check_cpu(roots, list);
	check_pmu(roots, list);
	check_vmx(roots, list);
	check_kvm(roots, list);
	check_rights(&rights, list);
	check_paranoid(roots, &rights, list);
	check_mlock(roots, &rights, list);
	check_kcore(roots, list);
	check_symbols(roots, list);
	check_lockdown(roots, list);
	check_debugfs(roots, list);
	check_tracefs(roots, list);
	check_disk(directory, list);
}
