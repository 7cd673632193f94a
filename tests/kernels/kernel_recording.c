/* kernel_recording LOG DIRECTORY VCPUS: what a guest's kernel executed (insn_log.h) becomes
 * DIRECTORY/data, a recording with the trace that hardware would write of it, all in one guest,
 * user code filtered out; and DIRECTORY/truth.N, the addresses of what retired on vCPU N, with the
 * time in ns before what came behind a PSB+, which is all that tells time. The copies of the kernel
 * are there: kcore_dir__1 of before and `after`, whose changes are added as `ptvm record` does. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "decode/code/kallsyms.h"
#include "decode/code/x86_insn.h"
#include "guest/kallsyms_changes.h"
#include "guest/kcore_changes.h"
#include "tests/kernels/insn_log.h"
#include "tests/perf_build.h"
#include "tests/sim_pt.h"

enum {
	PSB_BYTES = 4096,
	SEED = 1,
	VMCS = 0x1000,
	CR3 = 0x2000,
	NS_PER_TICK = 200, /* the emulator is that much slower than hardware */
	TSC_PER_NS = 2,
	PERF_ZERO = 1000 /* by perf_build_pt() */
};

/* Instructions of the log, by number - 1. */
struct code {
	struct insn *insns;
	struct log_insn *logged;
	size_t count;
};

/* An interrupt or exception between step `at` and the next one, in the kernel. */
struct event {
	size_t at;
	uint64_t ip; /* where the kernel was to go on, zero if that is unknown */
	bool is_fault, is_software;
};

struct time_mark {
	size_t at;
	uint64_t tsc;
};

/* What a vCPU did. */
struct path {
	const struct code *code;
	const struct symbols *symbols;
	struct {
		uint32_t *items;
		size_t count, room;
	} steps;
	struct {
		struct time_mark *items;
		size_t count, room;
	} times;
	struct {
		struct event *items;
		size_t count, room;
	} events;
	struct {
		size_t *items; /* of the events, those that have not returned */
		size_t count, room;
	} open;
	size_t unexplained;
};

static void *read_whole(const char *path, size_t item, size_t *count)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 ||
	    fseek(file, 0, SEEK_SET) || !(bytes = malloc((size_t)size + 1)) ||
	    fread(bytes, 1, (size_t)size, file) != (size_t)size) {
		perror(path);
		exit(1);
	}
	(void)fclose(file);
	*count = (size_t)size / item;
	return bytes;
}

static void code_load(const char *prefix, struct code *code)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s.insns-0", prefix);
	code->logged = read_whole(path, sizeof(*code->logged), &code->count);
	code->insns = calloc(code->count + 1, sizeof(*code->insns));
	if (!code->insns)
		abort();
	for (size_t i = 0; i < code->count; i++) {
		const struct log_insn *from = &code->logged[i];

		if (insn_disassemble(from->bytes, from->size, from->ip, 64, &code->insns[i]))
			code->insns[i] = (struct insn){ .ip = from->ip,
							.length = from->size,
							.class = INSN_UD };
	}
}

/* The instruction of a step; NULL: user code, or the end of the log. */
static const struct insn *insn_at(const struct path *path, size_t at)
{
	uint32_t step = at < path->steps.count ? path->steps.items[at] : LOG_USER;

	return step == LOG_USER ? NULL : &path->code->insns[step - 1];
}

/* The emulator begins an instruction again for each round of a string instruction, and for reasons
 * of its own. */
static bool is_begun_again(const struct path *path, uint32_t step)
{
	const struct insn *last = path->steps.count ? insn_at(path, path->steps.count - 1) : NULL;

	return last && step != LOG_USER && !insn_is_branch(last) &&
	       last->ip == path->code->insns[step - 1].ip;
}

