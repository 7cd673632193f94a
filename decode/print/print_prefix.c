#include "decode/print/print_prefix.h"

#include <stdio.h>
#include <string.h>

#include "decode/base/vec.h"
#include "decode/print/time_column.h"

static void set_thread_until(struct printer *printer)
{
	const struct flow_code *where = &printer->where;
	struct printed_thread *thread = &printer->thread;

	thread->until_ns = thread->next_switch < where->switch_count
				   ? where->switches[thread->next_switch].settled
				   : UINT64_MAX;
}

/* The thread on the CPU now, by the switch records; asked again only when the next switch is due.
 * Returns whether it may be another one. */
static bool update_thread(struct printer *printer)
{
	const struct flow_code *where = &printer->where;
	struct printed_thread *thread = &printer->thread;
	size_t settled;

	if (where->pid >= 0 || !where->switch_count || printer->time_ns < thread->until_ns)
		return false;
	settled = switches_settled(where->switches, where->switch_count, printer->time_ns);
	thread->pid = settled ? where->switches[settled - 1].pid : -1;
	thread->tid = settled ? where->switches[settled - 1].tid : -1;
	thread->next_switch = settled;
	set_thread_until(printer);
	return true;
}

void prefix_switch(struct printer *printer)
{
	const struct flow_code *where = &printer->where;
	struct printed_thread *thread = &printer->thread;
	const struct switch_entry *next;

	if (printer->prefix.is_stale)
		prefix_refresh(printer);
	if (where->pid >= 0 || thread->next_switch >= where->switch_count)
		return;
	next = where->switches + thread->next_switch;
	if (next->time > printer->told_ns)
		return;
	thread->pid = next->pid;
	thread->tid = next->tid;
	thread->next_switch++;
	set_thread_until(printer);
	prefix_outdate(printer);
}

/* A guest's threads are not known: perf shows the vCPU's thread by number. */
static void update_comm(struct printer *printer)
{
	const struct sideband *sideband = printer->config->sideband;
	struct printed_thread *thread = &printer->thread;

	thread->comm = NULL;
	thread->comm_until_ns = UINT64_MAX;
	if (!sideband || printer->context.nr)
		return;
	thread->comm = sideband_comm(sideband, thread->tid, printer->time_ns);
	thread->comm_until_ns = sideband_comm_until(sideband, thread->tid, printer->time_ns);
}

static bool in_names(const char *names, const char *comm)
{
	size_t length = strlen(comm);

	for (const char *p = names; *p; p += strcspn(p, ",")) {
		p += *p == ',';
		if (strcspn(p, ",") == length && !strncmp(p, comm, length))
			return true;
	}
	return false;
}

int64_t prefix_vcpu(const struct print_config *config, const struct prefix_owner *owner)
{
	int64_t vcpu = config->data ? perf_data_vcpu(config->data, owner->tid) : -1;
	const char *comm = NULL;
	int number;

	if (vcpu < 0 && config->sideband)
		comm = sideband_comm(config->sideband, owner->tid, owner->time_ns);
	if (comm && sscanf(comm, "CPU %d/", &number) == 1)
		vcpu = number;
	return vcpu;
}

enum { COMM_BYTES = 16 };

/* What a thread is called where its name is not known, as in guests. */
static const char *comm_or_number(const char *comm, int32_t tid, char number[COMM_BYTES])
{
	if (comm)
		return comm;
	(void)snprintf(number, COMM_BYTES, ":%d", tid);
	return number;
}

bool prefix_is_wanted(const struct print_config *config, const struct prefix_owner *owner)
{
	char number[COMM_BYTES];
	int64_t vcpu = -1;

	if (config->vcpus.count)
		vcpu = prefix_vcpu(config, owner);
	if (owner->in_guest ? config->host_only : config->guest_only)
		return false;
	return number_ranges_has(&config->pids, owner->pid) &&
	       number_ranges_has(&config->tids, owner->tid) &&
	       (!config->vcpus.count || (vcpu >= 0 && number_ranges_has(&config->vcpus, vcpu))) &&
	       number_ranges_has(&config->vmcs, (int64_t)owner->vmcs) &&
	       (!config->comms ||
		in_names(config->comms, comm_or_number(owner->comm, owner->tid, number)));
}

void prefix_add_comm(struct text *text, const char *comm, int32_t tid, unsigned width)
{
	size_t from = text->size;
	char number[COMM_BYTES];

	text_right(text, comm_or_number(comm, tid, number), width);
	text_printable(text, from);
	text_putc(text, ' ');
}

void prefix_add_thread(struct text *text, uint32_t fields, const char *comm, int32_t pid,
		       int32_t tid)
{
	char number[48];

	if (fields & FIELD_COMM)
		prefix_add_comm(text, comm, tid, 16);
	if ((fields & FIELD_PID) && (fields & FIELD_TID))
		(void)snprintf(number, sizeof(number), "%5d/%-5d ", pid, tid);
	else if (fields & (FIELD_PID | FIELD_TID))
		(void)snprintf(number, sizeof(number), "%5d ", fields & FIELD_PID ? pid : tid);
	else
		return;
	text_puts(text, number);
}

