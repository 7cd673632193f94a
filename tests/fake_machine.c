#include "tests/fake_machine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/pt/pt_packet.h"

enum {
	TRAILER_SIZE = 32,
	AUX_SIZE = 32,
	LOST_SIZE = 24,
	MAX_RECORD = 8192,
	MAX_SAMPLE = 65536,
	SAMPLE_IP = 0x1000,
	AUX_TRUNCATED = 1,
	AUX_OVERWRITE = 2,
	PT_TYPE = 8,
	OWN_IDS = 1 << 20,
	KVM_ENTRY_RAW = 36,
	KVM_ENTRY_SAMPLE = 60 + KVM_ENTRY_RAW,
};

static void put(uint8_t *at, uint64_t value, size_t size)
{
	memcpy(at, &value, size);
}

/* What an attr is for. */
static unsigned kind_of(const struct perf_event_attr *attr)
{
	if (attr->type == PT_TYPE)
		return 1;
	if (attr->aux_sample_size)
		return 5; /* the recordings have none */
	return attr->context_switch ? 2 : attr->text_poke ? 3 : attr->mmap ? 4 : 0;
}

/* The id that such an event had, or one of our own. */
static uint64_t id_of(const struct fake_machine *machine, const struct perf_event_attr *attr,
		      pid_t tid, int cpu)
{
	struct perf_event_attr theirs;

	for (size_t i = 0; i < machine->past.id_count; i++) {
		const struct past_id *id = &machine->past.ids[i];

		memcpy(&theirs, id->attr, sizeof(theirs));
		if (id->cpu == cpu && id->tid == tid && kind_of(&theirs) == kind_of(attr))
			return id->id;
	}
	return OWN_IDS + machine->event_count;
}

/* Counts a call; true when it is the one that must fail. */
static bool fails(struct fake_machine *machine)
{
	if (++machine->calls != machine->fail_at)
		return false;
	errno = machine->fail_errno;
	return true;
}

static int machine_open(void *context, struct perf_event_attr *attr, pid_t tid, int cpu,
			int group_fd)
{
	struct fake_machine *machine = context;
	struct fake_event *event = &machine->events[machine->event_count];

	if ((machine->dead && tid == machine->dead) ||
	    machine->event_count == FAKE_MACHINE_EVENTS) {
		errno = machine->event_count < FAKE_MACHINE_EVENTS ? ESRCH : EMFILE;
		return -1;
	}
	if (fails(machine))
		return -1;
	memset(event, 0, sizeof(*event));
	fake_kernel_init(&event->kernel);
	event->owner = event;
	event->id = id_of(machine, attr, tid, cpu);
	event->cpu = cpu;
	event->tid = tid;
	event->past_kind = kind_of(attr);
	event->is_open = true;
	event->sample_size = attr->aux_sample_size;
	event->leader = group_fd < 0 ? NULL : &machine->events[group_fd - FAKE_MACHINE_FD];
	event->is_trace = attr->type == PT_TYPE;
	event->point = attr->type == PERF_TYPE_TRACEPOINT ? attr->config : 0;
	event->is_on = !attr->disabled;
	return FAKE_MACHINE_FD + (int)machine->event_count++;
}

static struct fake_event *event_of(struct fake_machine *machine, int fd)
{
	const size_t i = (size_t)fd - FAKE_MACHINE_FD;

	if (fd >= FAKE_MACHINE_FD && i < machine->event_count && machine->events[i].is_open)
		return &machine->events[i];
	errno = EBADF;
	return NULL;
}

static int control(struct fake_machine *machine, struct fake_event *event, unsigned long request,
		   unsigned long argument)
{
	struct fake_event *owner;

	switch (request) {
	case PERF_EVENT_IOC_ID: *(uint64_t *)argument = event->id; return 0;
	case PERF_EVENT_IOC_SET_FILTER: return 0;
	case PERF_EVENT_IOC_SET_OUTPUT:
		owner = event_of(machine, (int)argument);
		if (!owner || owner->cpu != event->cpu || event->kernel.records) {
			errno = EINVAL;
			return -1;
		}
		event->owner = owner;
		return 0;
	default:
		event->is_on = request == PERF_EVENT_IOC_ENABLE;
		return event->owner->kernel.table.control(&event->owner->kernel, FAKE_FD, request,
							  argument);
	}
}