static void path_load(struct path *path, const char *log)
{
	size_t count;
	uint32_t *steps = read_whole(log, sizeof(*steps), &count);

	for (size_t i = 0; i < count; i++) {
		if (steps[i] == LOG_TIME && i + 2 < count) {
			uint64_t time = steps[i + 1] | (uint64_t)steps[i + 2] << 32;
			struct time_mark mark = { path->steps.count, time / NS_PER_TICK };

			if (!vec_push(&path->times, mark))
				abort();
			i += 2;
		} else if (steps[i] <= path->code->count && !is_begun_again(path, steps[i]) &&
			   !vec_push(&path->steps, steps[i])) {
			abort();
		}
	}
	free(steps);
}

static bool begins_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/* The name of the handler that the CPU enters there by an interrupt or exception; NULL if it does
 * not. */
static const char *handler_at(const struct path *path, uint64_t ip)
{
	const struct symbol *symbol = symbols_find(path->symbols, ip);
	bool is_stub;

	if (!symbol)
		return NULL;
	is_stub = begins_with(symbol->name, "irq_entries_start") ||
		  begins_with(symbol->name, "spurious_entries_start");
	if (is_stub || (symbol->start == ip && (begins_with(symbol->name, "asm_exc_") ||
						begins_with(symbol->name, "asm_sysvec_"))))
		return symbol->name;
	return NULL;
}

static bool is_fault(const char *handler)
{
	static const char *const others[] = { "asm_exc_nmi", "asm_exc_debug", "asm_exc_int3",
					      "asm_exc_machine_check" };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(handler, others[i]))
			return false;
	return begins_with(handler, "asm_exc_");
}

static bool may_go_anywhere(const struct insn *insn)
{
	return insn->class >= INSN_RET && insn->class != INSN_VMENTRY;
}

/* Whether the flow goes from one instruction to that address if nothing happens between them. */
static bool leads_to(const struct insn *insn, uint64_t ip)
{
	switch ((enum insn_class)insn->class) {
	case INSN_JMP:
	case INSN_CALL: return ip == insn->target;
	case INSN_JCC: return ip == insn->target || ip == insn_next(insn);
	default: return may_go_anywhere(insn) || ip == insn_next(insn);
	}
}

/* The kernel goes on at `ip` after an IRET: the last event that may have come there is over. */
static void end_event(struct path *path, uint64_t ip)
{
	for (size_t i = path->open.count; i-- > 0;) {
		struct event *event = &path->events.items[path->open.items[i]];
		const struct insn *insn = insn_at(path, event->at);

		if (!event->is_fault && ip != insn->ip && !leads_to(insn, ip))
			continue;
		event->ip = ip;
		path->open.count--;
		memmove(&path->open.items[i], &path->open.items[i + 1],
			(path->open.count - i) * sizeof(*path->open.items));
		if (insn->class != INSN_IRET) /* which was to go there, too */
			return;
	}
}

static void begin_event(struct path *path, const struct event *event)
{
	if (!vec_push(&path->events, *event) || !vec_push(&path->open, path->events.count - 1))
		abort();
}

/* Where the kernel goes on after events is known from their ends. */
static void find_events(struct path *path)
{
	for (size_t i = 0; i < path->steps.count; i++) {
		const struct insn *insn = insn_at(path, i), *next = insn_at(path, i + 1);
		const char *handler = insn && next ? handler_at(path, next->ip) : NULL;
		struct event event = { .at = i };

		if (!insn || !next)
			continue;
		if (handler && (may_go_anywhere(insn) || !leads_to(insn, next->ip))) {
			event.is_fault = is_fault(handler);
			event.is_software = insn->class == INSN_INT;
			begin_event(path, &event);
		} else if (!leads_to(insn, next->ip)) {
			path->unexplained++;
		} else if (insn->class == INSN_IRET) {
			end_event(path, next->ip);
		}
	}
}

struct encoder {
	struct sim_pt pt;
	struct path *path;
	FILE *truth;
	size_t next_event, next_time;
};

static void tell(struct encoder *encoder, uint64_t value)
{
	if (fwrite(&value, sizeof(value), 1, encoder->truth) != 1) {
		perror("truth");
		exit(1);
	}
}

