#include "host/record/perf_open.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(sizeof(struct perf_event_attr) >= PERF_ATTR_SIZE, "needs headers of Linux 5.13");

enum { SAMPLE_NS = 1000000 };

static const uint64_t sample_type =
	PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

static void make_trace(const struct perf_choice *choice, struct perf_event_attr *attr)
{
	attr->type = choice->pt_type;
	attr->config = choice->pt_config;
	attr->sample_type |= PERF_SAMPLE_IP;
	attr->disabled = 1;
	attr->aux_watermark = choice->aux_watermark;
	attr->exclude_user = choice->no_user;
	attr->exclude_kernel = choice->no_kernel;
	attr->exclude_hv = choice->no_user || choice->no_kernel;
	attr->inherit = choice->inherit;
}

/* Samples of an event in the group of a trace carry the newest of it (Linux 5.5). */
static void carry_trace(const struct perf_choice *choice, struct perf_event_attr *attr)
{
	attr->aux_sample_size = choice->aux_sample_size;
	if (choice->aux_sample_size)
		attr->sample_type |= PERF_SAMPLE_AUX;
}

/* Dummies count nothing; they are opened for their other records. None needs the right to look into
 * the kernel. */
static void make_dummy(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->exclude_guest = 1;
}

static void make_tasks(const struct perf_choice *choice, struct perf_event_attr *attr)
{
	make_dummy(attr);
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->ksymbol = 1;
	attr->bpf_event = 1;
	attr->inherit = choice->inherit;
}

static void make_tracepoint(const struct perf_choice *choice, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = choice->tracepoint;
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
	attr->disabled = 1;
	attr->inherit = choice->inherit;
	carry_trace(choice, attr);
}

/* Ticks of a thread's own time: every machine has them, and no counter is taken from a guest. */
static void make_samples(const struct perf_choice *choice, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->sample_period = SAMPLE_NS;
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	attr->disabled = 1;
	attr->inherit = choice->inherit;
	carry_trace(choice, attr);
}

void perf_attr_make(enum perf_kind kind, const struct perf_choice *choice,
		    struct perf_event_attr *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->size = PERF_ATTR_SIZE;
	ret->sample_period = 1;
	ret->sample_type = sample_type;
	ret->sample_id_all = 1;
	/* The same for all events of a recording. */
	ret->read_format = PERF_FORMAT_ID | (choice->has_lost ? PERF_FORMAT_LOST : 0);
	switch (kind) {
	case PERF_TRACE: make_trace(choice, ret); break;
	case PERF_TASKS: make_tasks(choice, ret); break;
	case PERF_TRACEPOINT: make_tracepoint(choice, ret); break;
	case PERF_SAMPLES: make_samples(choice, ret); break;
	case PERF_SWITCHES:
		make_dummy(ret);
		ret->context_switch = 1;
		break;
	case PERF_TEXT_POKES:
		make_dummy(ret);
		ret->text_poke = 1;
		ret->ksymbol = 1;
		break;
	}
}

bool perf_lost_is_known(const struct perf_kernel *kernel)
{
	const struct perf_choice choice = { .has_lost = true };
	struct perf_event_attr attr;
	int fd;

	perf_attr_make(PERF_TASKS, &choice, &attr);
	fd = kernel->open(kernel->context, &attr, 0, -1, -1);
	if (fd < 0)
		return false;
	(void)kernel->close(kernel->context, fd);
	return true;
}

static const char *kind_text(enum perf_kind kind)
{
	static const char *const words[] = {
		[PERF_TRACE] = "intel_pt",
		[PERF_SWITCHES] = "context switches",
		[PERF_TEXT_POKES] = "changes of kernel code",
		[PERF_TASKS] = "maps and threads",
		[PERF_TRACEPOINT] = "a tracepoint",
		[PERF_SAMPLES] = "samples of trace",
	};

	return words[kind];
}

/* What a tracepoint tells of the kernel is kept from others more strictly than its trace. */
static const char *no_right(int sys_errno, enum perf_kind kind)
{
	if (kind == PERF_TRACEPOINT)
		return "not permitted: run as root, or set kernel.perf_event_paranoid to -1";
	return sys_errno == EACCES
		       ? "not permitted: run as root, or lower kernel.perf_event_paranoid"
		       : "not permitted: run as root; lockdown=confidentiality, or a container, "
			 "keeps it from root, too";
}