static int machine_control(void *context, int fd, unsigned long request, unsigned long argument)
{
	struct fake_machine *machine = context;
	struct fake_event *event = event_of(machine, fd);
	int r = -1;

	(void)pthread_mutex_lock(&machine->lock);
	if (event && !fails(machine))
		r = control(machine, event, request, argument);
	(void)pthread_mutex_unlock(&machine->lock);
	return r;
}

static void set_clock(const struct fake_machine *machine, struct perf_event_mmap_page *page)
{
	const struct time_conv *conv = &machine->past.conv;

	page->time_shift = (uint16_t)conv->shift;
	page->time_mult = (uint32_t)conv->mult;
	page->time_zero = conv->zero;
	page->cap_user_time_zero = conv->valid;
}

static void *machine_map(void *context, size_t size, int protection, int fd, off_t offset)
{
	struct fake_machine *machine = context;
	struct fake_event *event = event_of(machine, fd);
	void *at;

	if (!event || fails(machine))
		return MAP_FAILED;
	at = event->kernel.table.map(&event->kernel, size, protection, FAKE_FD, offset);
	if (at != MAP_FAILED && !offset)
		set_clock(machine, at);
	machine->mapped += at != MAP_FAILED;
	return at;
}

static int machine_unmap(void *context, void *at, size_t size)
{
	struct fake_machine *machine = context;

	for (size_t i = 0; i < machine->event_count; i++) {
		struct fake_kernel *kernel = &machine->events[i].kernel;

		if ((at == kernel->records || at == kernel->trace) &&
		    !kernel->table.unmap(kernel, at, size)) {
			machine->mapped--;
			return 0;
		}
	}
	errno = EINVAL;
	return -1;
}

static ssize_t machine_read(void *context, int fd, void *data, size_t size)
{
	struct fake_event *event = event_of(context, fd);

	if (!event)
		return -1;
	event->kernel.attr.read_format = PERF_FORMAT_LOST;
	event->kernel.lost = event->lost_all;
	return event->kernel.table.read(&event->kernel, FAKE_FD, data, size);
}

static int machine_close(void *context, int fd)
{
	struct fake_event *event = event_of(context, fd);

	if (!event)
		return -1;
	event->is_open = false;
	return 0;
}

static const struct past_id *past_id(const struct fake_machine *machine, uint64_t id)
{
	for (size_t i = 0; i < machine->past.id_count; i++)
		if (machine->past.ids[i].id == id)
			return &machine->past.ids[i];
	return NULL;
}

/* Does an event of a thread stand for those that it had on each CPU? */
static bool stands_for(const struct fake_event *event, const struct past_id *past)
{
	struct perf_event_attr theirs;

	if (!past || event->cpu >= 0 || event->tid != past->tid)
		return false;
	memcpy(&theirs, past->attr, sizeof(theirs));
	return kind_of(&theirs) == event->past_kind;
}

static struct fake_event *listener(struct fake_machine *machine, uint64_t id)
{
	const struct past_id *past = past_id(machine, id);

	for (size_t i = 0; i < machine->event_count; i++) {
		struct fake_event *event = &machine->events[i];

		if (event->is_open && event->owner->kernel.records &&
		    (event->id == id || stands_for(event, past)))
			return event;
	}
	return NULL;
}

/* The trailer that our attrs ask for. */
static size_t put_trailer(uint8_t *data, size_t size, const struct past_record *record, uint64_t id)
{
	put(data + size, (uint32_t)record->pid, 4);
	put(data + size + 4, (uint32_t)record->tid, 4);
	put(data + size + 8, record->time, 8);
	put(data + size + 16, (uint32_t)record->cpu, 8);
	put(data + size + 24, id, 8);
	size += TRAILER_SIZE;
	put(data + 6, size, 2);
	return size;
}

static bool write_record(struct fake_event *event, uint8_t *data, size_t size,
			 const struct past_record *like)
{
	size = put_trailer(data, size, like, event->id);
	return fake_kernel_record(&event->owner->kernel, data, size) != 0;
}

