#include "host/record/recording_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "guest/json_text.h"
#include "host/machine/cpu_model.h"
#include "host/machine/kernel_file.h"

enum { VERSION = 1 };

static const char file_name[] = "data.ptvm.json", new_name[] = "data.ptvm.json.new";

struct recording_json {
	json_t *root, *machines;
};

/* Takes `value` over. */
static int set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) ? -PTVM_NO_MEMORY : 0;
}

static int set_text(json_t *object, const char *key, const char *value)
{
	return value ? set(object, key, json_text(value)) : 0;
}

static int set_number(json_t *object, const char *key, uint64_t value)
{
	return set(object, key, json_integer((json_int_t)value));
}

/* Takes `value` over. */
static int append(json_t *array, json_t *value)
{
	return json_array_append_new(array, value) ? -PTVM_NO_MEMORY : 0;
}

/* The member `key`, made of `empty` where there is none, which is taken over. NULL: no memory. */
static json_t *member(json_t *object, const char *key, json_t *empty)
{
	json_t *found = json_object_get(object, key);

	if (found) {
		json_decref(empty);
		return found;
	}
	return set(object, key, empty) ? NULL : empty;
}

/* The object in `array` whose `key` is `value`; made where there is none. NULL: no memory. */
static json_t *entry(json_t *array, const char *key, json_int_t value)
{
	json_t *item;
	size_t i;

	json_array_foreach(array, i, item) if (json_integer_value(json_object_get(item, key)) ==
					       value) return item;
	item = json_pack("{s:I}", key, value);
	return append(array, item) ? NULL : item;
}

static json_t *machine_entry(const struct recording_json *json, pid_t pid)
{
	return entry(json->machines, "pid", pid);
}

static json_t *vcpu_entry(const struct recording_json *json, pid_t pid, unsigned index)
{
	json_t *machine = machine_entry(json, pid), *vcpus;

	vcpus = machine ? member(machine, "vcpus", json_array()) : NULL;
	return vcpus ? entry(vcpus, "index", index) : NULL;
}

static json_t *make_versions(const char *version)
{
	struct utsname name;

	if (uname(&name))
		return json_pack("{s:s}", "ptvm", version);
	return json_pack("{s:s, s:s}", "ptvm", version, "kernel", name.release);
}

static json_t *make_cpu(const struct roots *roots)
{
	struct cpu_model cpu;

	cpu_model_read(roots, &cpu);
	return json_pack("{s:o, s:o, s:i, s:i, s:i, s:b}", "name", json_text(cpu.name), "vendor",
			 json_text(cpu.vendor), "family", cpu.family, "model", cpu.model,
			 "stepping", cpu.stepping, "is_virtual", cpu.is_virtual);
}

static int set_caps(json_t *host, const struct pt_pmu *pmu)
{
	json_t *caps = json_object();
	int r = set(host, "pt_caps", caps);

	for (int i = 0; i < PT_CAP_COUNT && !r; i++)
		r = set_number(caps, pt_cap_name((enum pt_cap)i), pmu->caps[i]);
	if (!r && pmu->tsc_ratio)
		r = set(host, "tsc_to_crystal",
			json_pack("[i, i]", pmu->tsc_ratio, pmu->crystal_ratio));
	return r;
}

static int set_host(json_t *host, const struct roots *roots, const struct pt_pmu *pmu)
{
	int64_t mode;
	int r = set(host, "cpu", make_cpu(roots));

	if (!r && !kernel_file_number(&mode, "%s/module/kvm_intel/parameters/pt_mode", roots->sys))
		r = set_number(host, "pt_mode", (uint64_t)mode);
	return r || !pmu ? r : set_caps(host, pmu);
}

int recording_json_new(const struct roots *roots, const char *version, const struct pt_pmu *pmu,
		       struct recording_json **ret)
{
	struct recording_json *json = malloc(sizeof(*json));
	json_t *host = json_object();
	int r;

	if (!json) {
		json_decref(host);
		return -PTVM_NO_MEMORY;
	}
	json->machines = json_array();
	json->root = json_pack("{s:i, s:o, s:o, s:o}", "version", VERSION, "versions",
			       make_versions(version), "host", host, "machines", json->machines);
	r = json->root ? set_host(host, roots, pmu) : -PTVM_NO_MEMORY;
	if (r)
		recording_json_free(json);
	else
		*ret = json;
	return r;
}

void recording_json_free(struct recording_json *json)
{
	if (!json)
		return;
	json_decref(json->root);
	free(json);
}

