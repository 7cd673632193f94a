#include "decode/code/machines.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/lost_pages.h"
#include "decode/base/search.h"
#include "decode/base/vec.h"
#include "decode/code/machine_parts.h"

void machines_free(struct machines *machines)
{
	struct machine *machine;

	for (size_t next = 0; (machine = machines_next(machines, &next));)
		machine_free(machine);
	free(machines->guests);
	*machines = (struct machines){ 0 };
}

static void note_lost_pages(struct machine *machine, struct bytes file, const char *path)
{
	struct ptvm_error error = { 0 };

	if (lost_pages_check(file, path, &error))
		machine_note(machine, "%s", error.message);
}

static void note_files(struct machine *machine)
{
	for (size_t i = 0; i < machine->files.count; i++)
		note_lost_pages(machine, machine->files.items[i].bytes,
				machine->files.items[i].path);
	for (size_t i = 0; i < machine->dsos.count; i++) {
		const struct dso *dso = machine->dsos.items[i];

		if (dso->note)
			machine_note(machine, "%s", dso->note);
		note_lost_pages(machine, dso->file, dso->name);
	}
}

void machines_miss_guest(const struct machines *machines)
{
	atomic_store_explicit(&machines->host->misses_guest, true, memory_order_relaxed);
}

void machines_note_files(const struct machines *machines)
{
	struct machine *machine;

	if (machines->host && machines->host->misses_guest)
		machine_note(machines->host,
			     "a guest without a copy of its kernel: put kallsyms and kcore into "
			     "kcore_dir__PID of the recording, PID being its process, or name "
			     "--guestkallsyms");

	for (size_t next = 0; (machine = machines_next(machines, &next));)
		note_files(machine);
}

/* Note `index` of a machine; or NULL, and `index` is less by how many it has. */
static const char *find_note(struct machine *machine, size_t *index)
{
	const char *note = NULL;

	(void)pthread_mutex_lock(&machine->lock);
	if (*index < machine->notes.count)
		note = machine->notes.items[*index];
	else
		*index -= machine->notes.count;
	(void)pthread_mutex_unlock(&machine->lock);
	return note;
}

const char *machines_note(const struct machines *machines, size_t index)
{
	struct machine *machine;
	const char *note = NULL;

	for (size_t next = 0; !note && (machine = machines_next(machines, &next));)
		note = find_note(machine, &index);
	return note;
}

/* Where the guest of this pid is or belongs. */
static size_t guest_slot(const struct machines *machines, int32_t pid)
{
	return search_sorted(machines->guest_count, i, machines->guests[i]->pid < pid);
}

static struct machine *exact_guest(const struct machines *machines, int32_t pid)
{
	size_t slot = guest_slot(machines, pid);

	return slot < machines->guest_count && machines->guests[slot]->pid == pid
		       ? machines->guests[slot]
		       : NULL;
}

struct machine *machines_guest(const struct machines *machines, int32_t pid)
{
	struct machine *guest;

	if (machines->one_for_all)
		return machines->host;
	if (machines->guest_count == 1 && pid <= 0)
		return machines->guests[0];
	guest = exact_guest(machines, pid);
	return guest ? guest : exact_guest(machines, 0);
}

static int refuse_guest(struct machines *machines)
{
	if (!machines->has_more_guests)
		machine_note(machines->host, "more than %d guests: what is of others is left out",
			     MACHINES_GUESTS_MAX);
	machines->has_more_guests = true;
	return -PTVM_END;
}

int machines_guest_add(struct machines *machines, int32_t pid, struct machine **ret)
{
	struct machine *guest = *ret = exact_guest(machines, pid);
	size_t slot = guest_slot(machines, pid);

	if (guest)
		return 0;
	if (machines->guest_count == MACHINES_GUESTS_MAX)
		return refuse_guest(machines);
	guest = machine_new(pid, true);
	if (!guest || !vec_grow((void **)&machines->guests, &machines->guest_room,
				machines->guest_count, sizeof(*machines->guests))) {
		machine_free(guest);
		return -PTVM_NO_MEMORY;
	}
	memmove(machines->guests + slot + 1, machines->guests + slot,
		(machines->guest_count++ - slot) * sizeof(*machines->guests));
	machines->guests[slot] = *ret = guest;
	return 0;
}
