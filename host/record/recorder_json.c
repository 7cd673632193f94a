#include "host/record/recorder_json.h"

#include <fcntl.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "host/record/recorder.h"
#include "host/record/recording_json.h"
#include "host/record/trace_loss.h"

static const char *text_or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int tell_of_machines(struct recorder *recorder)
{
	int r = recording_json_new(recorder->roots, PTVM_VERSION, &recorder->plan.pmu,
				   &recorder->json);

	for (size_t i = 0; i < recorder->targets.machines.count && !r; i++) {
		const struct trace_machine *machine = &recorder->targets.machines.items[i];
		const struct json_machine about = {
			.pid = machine->vm.pid,
			.name = text_or_null(machine->name),
			.uuid = text_or_null(machine->uuid),
			.vmm = machine->vm.comm,
			.vmm_version = text_or_null(machine->versions.vmm),
			.libvirt_version = text_or_null(machine->versions.libvirt),
		};

		r = recording_json_machine(recorder->json, &about);
		for (size_t k = 0; k < machine->vcpus.count && !r; k++)
			r = recording_json_vcpu(recorder->json, machine->vm.pid,
						&machine->vcpus.items[k]);
	}
	return r;
}

static int tell_of_kernels(struct recorder *recorder)
{
	int r = 0;

	for (size_t i = 0; i < recorder->kernels.count && !r; i++) {
		const struct recorded_kernel *kernel = &recorder->kernels.items[i];

		r = recording_json_kernel(recorder->json,
					  kernel->machine ? kernel->machine->vm.pid : 0,
					  kernel->copy.json, kernel->why[0] ? kernel->why : NULL);
	}
	return r;
}

static int write_json(const struct recorder *recorder, struct ptvm_error *error)
{
	_cleanup_close_ int directory =
		open(recorder->directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return ptvm_fail_errno(error, "%s", recorder->directory.path);
	return recording_json_write(recorder->json, directory, error);
}

/* Returns how many clocks were added. */
static int look_at_clocks(struct recorder *recorder, enum json_moment moment)
{
	return clock_watch_look(&recorder->clocks, recorder->roots, &recorder->targets,
				tracer_now(&recorder->tracer), moment, recorder->json);
}

int recorder_json_begin(struct recorder *recorder, struct ptvm_error *error)
{
	int r = tell_of_machines(recorder);

	if (!r)
		r = tell_of_kernels(recorder);
	if (!r)
		r = look_at_clocks(recorder, JSON_AT_START);
	return r < 0 ? r : write_json(recorder, error);
}

int recorder_json_look(struct recorder *recorder, struct ptvm_error *error)
{
	int r = look_at_clocks(recorder, JSON_ON_CHANGE);

	return r > 0 ? write_json(recorder, error) : r;
}

/* A loss belongs to the vCPU that the thread runs, or to nobody. */
static int tell_of_loss(const struct recorder *recorder, const struct thread_loss *loss)
{
	const struct json_loss told = { loss->first, loss->bytes };
	struct record_vcpu runs;

	if (record_targets_vcpu(&recorder->targets, loss->tid, &runs))
		return recording_json_loss(recorder->json, runs.machine->vm.pid, runs.vcpu.index,
					   &told);
	return recording_json_loss(recorder->json, 0, 0, &told);
}

int recorder_json_end(struct recorder *recorder, const struct trace_loss *loss,
		      struct ptvm_error *error)
{
	int r = look_at_clocks(recorder, JSON_AT_END);

	for (size_t i = 0; i < loss->threads.count && r >= 0; i++)
		r = tell_of_loss(recorder, &loss->threads.items[i]);
	return r < 0 ? r : write_json(recorder, error);
}