static void retire(struct encoder *encoder, const struct insn *insn, uint64_t to)
{
	struct sim_pt *pt = &encoder->pt;

	tell(encoder, insn->ip);
	switch ((enum insn_class)insn->class) {
	case INSN_PLAIN:
	case INSN_UD:
	case INSN_VMENTRY:
	case INSN_JMP: break;
	case INSN_CALL:
		if (insn->target != insn_next(insn))
			sim_pt_call(pt, insn_next(insn));
		break;
	case INSN_JCC: sim_pt_cond(pt, to == insn->target); break;
	case INSN_RET: sim_pt_ret(pt, to); break;
	case INSN_CALL_INDIRECT:
		sim_pt_indirect(pt, to);
		sim_pt_call(pt, insn_next(insn));
		break;
	case INSN_JMP_INDIRECT: sim_pt_indirect(pt, to); break;
	default: sim_pt_branch(pt, PT_TIP, to, false);
	}
}

static void interrupt(struct encoder *encoder, const struct insn *insn, const struct event *event,
		      uint64_t handler)
{
	uint64_t ip = event->ip ? event->ip : insn_next(insn);

	if (event->is_software) {
		retire(encoder, insn, handler);
		return;
	}
	if (event->is_fault)
		ip = insn->ip;
	if (ip != insn->ip)
		retire(encoder, insn, ip);
	sim_pt_fup(&encoder->pt, ip);
	sim_pt_branch(&encoder->pt, PT_TIP, handler, false);
}

/* The guest is left for the host, which is not traced but tells the time. */
static void visit_host(struct encoder *encoder, uint64_t ip)
{
	struct sim_pt *pt = &encoder->pt;

	if (pt->enabled) {
		sim_pt_fup(pt, ip);
		sim_pt_branch(pt, PT_TIP_PGD, 0, true);
	}
	pt->state.nr = false;
	sim_pt_boundary(pt);
	pt->state.nr = true;
	sim_pt_pip(pt);
	tell(encoder, PERF_ZERO + pt->tsc / TSC_PER_NS);
}

static bool is_psb_due(const struct sim_pt *pt)
{
	return !pt->psbs.count ||
	       pt->out.size - pt->psbs.items[pt->psbs.count - 1].position >= PSB_BYTES;
}

/* What is due before a step. */
static void prepare(struct encoder *encoder, size_t at, uint64_t ip)
{
	struct path *path = encoder->path;

	while (encoder->next_time < path->times.count &&
	       path->times.items[encoder->next_time].at <= at)
		sim_pt_tick(&encoder->pt,
			    path->times.items[encoder->next_time++].tsc - encoder->pt.tsc);
	if (is_psb_due(&encoder->pt))
		visit_host(encoder, ip);
	if (!encoder->pt.enabled)
		sim_pt_branch(&encoder->pt, PT_TIP_PGE, ip, false);
}

static void encode_step(struct encoder *encoder, size_t at)
{
	struct path *path = encoder->path;
	const struct insn *insn = insn_at(path, at), *next = insn_at(path, at + 1);
	const struct event *event = NULL;

	if (!insn)
		return;
	if (encoder->next_event < path->events.count &&
	    path->events.items[encoder->next_event].at == at)
		event = &path->events.items[encoder->next_event++];
	prepare(encoder, at, insn->ip);
	if (!next) {
		tell(encoder, insn->ip);
		sim_pt_branch(&encoder->pt, PT_TIP_PGD, 0, true);
	} else if (event) {
		interrupt(encoder, insn, event, next->ip);
	} else {
		retire(encoder, insn, next->ip);
	}
}