/* A kernel writes the LOST record before any other, once there is room. */
static bool tell_of_lost(struct fake_event *event, const struct past_record *like)
{
	uint8_t data[LOST_SIZE + TRAILER_SIZE] = { PERF_RECORD_LOST };

	if (!event->owner->lost)
		return true;
	put(data + 8, event->id, 8);
	put(data + 16, event->owner->lost, 8);
	if (!write_record(event, data, LOST_SIZE, like))
		return false;
	event->owner->lost = 0;
	return true;
}

/* True when the record was written or lost; false when it has to wait. */
static bool happen(struct fake_machine *machine, struct fake_event *event, uint8_t *data,
		   size_t size, const struct past_record *record)
{
	if (tell_of_lost(event, record) && write_record(event, data, size, record))
		return true;
	if (!machine->is_lossy)
		return false;
	event->owner->lost++;
	event->lost_all++;
	machine->unwritten++;
	return true;
}

static bool play_record(struct fake_machine *machine, struct fake_event *event,
			const struct past_record *record)
{
	uint8_t data[MAX_RECORD];

	if (record->data.size > sizeof(data) - TRAILER_SIZE)
		return true;
	memcpy(data, record->data.data, record->data.size);
	return happen(machine, event, data, record->data.size, record);
}

static bool happen_aux(struct fake_machine *machine, struct fake_event *event, uint64_t offset,
		       uint64_t size, uint64_t flags, const struct past_record *record)
{
	uint8_t data[AUX_SIZE + TRAILER_SIZE] = { PERF_RECORD_AUX };

	put(data + 8, offset, 8);
	put(data + 16, size, 8);
	put(data + 24, flags, 8);
	return happen(machine, event, data, AUX_SIZE, record);
}

static uint64_t room_of(const struct fake_kernel *kernel)
{
	const struct perf_event_mmap_page *page = fake_kernel_page(kernel);

	return kernel->trace_size -
	       (page->aux_head - __atomic_load_n(&page->aux_tail, __ATOMIC_ACQUIRE));
}

/* A trace that goes on begins with a PSB. */
static struct bytes from_psb(struct bytes trace)
{
	const uint8_t *at = pt_psb_find(trace.data, trace.data + trace.size);

	return at ? bytes_slice(trace, (size_t)(at - trace.data), trace.size) : (struct bytes){ 0 };
}

static bool play_lossy(struct fake_machine *machine, struct fake_event *event,
		       const struct past_record *record)
{
	struct fake_kernel *kernel = &event->owner->kernel;
	const uint64_t offset = fake_kernel_page(kernel)->aux_head;
	struct bytes trace = record->trace;
	uint64_t size;

	if (kernel->is_stopped)
		return true;
	if (event->owner->is_after_stop)
		trace = from_psb(trace);
	event->owner->is_after_stop &= !trace.size;
	if (!trace.size)
		return true;
	size = fake_kernel_trace(kernel, trace.data, trace.size);
	event->owner->is_after_stop |= kernel->is_stopped;
	machine->stops += kernel->is_stopped;
	return happen_aux(machine, event, offset, size, kernel->is_stopped ? AUX_TRUNCATED : 0,
			  record);
}

/* The CPU never stops in a packet: the bytes of all that are whole among the first `room`. */
static uint64_t whole_packets(struct bytes trace, uint64_t room)
{
	struct pt_packet packet;
	uint64_t size = 0;

	while (size < trace.size &&
	       !pt_packet_read(trace.data + size, trace.size - size, PT_NO_BLOCK, &packet) &&
	       size + packet.size <= room)
		size += packet.size;
	return trace.size <= room ? trace.size : size;
}

/* A trace larger than the ring is written in pieces. */
static bool play_patiently(struct fake_machine *machine, struct fake_event *event,
			   const struct past_record *record)
{
	struct fake_kernel *kernel = &event->owner->kernel;
	const uint64_t offset = fake_kernel_page(kernel)->aux_head;
	const struct bytes trace = bytes_slice(record->trace, machine->aux_done, UINT64_MAX);
	const uint64_t part = whole_packets(trace, room_of(kernel));

	if (part && !happen_aux(machine, event, offset, part, 0, record))
		return false;
	fake_kernel_trace(kernel, trace.data, part);
	machine->aux_done = part < trace.size ? machine->aux_done + part : 0;
	return part == trace.size;
}

