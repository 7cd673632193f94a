/* Pieces of any bytes as the files of a kernel: kcore, a later copy of it, kallsyms, modules
 * and symbols of a later copy.
 * All code that was loaded is found again and read to its end. */
#include "decode/code/machine_parts.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 5 };

/* Reads the last byte of the code at an address, and what is known of the place. */
static unsigned look_at(struct machine *machine, uint64_t address)
{
	struct code_view view;
	struct symbol_view symbol;

	machine_symbol(machine, 0, address, 0, &symbol);
	(void)machine_later_code(machine, address, 16, 0);
	if (!(address >> 63) || machine_code(machine, 0, address, 0, &view))
		return 0;
	if (!view.left)
		abort();
	return view.data[view.left - 1];
}

static unsigned look_around(struct machine *machine)
{
	unsigned sum = 0;

	for (size_t i = 0; i < machine->image.count; i++) {
		sum += look_at(machine, machine->image.items[i].start);
		sum += look_at(machine, machine->image.items[i].end - 1);
		sum += look_at(machine, machine->image.items[i].end);
	}
	for (size_t i = 0; i < machine->later.changes.count; i++)
		sum += look_at(machine, machine->later.changes.items[i].start);
	for (size_t i = 0; i < machine->later.ranges.count; i++) {
		machine->later.ranges.items[i].since = 0;
		sum += look_at(machine, machine->later.ranges.items[i].start - 1);
		sum += look_at(machine, machine->later.ranges.items[i].start);
		sum += look_at(machine, machine->later.ranges.items[i].end - 1);
	}
	for (size_t i = 0; i < machine->symbols.count; i++)
		sum += look_at(machine, machine->symbols.items[i].start);
	for (size_t i = 0; i < machine->later_symbols.count; i++)
		sum += look_at(machine, machine->later_symbols.items[i].start);
	(void)machine_labels(machine);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kernel_files none = { 0 };
	struct bytes rest = { data, size };
	struct machine *machine = machine_new(0, false);
	struct machines machines = { .host = machine };
	struct kernel_files files;
	char paths[FILES][FUZZ_PATH];
	int fds[FILES];
	volatile unsigned sum;

	for (int i = 0; i < FILES; i++)
		fds[i] = fuzz_file(fuzz_piece(&rest), paths[i]);
	files = (struct kernel_files){
		.kcore = paths[0],
		.later_kcore = paths[1],
		.kallsyms = paths[2],
		.modules = paths[3],
		.later_kallsyms = paths[4],
	};
	if (!machine || machine_load_kernel(machine, &files, &none, NULL))
		abort();
	sum = look_around(machine);
	(void)sum;
	machines_free(&machines);
	for (int i = 0; i < FILES; i++)
		(void)close(fds[i]);
	return 0;
}
