#include "host/record/record_targets.h"

#include "decode/base/vec.h"
#include "host/machine/kernel_file.h"
#include "host/record/record_options.h"

enum { ONLINE_TEXT_SIZE = 1024, ANY = -1 };

static struct trace_machine *add_machine(struct record_targets *targets)
{
	if (!vec_push(&targets->machines, (struct trace_machine){ .name = "" }))
		return NULL;
	return &targets->machines.items[targets->machines.count - 1];
}

/* Drop the last machine where it was named before. */
static void drop_duplicate(struct record_targets *targets)
{
	struct trace_machine *last = &targets->machines.items[targets->machines.count - 1];

	for (size_t i = 0; i + 1 < targets->machines.count; i++)
		if (targets->machines.items[i].vm.pid == last->vm.pid) {
			trace_machine_free(last);
			targets->machines.count--;
			return;
		}
}

/* By the user's name number `nth`: domains come first, then processes. */
static int find_machine(const struct roots *roots, const struct record_options *options, size_t nth,
			struct trace_machine *ret, struct ptvm_error *error)
{
	const size_t domains = options->domains.count;

	return nth < domains ? trace_machine_of_domain(roots, options->uri,
						       options->domains.items[nth], ret, error)
			     : trace_machine_of_process(roots, options->pids.items[nth - domains],
							ret, error);
}

static int find_machines(const struct roots *roots, const struct record_options *options,
			 struct record_targets *targets, struct ptvm_error *error)
{
	const size_t count = options->domains.count + options->pids.count;
	struct trace_machine *machine;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		machine = add_machine(targets);
		r = machine ? find_machine(roots, options, i, machine, error) : -PTVM_NO_MEMORY;
		if (!r)
			drop_duplicate(targets);
	}
	return r;
}

static int add_vcpus(const struct record_options *options, struct trace_machine *machine,
		     struct record_targets *targets, struct ptvm_error *error)
{
	int r = trace_machine_select(machine, &options->vcpus, error);

	if (!r && !machine->vcpus.count)
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "no vCPU threads of process %d are known: run as root with "
				 "debugfs mounted, or name threads (-t)",
				 machine->vm.pid);
	for (size_t i = 0; i < machine->vcpus.count && !r; i++)
		r = pid_list_add(&targets->tids, machine->vcpus.items[i].tid);
	return r;
}

/* Whole CPUs, or threads wherever they run. */
static int find_threads(const struct record_options *options, struct record_targets *targets,
			struct ptvm_error *error)
{
	int r = 0;

	for (size_t i = 0; i < targets->machines.count && !r; i++)
		r = add_vcpus(options, &targets->machines.items[i], targets, error);
	for (size_t i = 0; i < options->tids.count && !r; i++)
		r = pid_list_add(&targets->tids, options->tids.items[i]);
	if (!r && (options->is_all_cpus || !targets->tids.count)) {
		targets->tids.count = 0;
		r = vec_push(&targets->tids, ANY) ? 0 : -PTVM_NO_MEMORY;
	}
	return r;
}

/* In the kernel's words, as many as there is room for. */
static int none_is_online(const struct roots *roots, struct ptvm_error *error)
{
	char text[ONLINE_TEXT_SIZE];

	(void)kernel_file_read(text, sizeof(text), "%s/devices/system/cpu/online", roots->sys);
	return ptvm_fail(error, PTVM_NOT_FOUND, "-C: none of these CPUs is online (%s are)", text);
}

static int find_cpus(const struct roots *roots, const struct record_options *options,
		     struct record_targets *targets, struct ptvm_error *error)
{
	struct cpu_list online = { 0 };
	int r = cpu_list_read(roots, "online", &online);

	if (r == -PTVM_NOT_FOUND)
		return ptvm_fail(error, PTVM_NOT_FOUND,
				 "%s/devices/system/cpu/online: not readable", roots->sys);
	for (size_t i = 0; i < online.count && !r; i++) {
		const int cpu = online.items[i];

		if (number_ranges_has(&options->cpus, cpu) ? !vec_push(&targets->cpus, cpu)
							   : !vec_push(&targets->other_cpus, cpu))
			r = -PTVM_NO_MEMORY;
	}
	vec_free(&online);
	return r || targets->cpus.count ? r : none_is_online(roots, error);
}

int record_targets_find(const struct roots *roots, const struct record_options *options,
			struct record_targets *ret, struct ptvm_error *error)
{
	int r = find_machines(roots, options, ret, error);

	if (!r)
		r = find_threads(options, ret, error);
	return r ? r : find_cpus(roots, options, ret, error);
}