int recording_json_machine(struct recording_json *json, const struct json_machine *machine)
{
	json_t *to = machine_entry(json, machine->pid);
	int r = to ? set_text(to, "name", machine->name) : -PTVM_NO_MEMORY;

	if (!r)
		r = set_text(to, "uuid", machine->uuid);
	if (!r)
		r = set_text(to, "vmm", machine->vmm);
	if (!r)
		r = set_text(to, "vmm_version", machine->vmm_version);
	if (!r)
		r = set_text(to, "libvirt_version", machine->libvirt_version);
	return r;
}

int recording_json_vcpu(struct recording_json *json, pid_t pid, const struct vcpu_thread *vcpu)
{
	json_t *to = vcpu_entry(json, pid, vcpu->index);
	char ways[64];
	int r = to ? set_number(to, "tid", (uint64_t)vcpu->tid) : -PTVM_NO_MEMORY;

	if (!r)
		r = set_text(to, "found_by", vcpu_ways_text(vcpu->ways, ways, sizeof(ways)));
	if (!r && vcpu->against)
		r = set_text(to, "against", vcpu_ways_text(vcpu->against, ways, sizeof(ways)));
	return r;
}

int recording_json_clock(struct recording_json *json, pid_t pid, unsigned index,
			 const struct json_clock *sample)
{
	static const char *const moments[] = { "start", "change", "end" };
	json_t *vcpu = vcpu_entry(json, pid, index);
	json_t *samples = vcpu ? member(vcpu, "tsc", json_array()) : NULL, *made;
	int r = 0;

	if (!samples)
		return -PTVM_NO_MEMORY;
	if (json_array_size(samples) >= RECORDING_JSON_SAMPLES && sample->moment != JSON_AT_END)
		return 0;
	made = json_pack("{s:s, s:s, s:I, s:I, s:i}", "when", moments[sample->moment], "source",
			 sample->source, "offset", (json_int_t)sample->clock.offset, "ratio",
			 (json_int_t)sample->clock.ratio, "frac_bits", sample->clock.fraction_bits);
	if (made && sample->time_ns)
		r = set_number(made, "time_ns", sample->time_ns);
	return append(samples, made) ? -PTVM_NO_MEMORY : r;
}

static int add_to(json_t *object, const char *key, uint64_t value)
{
	json_int_t sum = json_integer_value(json_object_get(object, key));

	return set_number(object, key, (uint64_t)sum + value);
}

int recording_json_loss(struct recording_json *json, pid_t pid, unsigned index,
			const struct json_loss *loss)
{
	json_t *whose = pid ? vcpu_entry(json, pid, index) : json->root;
	json_t *lost = whose ? member(whose, "lost", json_object()) : NULL;
	json_t *each = lost ? member(lost, "each", json_array()) : NULL;

	if (!each || add_to(lost, "times", 1) || add_to(lost, "bytes", loss->bytes))
		return -PTVM_NO_MEMORY;
	if (json_array_size(each) == RECORDING_JSON_LOSSES)
		return 0;
	return append(each, json_pack("{s:I, s:I}", "time_ns", (json_int_t)loss->time_ns, "bytes",
				      (json_int_t)loss->bytes));
}

int recording_json_kernel(struct recording_json *json, pid_t pid, json_t *how, const char *why)
{
	json_t *whose = pid ? machine_entry(json, pid) : json_object_get(json->root, "host");

	if (!whose)
		return -PTVM_NO_MEMORY;
	return set(whose, "kernel",
		   how ? json_incref(how) : json_pack("{s:o}", "not_copied", json_text(why)));
}

static int write_new(const struct recording_json *json, int directory, struct ptvm_error *error)
{
	_cleanup_close_ int file = -1;

	if (unlinkat(directory, new_name, 0) && errno != ENOENT)
		return ptvm_fail_errno(error, "%s", new_name);
	file = openat(directory, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	if (file < 0)
		return ptvm_fail_errno(error, "%s", new_name);
	errno = ENOMEM;
	if (json_dumpfd(json->root, file, JSON_INDENT(2)))
		return ptvm_fail_errno(error, "cannot write %s", new_name);
	return 0;
}

int recording_json_write(const struct recording_json *json, int directory, struct ptvm_error *error)
{
	int r = write_new(json, directory, error);

	if (!r && renameat(directory, new_name, directory, file_name))
		r = ptvm_fail_errno(error, "%s", file_name);
	if (r)
		(void)unlinkat(directory, new_name, 0);
	return r;
}