/* Writes a sample that carries the newest bytes of a trace: of a clock, or of a tracepoint, whose
 * own word comes before them. */
static void write_sample(struct fake_event *event, const struct past_record *record)
{
	struct fake_kernel *kernel = &event->owner->kernel;
	const uint64_t head = fake_kernel_page(kernel)->aux_head + kernel->trace_size;
	const uint64_t words[] = { event->id,
				   SAMPLE_IP,
				   (uint32_t)record->pid | (uint64_t)(uint32_t)record->tid << 32,
				   record->time,
				   (uint32_t)record->cpu,
				   1 };
	uint8_t data[MAX_SAMPLE] = { PERF_RECORD_SAMPLE };
	size_t size = 8 + sizeof(words);

	memcpy(data + 8, words, sizeof(words));
	if (event->point)
		put(data + size, sizeof(uint32_t), sizeof(uint32_t));
	size += event->point ? 2 * sizeof(uint32_t) : 0;
	put(data + size, event->sample_size, sizeof(uint64_t));
	size += sizeof(uint64_t);
	for (uint64_t i = 0; i < event->sample_size; i++)
		data[size++] = kernel->trace[(head - event->sample_size + i) % kernel->trace_size];
	put(data + 4, PERF_RECORD_MISC_KERNEL, 2);
	put(data + 6, size, 2);
	(void)fake_kernel_record(kernel, data, size);
}

/* The event whose samples a trace leads, NULL none. */
static struct fake_event *sampler(struct fake_machine *machine, const struct fake_event *leader)
{
	for (size_t i = 0; i < machine->event_count; i++)
		if (machine->events[i].is_open && machine->events[i].is_on &&
		    machine->events[i].leader == leader)
			return &machine->events[i];
	return NULL;
}

static bool has_room(const struct fake_kernel *kernel, uint64_t size)
{
	const struct perf_event_mmap_page *page = fake_kernel_page(kernel);

	return kernel->records_size -
		       (page->data_head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE)) >=
	       size;
}

static bool play_around(struct fake_machine *machine, struct fake_event *event,
			const struct past_record *record)
{
	const struct bytes trace = record->trace;
	struct fake_event *sampling = sampler(machine, event);

	if (sampling && !has_room(&event->owner->kernel, sampling->sample_size + 2 * MAX_RECORD))
		return false;
	fake_kernel_overwrite(&event->owner->kernel, trace.data, trace.size);
	if (sampling)
		write_sample(sampling, record);
	return happen_aux(machine, event, 0, trace.size, AUX_OVERWRITE, record);
}

/* Writes a sample of kvm_entry in the format that fake_past.c gives it. */
static void enter_guest(struct fake_machine *machine, struct fake_event *event,
			const struct past_record *record)
{
	uint8_t data[KVM_ENTRY_SAMPLE] = { PERF_RECORD_SAMPLE };
	uint8_t *raw = data + KVM_ENTRY_SAMPLE - KVM_ENTRY_RAW;

	put(data + 6, sizeof(data), 2);
	put(data + 8, event->id, 8);
	put(data + 24, (uint32_t)record->pid, 4);
	put(data + 28, (uint32_t)record->tid, 4);
	put(data + 32, record->time, 8);
	put(data + 40, (uint32_t)record->cpu, 8);
	put(data + 48, 1, 8);
	put(raw - 4, KVM_ENTRY_RAW, 4);
	put(raw, FAKE_PAST_KVM_ENTRY, 2);
	put(raw + 4, (uint32_t)record->tid, 4);
	put(raw + 16, 0xfff0, 8);
	if (fake_kernel_record(&event->owner->kernel, data, sizeof(data)))
		return;
	event->owner->lost++;
	event->lost_all++;
	machine->unwritten++;
}

