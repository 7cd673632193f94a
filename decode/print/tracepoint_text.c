#include "decode/print/tracepoint_text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <traceevent/event-parse.h>

#include "decode/base/cleanup.h"
#include "decode/base/library.h"
#include "decode/base/sandbox.h"
#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/print/trace_formats.h"

enum {
	/* A sample has fewer raw bytes: places and lengths in them are of 16 bits. */
	MOST_RAW = 1 << 16,
	RECORD_ROOM = 4 * MOST_RAW,
	MOST_TEXT = 1 << 20,
	MOST_MEMORY = 512 << 20, /* that the process may take beside what it begins with */
	PATIENCE = 20,           /* seconds; a busy machine may need some for one answer */
};

/* What the process is asked, followed by `size` bytes of the sample. */
struct question {
	uint64_t id, time_ns;
	int32_t cpu;
	uint32_t size;
};

/* The answer is the size of a text, and the text; or that there is none. */
static const uint32_t no_answer = UINT32_MAX;

#define TRACEEVENT_CALLS(call)                                                                     \
	call(tep_alloc) call(tep_find_event) call(tep_free) call(tep_parse_event)                  \
		call(tep_print_event) call(tep_register_print_string) call(tep_set_file_bigendian) \
			call(tep_set_function_resolver) call(tep_set_loglevel)                     \
				call(tep_set_long_size) call(trace_seq_destroy)                    \
					call(trace_seq_init) call(trace_seq_terminate)

struct traceevent_calls {
#define CALL(name) __typeof__(name) *name;
	TRACEEVENT_CALLS(CALL)
#undef CALL
};

/* What the process has. */
struct formatter {
	struct traceevent_calls calls;
	struct tep_handle *tep;
	const struct machines *machines;
	uint64_t time_ns; /* of the sample at hand */
	struct tep_record record;
	int socket;
};

static bool load_calls(struct traceevent_calls *ret)
{
#define NAME(name) #name,
	static const char *const names[] = { TRACEEVENT_CALLS(NAME) };
#undef NAME

	return library_load("libtraceevent.so.1", names, (void **)ret,
			    sizeof(names) / sizeof(*names));
}