static const struct vcpu_thread *new_one(const struct vcpu_threads *now,
					 const struct vcpu_threads *known,
					 const struct number_ranges *wanted)
{
	for (size_t i = 0; i < now->count; i++) {
		bool is_known = !number_ranges_has(wanted, now->items[i].index);

		for (size_t k = 0; k < known->count && !is_known; k++)
			is_known = known->items[k].tid == now->items[i].tid;
		if (!is_known)
			return &now->items[i];
	}
	return NULL;
}

/* Where whole CPUs are traced, so is a new thread; but which vCPU it runs must be known. */
static int refresh_machine(const struct roots *roots, const struct record_options *options,
			   struct record_targets *targets, struct trace_machine *machine,
			   struct record_vcpu *ret)
{
	struct vcpu_threads now = { 0 };
	const struct vcpu_thread *vcpu;
	int r = vcpu_threads_find(roots, machine->vm.pid, &now, NULL);

	vcpu = r ? NULL : new_one(&now, &machine->vcpus, &options->vcpus);
	if (vcpu) {
		*ret = (struct record_vcpu){ machine, *vcpu };
		r = vec_push(&machine->vcpus, *vcpu) && vec_push(&targets->tids, vcpu->tid)
			    ? 1
			    : -PTVM_NO_MEMORY;
	}
	vcpu_threads_free(&now);
	return r == -PTVM_NOT_FOUND ? 0 : r;
}

int record_targets_refresh(const struct roots *roots, const struct record_options *options,
			   struct record_targets *targets, struct record_vcpu *ret)
{
	int r = 0;

	for (size_t i = 0; i < targets->machines.count && !r; i++)
		r = refresh_machine(roots, options, targets, &targets->machines.items[i], ret);
	return r;
}

int record_targets_gone(const struct roots *roots, struct record_targets *targets,
			struct record_vcpu *ret)
{
	for (size_t i = 0; i < targets->machines.count; i++) {
		struct trace_machine *machine = &targets->machines.items[i];

		for (size_t k = 0; k < machine->vcpus.count; k++) {
			struct vcpu_thread *vcpu = &machine->vcpus.items[k];

			if (vcpu->is_gone || kernel_file_is_readable("%s/%d/task/%d", roots->proc,
								     machine->vm.pid, vcpu->tid))
				continue;
			vcpu->is_gone = true;
			*ret = (struct record_vcpu){ machine, *vcpu };
			return 1;
		}
	}
	return 0;
}

int record_targets_late_cpu(const struct roots *roots, const struct record_options *options,
			    struct record_targets *targets)
{
	struct cpu_list online = { 0 };
	int late = ANY;

	(void)cpu_list_read(roots, "online", &online);
	for (size_t i = 0; i < online.count && late == ANY; i++) {
		const int cpu = online.items[i];

		if (number_ranges_has(&options->cpus, cpu) && !cpu_list_has(&targets->cpus, cpu) &&
		    !cpu_list_has(&targets->late_cpus, cpu))
			late = cpu;
	}
	vec_free(&online);
	return late == ANY || vec_push(&targets->late_cpus, late) ? late : ANY;
}

/* Note whether a CPU is offline. Returns whether it has been, and is not any more. */
static bool is_back(struct cpu_list *gone, int cpu, bool is_online)
{
	const size_t at = cpu_list_find(gone, cpu);

	if (!is_online && at == gone->count)
		(void)vec_push(gone, cpu);
	if (!is_online || at == gone->count)
		return false;
	gone->items[at] = gone->items[--gone->count];
	return true;
}

int record_targets_back_cpu(const struct roots *roots, struct record_targets *targets)
{
	struct cpu_list online = { 0 };
	int back = ANY;

	if (cpu_list_read(roots, "online", &online))
		return ANY;
	for (size_t i = 0; i < targets->cpus.count && back == ANY; i++) {
		const int cpu = targets->cpus.items[i];

		if (is_back(&targets->gone_cpus, cpu, cpu_list_has(&online, cpu)))
			back = cpu;
	}
	vec_free(&online);
	return back;
}

bool record_targets_vcpu(const struct record_targets *targets, pid_t tid, struct record_vcpu *ret)
{
	for (size_t i = 0; i < targets->machines.count; i++) {
		const struct trace_machine *machine = &targets->machines.items[i];

		for (size_t k = 0; k < machine->vcpus.count; k++)
			if (machine->vcpus.items[k].tid == tid) {
				*ret = (struct record_vcpu){ machine, machine->vcpus.items[k] };
				return true;
			}
	}
	return false;
}

void record_targets_free(struct record_targets *targets)
{
	for (size_t i = 0; i < targets->machines.count; i++)
		trace_machine_free(&targets->machines.items[i]);
	vec_free(&targets->machines);
	vec_free(&targets->tids);
	vec_free(&targets->cpus);
	vec_free(&targets->other_cpus);
	vec_free(&targets->late_cpus);
	vec_free(&targets->gone_cpus);
}