static void enter_guests(struct fake_machine *machine, const struct past_record *record)
{
	for (size_t i = 0; i < machine->event_count; i++) {
		struct fake_event *event = &machine->events[i];

		if (event->is_open && event->is_on && event->cpu == record->cpu &&
		    event->tid == record->tid && event->point == FAKE_PAST_KVM_ENTRY)
			enter_guest(machine, event, record);
	}
}

static bool play_trace(struct fake_machine *machine, struct fake_event *event,
		       const struct past_record *record)
{
	const struct fake_kernel *kernel = &event->owner->kernel;

	if (!kernel->trace)
		return true;
	if (!(kernel->trace_protection & PROT_WRITE))
		return play_around(machine, event, record);
	return machine->is_lossy ? play_lossy(machine, event, record)
				 : play_patiently(machine, event, record);
}

/* False where it has to wait for room. */
static bool play(struct fake_machine *machine, const struct past_record *record)
{
	struct fake_event *event = listener(machine, record->id);

	if (!event)
		return true;
	if (record->type != FAKE_PAST_AUX)
		return play_record(machine, event, record);
	if (!play_trace(machine, event, record))
		return false;
	enter_guests(machine, record);
	return true;
}

static bool is_traced(const struct fake_machine *machine)
{
	for (size_t i = 0; i < machine->event_count; i++)
		if (machine->events[i].is_open && machine->events[i].is_trace &&
		    machine->events[i].is_on)
			return true;
	return false;
}

/* An event that is switched on later would miss the beginning where this machine is busy. */
static bool is_ready(const struct fake_machine *machine)
{
	for (size_t i = 0; i < machine->event_count; i++)
		if (machine->events[i].is_open && !machine->events[i].is_on)
			return false;
	return true;
}

/* Plays the next records; returns how many. */
static size_t go_on(struct fake_machine *machine)
{
	size_t count = 0;

	if (!is_traced(machine) || (!machine->next && !is_ready(machine)))
		return 0;
	for (; count < machine->step && machine->next < machine->past.record_count; count++) {
		if (!play(machine, &machine->past.records[machine->next]))
			break;
		machine->next++;
	}
	if (machine->next == machine->past.record_count && !fake_machine_is_over(machine)) {
		__atomic_store_n(&machine->is_over, true, __ATOMIC_RELEASE);
		if (machine->signal)
			(void)kill(getpid(), machine->signal);
	}
	return count;
}

static int machine_wait(void *context, struct pollfd *fds, size_t count, int ms)
{
	struct fake_machine *machine = context;
	bool is_bad = false;
	size_t done;

	(void)pthread_mutex_lock(&machine->lock);
	for (size_t i = 0; i < count; i++)
		is_bad |= !event_of(machine, fds[i].fd);
	done = go_on(machine);
	(void)pthread_mutex_unlock(&machine->lock);
	if (!done)
		(void)usleep(1000);
	return is_bad ? -1 : done != 0;
}

int fake_machine_init(struct fake_machine *machine, const char *recording, struct ptvm_error *error)
{
	const char *sample = getenv("PTVM_SAMPLE");

	memset(machine, 0, sizeof(*machine));
	machine->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	machine->step = 1;
	machine->table = (struct perf_kernel){
		.context = machine,
		.open = machine_open,
		.control = machine_control,
		.map = machine_map,
		.unmap = machine_unmap,
		.read = machine_read,
		.close = machine_close,
		.wait = machine_wait,
		.page_size = FAKE_PAGE_SIZE,
	};
	if (!recording)
		recording = sample ? sample : "examples/vm-small";
	return fake_past_load(&machine->past, recording, error);
}

void fake_machine_deinit(struct fake_machine *machine)
{
	for (size_t i = 0; i < machine->event_count; i++)
		fake_kernel_deinit(&machine->events[i].kernel);
	fake_past_free(&machine->past);
}

size_t fake_machine_open_count(const struct fake_machine *machine)
{
	size_t count = 0;

	for (size_t i = 0; i < machine->event_count; i++)
		count += machine->events[i].is_open;
	return count;
}

bool fake_machine_is_over(const struct fake_machine *machine)
{
	return __atomic_load_n(&machine->is_over, __ATOMIC_ACQUIRE);
}
