/* Any bytes as a recording, decoded to its end with the code of a simulated host and its guests,
 * and printed to nowhere. The last byte chooses what is printed. None of the files that the
 * recording names is found. */
#include <fcntl.h>
#include <stdlib.h>

#include "decode/base/cleanup.h"
#include "decode/print/record_lines.h"
#include "decode/print/team.h"
#include "tests/flow_bench.h"

enum { MOST_LINES = 20000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Programs only; what they would do does not matter here. */
static void add_code(struct machines *machines)
{
	struct sim_options options = sim_options_plain(1);
	struct sim_vm vm;

	if (!machines->guest_count && !bench_guest_new(machines))
		abort();
	options.guests = SIM_GUESTS;
	options.user = options.tsx = options.ptwrite = true;
	options.instructions = 0;
	sim_vm_run(&options, &vm);
	for (unsigned i = 0; i <= SIM_GUESTS; i++) {
		const struct sim_code *codes[] = { &vm.machines[i].kernel, &vm.machines[i].user };
		struct machine *machine =
			i && machines->guest_count ? machines->guests[0] : machines->host;

		for (unsigned k = 0; k < 2; k++)
			if (!bench_add_code(machine, codes[k]->base, codes[k]->bytes,
					    codes[k]->size))
				abort();
	}
	sim_vm_free(&vm);
}

/* Every field in turn, and every kind of event. */
static void choose(uint8_t choice, struct print_config *print)
{
	static const char *const itraces[] = { "i0nse", "be", "crxwpIeg3l5GL2", "i10useglG3L" };

	if (itrace_add(itraces[choice & 3], &print->itrace, NULL))
		abort();
	print->fields = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_IP | FIELD_SYM |
			FIELD_SYMOFF | FIELD_DSO | FIELD_FLAGS | FIELD_VMCS | FIELD_NR;
	if (choice & 4)
		print->fields |=
			FIELD_BRSTACK | FIELD_ADDR | FIELD_INSN | FIELD_INSNLEN | FIELD_EVENT;
	if (choice & 8)
		print->fields |= FIELD_DISASM | FIELD_IPC | FIELD_MACHINE_PID | FIELD_VCPU;
	if (choice & 16)
		print->fields |= FIELD_CALLINDENT;
	for (int kind = 0; kind < EVENT_KINDS; kind++)
		print->sample_fields[kind] = print->fields | FIELD_PERIOD | FIELD_TRACE;
	print->records = RECORDS_SAMPLE;
	print->full_insns = print->insn_addr = choice & 4;
	print->delta_time = choice & 32;
	print->relative_time = choice & 64;
	print->style = (struct block_style){ .fields = print->fields, .lead = "" };
}

static void print_recording(struct perf_data *recording, const struct machines *machines,
			    const struct sideband *sideband, uint8_t choice)
{
	_cleanup_close_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct timeline_output output = { fd, MOST_LINES, choice & 128 ? 2 : 1 };
	struct print_config print = { .modifier = "",
				      .pt = &recording->pt,
				      .machines = machines,
				      .sideband = sideband,
				      .data = recording };
	struct team_result result;
	struct ptvm_error error = { 0 };

	for (size_t i = 0; i < recording->queues.count; i++) {
		struct aux_queue *queue = &recording->queues.items[i];

		if (queue->tid >= 0)
			queue->pid = sideband_pid_of(sideband, queue->tid);
	}
	choose(choice, &print);
	(void)team_print(recording->queues.items, recording->queues.count, &print, &output, &result,
			 &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* an existing directory in which no file is found */
	const struct machine_options nowhere = { .symfs = "/proc/self/fdinfo",
						 .build_id_dir = "/nonexistent" };
	struct perf_data recording = { 0 };
	struct sideband *sideband = NULL;
	struct machines machines = { 0 };
	struct ptvm_error error = { 0 };

	if (size && !perf_data_open_bytes((struct bytes){ data, size - 1 }, &recording, &error)) {
		if (machines_load(&recording, &nowhere, &machines, &error) ||
		    sideband_build(&recording, &sideband))
			abort();
		add_code(&machines);
		print_recording(&recording, &machines, sideband, data[size - 1]);
	}
	sideband_free(sideband);
	machines_free(&machines);
	perf_data_close(&recording);
	return 0;
}