void prefix_add_machine(struct text *text, uint32_t fields, const struct print_config *config,
			const struct prefix_owner *owner)
{
	char number[64];
	int64_t vcpu;

	if (!owner->in_guest || !config->data)
		return;
	if (fields & FIELD_MACHINE_PID) {
		(void)snprintf(number, sizeof(number), "VM:%5d ", owner->pid);
		text_puts(text, number);
	}
	vcpu = prefix_vcpu(config, owner);
	if (fields & FIELD_VCPU && vcpu >= 0) {
		(void)snprintf(number, sizeof(number), "VCPU:%03d ", (int)vcpu);
		text_puts(text, number);
	}
}

void prefix_add_cpu(struct text *text, int32_t cpu)
{
	text_putc(text, '[');
	if (cpu >= 0)
		text_dec(text, (uint64_t)cpu, 3, '0');
	else
		text_puts(text, "-01");
	text_puts(text, "] ");
}

void prefix_add_place(struct text *text, uint32_t fields, int32_t cpu,
		      const struct prefix_owner *owner)
{
	if (fields & FIELD_CPU)
		prefix_add_cpu(text, cpu);
	if (fields & FIELD_VMCS) {
		text_puts(text, "0x");
		text_hex(text, owner->vmcs, 0);
		text_putc(text, ' ');
	}
	if (fields & FIELD_NR)
		text_puts(text, owner->in_guest ? "guest " : "host ");
}

void prefix_add_time(struct text *text, const struct print_config *config, uint64_t time_ns)
{
	if (config->relative_time || config->delta_time)
		text_putc(text, TIME_COLUMN_MARK);
	else
		time_column_text(text, time_ns, config->nanoseconds);
}

void prefix_end_run(struct printer *printer)
{
	struct print_runs *runs = &printer->runs;
	struct print_run *last = runs->count ? &runs->items[runs->count - 1] : NULL;

	if (last && last->time_ns == printer->run_ns && !last->record)
		last->end = printer->out.size;
	else if (printer->out.size > (last ? last->end : 0) &&
		 !vec_push(runs, (struct print_run){ printer->run_ns, printer->out.size, 0 }))
		printer->out.failed = true;
}

static size_t blanks_at(const struct text *text, size_t at)
{
	size_t count = 0;

	while (at + count < text->size && text->data[at + count] == ' ')
		count++;
	return count;
}

/* The part that changes with thread and context only. */
static void refresh_place(struct printer *printer)
{
	const struct print_config *config = printer->config;
	struct line_prefix *prefix = &printer->prefix;
	struct prefix_owner owner = { .pid = printer->thread.pid,
				      .tid = printer->thread.tid,
				      .time_ns = printer->time_ns,
				      .vmcs = printer->context.vmcs,
				      .in_guest = printer->context.nr };

	update_comm(printer);
	owner.comm = printer->thread.comm;
	prefix->is_place_stale = false;
	prefix->is_place_wanted = prefix_is_wanted(config, &owner);
	prefix->text.size = 0;
	prefix_add_machine(&prefix->text, config->fields, config, &owner);
	prefix->comm_at = prefix->text.size;
	prefix_add_thread(&prefix->text, config->fields, owner.comm, owner.pid, owner.tid);
	prefix_add_place(&prefix->text, config->fields, printer->queue->cpu, &owner);
	prefix->comm_pad =
		config->fields & FIELD_COMM ? blanks_at(&prefix->text, prefix->comm_at) : 0;
	prefix->place_size = prefix->text.size;
}

/* The time, unless the one that is there looks the same: most lines share their microsecond. */
static void refresh_time(struct printer *printer)
{
	const struct print_config *config = printer->config;
	struct line_prefix *prefix = &printer->prefix;
	uint64_t shown = config->nanoseconds ? printer->time_ns : printer->time_ns / 1000;

	if (!(config->fields & FIELD_TIME) ||
	    (prefix->text.size > prefix->place_size && shown == prefix->shown_time))
		return;
	prefix->shown_time = shown;
	prefix->text.size = prefix->place_size;
	prefix_add_time(&prefix->text, config, printer->time_ns);
}

void prefix_refresh(struct printer *printer)
{
	struct line_prefix *prefix = &printer->prefix;

	if (printer->run_ns != printer->time_ns) {
		prefix_end_run(printer);
		printer->run_ns = printer->time_ns;
	}
	if (update_thread(printer) || prefix->is_place_stale ||
	    printer->time_ns >= printer->thread.comm_until_ns)
		refresh_place(printer);
	prefix->is_stale = false;
	prefix->is_wanted = prefix->is_place_wanted &&
			    time_ranges_have(&printer->config->times, printer->time_ns);
	if (prefix->is_wanted)
		refresh_time(printer);
}
