/* The cases of tests/golden: test_golden DIRECTORY; with the name of one of them, prints the flow
 * that is found. The words of a flow:
 *	401000		this instruction ran; in front of `taken` a conditional branch that jumped
 *	begin X, end X, end-async X, to X, async X, abort	see enum flow_kind
 *	host 64, guest 32 cr3=X vmcs=X in-tx if-clear		a context, with what is not usual
 *	time X		host time from here on, in TSC ticks
 *	gap WORDS at X	a stretch that could not be followed
 *	event NAME X, event-here NAME X		a packet of its own, the second with an IP */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/cleanup.h"
#include "decode/pt_dump.h"
#include "tests/flow_bench.h"
#include "tests/ptt.h"

enum { CASES_MAX = 256 };

struct trace {
	struct text text;
	const struct flow_batch *batch;
};

static void add(struct text *text, const char *word)
{
	text_puts(text, word);
	text_putc(text, ' ');
}

static void add_hex(struct text *text, const char *before, uint64_t value)
{
	text_puts(text, before);
	text_hex(text, value, 0);
	text_putc(text, ' ');
}

static void add_context(struct text *text, const struct pt_context *context)
{
	text_puts(text, context->nr ? "guest " : "host ");
	text_dec(text, context->bits, 0, ' ');
	text_putc(text, ' ');
	if (context->cr3)
		add_hex(text, "cr3=", context->cr3);
	if (context->vmcs != PT_NO_VMCS)
		add_hex(text, "vmcs=", context->vmcs);
	if (context->in_tx)
		add(text, "in-tx");
	if (context->if_clear)
		add(text, "if-clear");
}

static void add_block(struct text *text, const struct flow_item *item)
{
	const struct block *block = item->block;

	for (uint32_t i = 0; i < item->count; i++)
		add_hex(text, "", block->insns[i].ip);
	if (item->flags & FLOW_TAKEN && item->count == block->count &&
	    block->end == BLOCK_CONDITIONAL)
		add(text, "taken");
}

/* Where PSBs are is no part of the flow. */
static void add_event(struct text *text, const struct flow_item *item, uint64_t value)
{
	const struct pt_packet packet = { .kind = (enum pt_packet_kind)item->count };
	struct text name = { 0 };

	if (packet.kind == PT_PSB)
		return;
	pt_packet_text(&name, &packet);
	add(text, item->flags & FLOW_TAKEN ? "event-here" : "event");
	text_add(text, name.data, strcspn(name.data, " "));
	add_hex(text, " ", value);
	text_free(&name);
}

static void add_item(struct text *text, const struct flow_batch *batch,
		     const struct flow_item *item)
{
	switch ((enum flow_kind)item->kind) {
	case FLOW_BLOCK: add_block(text, item); break;
	case FLOW_TO: add_hex(text, "to ", item->value); break;
	case FLOW_ASYNC: add_hex(text, "async ", item->value); break;
	case FLOW_BEGIN: add_hex(text, "begin ", item->value); break;
	case FLOW_END: add_hex(text, "end ", item->value); break;
	case FLOW_END_ASYNC: add_hex(text, "end-async ", item->value); break;
	case FLOW_ABORT: add(text, "abort"); break;
	case FLOW_TIME: add_hex(text, "time ", item->value); break;
	case FLOW_CONTEXT: add_context(text, &batch->contexts[item->value]); break;
	case FLOW_GAP:
		add(text, "gap");
		add(text, gap_text((enum gap_kind)item->count));
		break;
	case FLOW_AT: add_hex(text, "at ", item->value); break;
	case FLOW_EVENT: add_event(text, item, item[1].value); break;
	case FLOW_VALUE: break;
	case FLOW_IP: add_hex(text, "ip ", item->value); break;
	case FLOW_HERE: add_hex(text, "here ", item->value); break;
	case FLOW_SWITCH: add(text, "switch"); break;
	}
}

static void decode_segment(const struct ptt *ptt, const struct pt_segment *segment,
			   const struct flow_code *where, struct text *text)
{
	struct flow_batch *batch = malloc(sizeof(*batch));
	struct pt_flow flow;
	int r;

	assert_non_null(batch);
	pt_flow_init(&flow, segment, &ptt->config, where, false);
	do {
		batch->room = FLOW_BATCH;
		r = pt_flow_run(&flow, batch);
		for (uint32_t i = 0; i < batch->count; i++)
			add_item(text, batch, &batch->items[i]);
	} while (!r);
	free(batch);
}

static void make_machines(const struct ptt *ptt, struct machines *ret)
{
	assert_true(bench_machines_new(ret));
	for (unsigned m = 0; m < 2; m++)
		for (size_t i = 0; i < ptt->code[m].count; i++) {
			const struct ptt_code *code = &ptt->code[m].items[i];

			assert_true(bench_add_code(m ? ret->guests[0] : ret->host, code->address,
						   code->bytes, code->size));
		}
}

/* Spans of at most `span` bytes; the recorder's losses lie between two. */
static void make_queue(const struct ptt *ptt, size_t span, struct bench_queue *ret)
{
	unsigned next = 0;
	size_t from = 0;
	bool lost = false;

	while (from < ptt->trace.size) {
		size_t end = next < ptt->lost_count ? ptt->lost[next] : ptt->trace.size;
		size_t size = end - from < span ? end - from : span;

		bench_queue_add(ret, ptt->trace.data + from, size, lost);
		from += size;
		lost = next < ptt->lost_count && from == ptt->lost[next];
		next += lost;
	}
}