/* What an errno of perf_event_open means here, and what helps. */
static const char *reason(int sys_errno, enum perf_kind kind)
{
	switch (sys_errno) {
	case EACCES:
	case EPERM: return no_right(sys_errno, kind);
	case EBUSY: return "Intel PT is in use by another tracer, or by KVM in mode host-guest";
	case EINVAL:
		return kind == PERF_TRACE
			       ? "refused: the CPU has not all of the options that were asked for"
			       : "refused: the kernel is too old for it, before Linux 5.9";
	case ENODEV:
	case ENXIO: return "the CPU is offline, or has none";
	case ENOENT:
	case EOPNOTSUPP: return "this kernel or CPU has none";
	case ENOSYS: return "this kernel has no perf events";
	case E2BIG: return "the kernel is too old, before Linux 5.13";
	case ESRCH: return "the thread has ended";
	case EMFILE: return "too many open files: raise the limit (ulimit -n)";
	case ENFILE: return "too many open files in the system (fs.file-max)";
	case ENOSPC: return "too many address filters for this CPU";
	case ENOMEM: return "the kernel is out of memory";
	default: return strerror(sys_errno);
	}
}

static int fail_open(enum perf_kind kind, const struct perf_place *place, struct ptvm_error *error)
{
	int sys_errno = errno;

	if (place->tid < 0)
		(void)ptvm_fail(error, PTVM_SYSTEM, "%s on CPU %d: %s", kind_text(kind), place->cpu,
				reason(sys_errno, kind));
	else
		(void)ptvm_fail(error, PTVM_SYSTEM, "%s of thread %d: %s", kind_text(kind),
				place->tid, reason(sys_errno, kind));
	if (error)
		error->sys_errno = sys_errno;
	return -PTVM_SYSTEM;
}

int perf_open(const struct perf_kernel *kernel, enum perf_kind kind,
	      const struct perf_event_attr *attr, const struct perf_place *place,
	      struct ptvm_error *error)
{
	struct perf_event_attr copy = *attr; /* the kernel writes its own size there on E2BIG */
	int fd;

	do
		fd = kernel->open(kernel->context, &copy, place->tid, place->cpu, place->group_fd);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? fail_open(kind, place, error) : fd;
}

int perf_redirect(const struct perf_kernel *kernel, int fd, int owner_fd, struct ptvm_error *error)
{
	if (kernel->control(kernel->context, fd, PERF_EVENT_IOC_SET_OUTPUT,
			    (unsigned long)owner_fd))
		return ptvm_fail_errno(error, "an event cannot share a buffer");
	return 0;
}

int perf_filter(const struct perf_kernel *kernel, int fd, const char *filter,
		struct ptvm_error *error)
{
	if (!kernel->control(kernel->context, fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter))
		return 0;
	if (errno == EOPNOTSUPP || errno == ENOSPC)
		return ptvm_fail(error, PTVM_SYSTEM,
				 "filter '%s': this CPU has no such filter, or not so many",
				 filter);
	return ptvm_fail_errno(error, "filter '%s'", filter);
}

int perf_switch(const struct perf_kernel *kernel, int fd, bool on, struct ptvm_error *error)
{
	if (kernel->control(kernel->context, fd,
			    on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
		return ptvm_fail_errno(error, "an event cannot be switched %s", on ? "on" : "off");
	return 0;
}

int perf_id(const struct perf_kernel *kernel, int fd, uint64_t *ret, struct ptvm_error *error)
{
	__u64 id;

	if (kernel->control(kernel->context, fd, PERF_EVENT_IOC_ID, (unsigned long)&id))
		return ptvm_fail_errno(error, "an event does not tell its id");
	*ret = id;
	return 0;
}

uint64_t perf_lost(const struct perf_kernel *kernel, int fd)
{
	struct {
		uint64_t value, id, lost; /* as read_format asks for them */
	} count;

	if (kernel->read(kernel->context, fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count.lost;
}