static void encode(struct path *path, FILE *truth, struct pt_bytes *ret)
{
	const struct sim_pt_options options = {
		.compress_returns = true,
		.tsc = true,
		.mtc = true, /* for TMA: time stands still between PSBs */
		.mtc_shift = 3,
		.ctc_n = 160,
		.ctc_d = 2
	};
	struct encoder encoder = { .path = path, .truth = truth };

	sim_pt_init(&encoder.pt, &options, SEED, path->times.count ? path->times.items[0].tsc : 0);
	encoder.pt.state.vmcs = VMCS;
	encoder.pt.state.cr3 = CR3;
	for (size_t i = 0; i < path->steps.count; i++)
		encode_step(&encoder, i);
	*ret = encoder.pt.out;
	encoder.pt.out = (struct pt_bytes){ 0 };
	sim_pt_free(&encoder.pt);
}

static void path_free(struct path *path)
{
	vec_free(&path->steps);
	vec_free(&path->times);
	vec_free(&path->events);
	vec_free(&path->open);
}

static void add_vcpu(struct perf_build *build, const struct code *code,
		     const struct symbols *symbols, char **argv, unsigned vcpu)
{
	struct path path = { .code = code, .symbols = symbols };
	struct pt_bytes trace;
	char name[PATH_MAX];

	(void)snprintf(name, sizeof(name), "%s.steps-%u", argv[1], vcpu);
	path_load(&path, name);
	find_events(&path);
	(void)snprintf(name, sizeof(name), "%s/truth.%u", argv[2], vcpu);
	_cleanup_fclose_ FILE *truth = fopen(name, "wb");
	if (!truth) {
		perror(name);
		exit(1);
	}
	encode(&path, truth, &trace);
	if (path.times.count)
		build->reference = path.times.items[path.times.count - 1].tsc + 1;
	perf_build_aux(build, vcpu, 0, trace.data, trace.size);
	(void)printf("vCPU %u: %zu steps, %zu bytes of trace, %zu events, %zu steps unexplained\n",
		     vcpu, path.steps.count, trace.size, path.events.count, path.unexplained);
	pt_bytes_free(&trace);
	path_free(&path);
}

static void write_data(struct perf_build *build, const char *directory)
{
	struct bytes file = perf_build_file(build);
	char name[PATH_MAX];
	FILE *data;

	(void)snprintf(name, sizeof(name), "%s/data", directory);
	data = fopen(name, "wb");
	if (!data || fwrite(file.data, 1, file.size, data) != file.size || fclose(data)) {
		perror(name);
		exit(1);
	}
}

/* What the second copy has besides. */
static int write_changes(const char *directory, struct ptvm_error *error)
{
	char before[PATH_MAX], after[PATH_MAX], name[PATH_MAX];
	struct kcore_changes changes;
	int r;

	(void)snprintf(before, sizeof(before), "%s/kcore_dir__1", directory);
	(void)snprintf(after, sizeof(after), "%s/after", directory);
	(void)snprintf(name, sizeof(name), "%s/data.ptvm-kcore__1", directory);
	r = kcore_changes_write(before, after, name, &changes, error);
	(void)snprintf(name, sizeof(name), "%s/data.ptvm-kallsyms__1", directory);
	return r ? r : kallsyms_changes_write(before, after, name, error);
}

int main(int argc, char **argv)
{
	struct ptvm_error error = { 0 };
	char name[PATH_MAX];
	struct perf_build build = { 0 };
	struct symbols symbols = { 0 };
	struct code code = { 0 };

	if (argc != 4)
		return 2;
	code_load(argv[1], &code);
	(void)snprintf(name, sizeof(name), "%s/after/kallsyms", argv[2]);
	if (kallsyms_load(name, &symbols, &error) || write_changes(argv[2], &error)) {
		(void)fprintf(stderr, "%s\n", ptvm_error_text(&error));
		return 1;
	}
	perf_build_pt(&build, 0, 1);
	for (unsigned i = 0; i < strtoul(argv[3], NULL, 10); i++)
		add_vcpu(&build, &code, &symbols, argv, i);
	write_data(&build, argv[2]);
	perf_build_free(&build);
	symbols_free(&symbols);
	free(code.insns);
	free(code.logged);
	return 0;
}