/* The flow as words. */
static void decode(const struct ptt *ptt, size_t span, struct text *ret)
{
	struct bench_queue queue = { 0 };
	struct pt_segment segment;
	struct machines machines;
	struct pt_walk walk;
	struct code code;
	struct flow_code where = { .code = &code, .pid = 0 };

	make_machines(ptt, &machines);
	make_queue(ptt, span, &queue);
	code_init(&code, &machines);
	pt_walk_init(&walk, &queue.queue, &ptt->config, &ptt->offsets, UINT64_MAX);
	while (!pt_walk_next(&walk, &segment))
		decode_segment(ptt, &segment, &where, ret);
	text_putc(ret, 0);
	code_free(&code);
	machines_free(&machines);
	bench_queue_free(&queue);
}

/* Where nobody asks for what ran, it is only counted: the same, also with what is remembered. */
static void assert_counted(const struct ptt *ptt)
{
	struct bench_count listed, counted;
	struct bench_queue queue = { 0 };
	struct machines machines;

	make_machines(ptt, &machines);
	for (int i = 0; i < 5; i++)
		make_queue(ptt, SIZE_MAX, &queue);
	bench_count(&queue.queue, &ptt->config, &machines, false, &listed);
	bench_count(&queue.queue, &ptt->config, &machines, true, &counted);
	assert_int_equal(counted.insns, listed.insns);
	assert_int_equal(counted.gaps.count, listed.gaps.count);
	for (size_t i = 0; i < listed.gaps.count; i++) {
		assert_int_equal(counted.gaps.items[i].gap, listed.gaps.items[i].gap);
		assert_int_equal(counted.gaps.items[i].ip, listed.gaps.items[i].ip);
		assert_int_equal(counted.gaps.items[i].tsc, listed.gaps.items[i].tsc);
	}
	bench_list_free(&listed.gaps);
	bench_list_free(&counted.gaps);
	machines_free(&machines);
	bench_queue_free(&queue);
}

/* What -D prints of some bytes, without their offsets and values. */
static void dump_bytes(const uint8_t *bytes, size_t size, struct text *ret)
{
	enum { LINE_HEAD = 62 };
	_cleanup_free_ char *data = NULL;
	size_t data_size = 0;
	FILE *file = open_memstream(&data, &data_size);
	struct page_trail nowhere = { .mapping = &(struct bytes){ NULL, 0 } };
	char *rest, *line;

	assert_non_null(file);
	pt_dump(bytes, size, 0, &nowhere, file);
	assert_int_equal(fclose(file), 0);
	rest = data;
	while ((line = strsep(&rest, "\n")) && *line) {
		text_puts(ret, line + LINE_HEAD);
		text_putc(ret, '\n');
	}
}

static void dump(const struct ptt *ptt, struct text *ret)
{
	size_t from = 0;

	for (unsigned i = 0; i <= ptt->lost_count; i++) {
		size_t to = i < ptt->lost_count ? ptt->lost[i] : ptt->trace.size;

		dump_bytes(ptt->trace.data + from, to - from, ret);
		from = to;
	}
	text_putc(ret, 0);
}

/* Both texts from a little before the first difference on. */
static void assert_text(const struct ptt *ptt, const char *what, const char *found,
			const char *expected)
{
	size_t same = 0, from;

	if (!strcmp(found, expected))
		return;
	while (found[same] && found[same] == expected[same])
		same++;
	from = same > 60 ? same - 60 : 0;
	fail_msg("%s, %s\nexpected ...%.300s\nfound    ...%.300s", ptt->path, what, expected + from,
		 found + from);
}

static void check(void **state)
{
	struct text flow = { 0 }, bytewise = { 0 }, packets = { 0 };
	struct ptt ptt;

	ptt_read(*state, &ptt);
	dump(&ptt, &packets);
	assert_text(&ptt, "dump", packets.data, ptt.dump.data);
	decode(&ptt, SIZE_MAX, &flow);
	assert_text(&ptt, "flow", flow.data, ptt.flow.data);
	decode(&ptt, 1, &bytewise);
	assert_text(&ptt, "flow of single bytes", bytewise.data, ptt.flow.data);
	assert_counted(&ptt);
	text_free(&flow);
	text_free(&bytewise);
	text_free(&packets);
	ptt_free(&ptt);
}

static int is_case(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end && !strcmp(end, ".ptt");
}

static int print_flow(const char *path)
{
	struct text flow = { 0 };
	struct ptt ptt;

	ptt_read(path, &ptt);
	decode(&ptt, SIZE_MAX, &flow);
	(void)puts(flow.data);
	text_free(&flow);
	ptt_free(&ptt);
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[CASES_MAX] = { 0 };
	struct dirent **entries;
	int count, r;

	if (argc != 2)
		return 1;
	count = scandir(argv[1], &entries, is_case, alphasort);
	if (count < 0 && errno == ENOTDIR)
		return print_flow(argv[1]);
	if (count < 1 || count > CASES_MAX)
		return 1;
	for (int i = 0; i < count; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", argv[1], entries[i]->d_name) < 0)
			abort();
		tests[i] = (struct CMUnitTest){ entries[i]->d_name, check, NULL, NULL, path };
	}
	r = _cmocka_run_group_tests("golden", tests, (size_t)count, NULL, NULL);
	for (int i = 0; i < count; i++) {
		free(tests[i].initial_state);
		free(entries[i]);
	}
	free(entries);
	return r;
}