static bool read_all(int fd, void *to, size_t size)
{
	uint8_t *p = to;

	while (size) {
		ssize_t got = recv(fd, p, size, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		size -= (size_t)got;
	}
	return true;
}

/* A head of `head_size` bytes and what follows it, at once where they fit. */
static bool write_all(int fd, const void *head, size_t head_size, struct bytes rest)
{
	struct iovec parts[] = { { (void *)(uintptr_t)head, head_size },
				 { (void *)(uintptr_t)rest.data, rest.size } };

	while (parts[0].iov_len || parts[1].iov_len) {
		const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		ssize_t done = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		for (int i = 0; i < 2; i++) {
			size_t part =
				(size_t)done < parts[i].iov_len ? (size_t)done : parts[i].iov_len;

			parts[i].iov_base = (char *)parts[i].iov_base + part;
			parts[i].iov_len -= part;
			done -= (ssize_t)part;
		}
	}
	return true;
}

/* A function of the host's kernel; called by the library, which keeps none of it. */
static char *name_function(void *context, unsigned long long *address, char **module)
{
	const struct formatter *formatter = context;
	struct symbol_view symbol;

	machine_symbol(formatter->machines->host, -1, *address, formatter->time_ns, &symbol);
	if (!symbol.name)
		return NULL;
	*address -= symbol.offset;
	*module = NULL;
	return (char *)(uintptr_t)symbol.name;
}

/* Lines of an address, a colon, a blank and the string in quotes. */
static void add_strings(struct formatter *formatter, struct bytes strings)
{
	_cleanup_free_ char *text = strndup((const char *)strings.data, strings.size);
	char *rest = text, *line, *string;

	while (text && (line = strsep(&rest, "\n"))) {
		uint64_t address = strtoull(line, &string, 16);

		if (string[0] == ' ' && string[1] == ':')
			string++;
		if (string[0] == ':' && string[1] == ' ')
			(void)formatter->calls.tep_register_print_string(formatter->tep, string + 2,
									 address);
	}
}

static bool add_formats(struct formatter *formatter, const struct trace_formats *formats)
{
	formatter->calls.tep_set_loglevel(TEP_LOG_NONE);
	formatter->tep = formatter->calls.tep_alloc();
	if (!formatter->tep)
		return false;
	formatter->calls.tep_set_file_bigendian(formatter->tep, TEP_LITTLE_ENDIAN);
	formatter->calls.tep_set_long_size(formatter->tep, (int)formats->long_size);
	(void)formatter->calls.tep_set_function_resolver(formatter->tep, name_function, formatter);
	for (size_t i = 0; i < formats->list.count; i++) {
		const struct trace_format *format = &formats->list.items[i];

		(void)formatter->calls.tep_parse_event(formatter->tep,
						       (const char *)format->text.data,
						       format->text.size, format->system);
	}
	if (formats->strings.size)
		add_strings(formatter, formats->strings);
	return true;
}

static bool answer(struct formatter *formatter, const struct question *question)
{
	const struct bytes nothing = { (const uint8_t *)"", 0 };
	struct traceevent_calls *calls = &formatter->calls;
	struct trace_seq text;
	uint32_t size;
	bool good;

	if (question->id > INT32_MAX || !calls->tep_find_event(formatter->tep, (int)question->id))
		return write_all(formatter->socket, &no_answer, sizeof(no_answer), nothing);
	formatter->time_ns = question->time_ns;
	formatter->record.cpu = question->cpu;
	formatter->record.size = (int)question->size;
	calls->trace_seq_init(&text);
	calls->tep_print_event(formatter->tep, &text, &formatter->record, "%s", TEP_PRINT_INFO);
	calls->trace_seq_terminate(&text);
	size = text.len < MOST_TEXT ? text.len : MOST_TEXT;
	good = text.state == TRACE_SEQ__GOOD &&
	       write_all(formatter->socket, &size, sizeof(size),
			 (struct bytes){ (const uint8_t *)text.buffer, size });
	calls->trace_seq_destroy(&text);
	return good;
}

static void limit(int resource, rlim_t most)
{
	const struct rlimit value = { most, most };

	(void)setrlimit(resource, &value);
}

/* Bytes of private memory now. */
static rlim_t memory_now(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	if (!file || fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		return 0;
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* What the process may do is little: it has memory, and its parent to talk to. */
static void confine(unsigned socket)
{
	int fd = open("/dev/null", O_RDWR);

	for (int i = 0; i <= 2 && fd >= 0; i++)
		(void)dup2(fd, i);
	(void)close_range(STDERR_FILENO + 1, socket - 1, 0);
	(void)close_range(socket + 1, UINT32_MAX, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_DATA, memory_now() + MOST_MEMORY);
	limit(RLIMIT_NOFILE, 0);
	limit(RLIMIT_FSIZE, 0);
	sandbox_enter();
}

/* The process: answers questions until there are no more. */
static void work(struct formatter *formatter, const struct trace_formats *formats)
{
	struct question question;

	confine((unsigned)formatter->socket);
	formatter->record.data = calloc(1, RECORD_ROOM);
	if (!formatter->record.data || !add_formats(formatter, formats))
		return;
	while (read_all(formatter->socket, &question, sizeof(question)) &&
	       question.size <= MOST_RAW &&
	       read_all(formatter->socket, formatter->record.data, question.size) &&
	       answer(formatter, &question))
		;
}

static void start(struct tracepoint_text *points, struct formatter *formatter,
		  const struct trace_formats *formats)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	int sockets[2];

	points->note = "no process for the samples of tracepoints: they are shown as bytes";
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return;
	points->pid = fork();
	if (!points->pid) {
		formatter->socket = sockets[1];
		(void)close(sockets[0]);
		work(formatter, formats);
		_exit(0);
	}
	(void)close(sockets[1]);
	if (points->pid < 0) {
		points->pid = 0;
		(void)close(sockets[0]);
		return;
	}
	(void)setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	points->socket = sockets[0];
	points->note = NULL;
}

void tracepoint_text_start(struct tracepoint_text *points, struct bytes section,
			   const struct machines *machines)
{
	struct formatter formatter = { .machines = machines };
	struct trace_formats formats = { 0 };

	*points = (struct tracepoint_text){ 0 };
	(void)trace_formats_read(section, &formats);
	if (!formats.list.count)
		points->note = "the recording has no formats of tracepoints: "
			       "their samples are shown as bytes";
	else if (!load_calls(&formatter.calls))
		points->note = "libtraceevent is not installed: "
			       "samples of tracepoints are shown as bytes";
	else
		start(points, &formatter, &formats);
	trace_formats_free(&formats);
}

static void add_bytes(struct text *text, struct bytes raw)
{
	static const char digits[] = "0123456789abcdef";

	text_puts(text, "raw:");
	for (size_t i = 0; i < raw.size; i++) {
		text_putc(text, ' ');
		text_putc(text, digits[raw.data[i] >> 4]);
		text_putc(text, digits[raw.data[i] & 15]);
	}
}

/* All but the lines and columns that the formats of some have. */
static void make_printable(char *text, size_t size)
{
	for (size_t start = 0, at = 0; at <= size; at++) {
		if (at < size && text[at] != '\n' && text[at] != '\t')
			continue;
		printable(text + start, at - start);
		start = at + 1;
	}
}

/* Ask the process; false where it did not answer as it should. */
static bool ask(struct tracepoint_text *points, const struct question *question, struct bytes raw,
		struct text *text)
{
	uint32_t size;

	if (!write_all(points->socket, question, sizeof(*question), raw) ||
	    !read_all(points->socket, &size, sizeof(size)) ||
	    (size > MOST_TEXT && size != no_answer))
		return false;
	if (size == no_answer) {
		add_bytes(text, raw);
		return true;
	}
	if (!text_reserve(text, size) || !read_all(points->socket, text->data + text->size, size))
		return false;
	make_printable(text->data + text->size, size);
	text->size += size;
	return true;
}

void tracepoint_text_add(struct tracepoint_text *points, uint64_t id, int32_t cpu, uint64_t time_ns,
			 struct bytes raw, struct text *text)
{
	const struct question question = { id, time_ns, cpu, (uint32_t)raw.size };

	if (points->pid && raw.size <= MOST_RAW) {
		if (ask(points, &question, raw, text))
			return;
		tracepoint_text_stop(points);
		points->note = "libtraceevent failed: samples of tracepoints from there on are "
			       "shown as bytes";
	}
	add_bytes(text, raw);
}

void tracepoint_text_stop(struct tracepoint_text *points)
{
	if (!points->pid)
		return;
	(void)close(points->socket);
	(void)kill(points->pid, SIGKILL);
	while (waitpid(points->pid, NULL, 0) < 0 && errno == EINTR)
		;
	points->pid = 0;
}
