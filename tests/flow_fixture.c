#include "tests/flow_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void flow_fixture_init(struct flow_fixture *f)
{
	assert_true(bench_machines_new(&f->machines));
	code_init(&f->code, &f->machines);
	f->config = bench_skylake_x;
	f->batch.room = FLOW_BATCH;
	f->run = (struct flow_run){ &f->flow, &f->batch };
}

void flow_fixture_deinit(struct flow_fixture *f)
{
	pt_bytes_free(&f->trace);
	bench_queue_free(&f->queue);
	code_free(&f->code);
	machines_free(&f->machines);
}

void flow_fixture_code(struct flow_fixture *f, uint64_t ip, const void *bytes, size_t size)
{
	assert_true(bench_add_code(f->machines.host, ip, bytes, size));
}

void flow_fixture_begin(struct flow_fixture *f, uint64_t ip, bool gaps_only)
{
	static const uint8_t pads[4 * PT_WINDOW_SLACK];
	const struct flow_code where = { .code = &f->code, .pid = 7 };
	struct pt_segment segment = { .queue = &f->queue.queue, .context = pt_context_unknown() };

	pt_put_bytes(&f->trace, pads, sizeof(pads));
	bench_queue_free(&f->queue);
	bench_queue_add(&f->queue, f->trace.data, f->trace.size, false);
	segment.to = f->trace.size;
	pt_clock_init(&segment.clock, &f->config);
	pt_flow_init(&f->flow, &segment, &f->config, &where, gaps_only);
	f->flow.context = f->flow.next_context;
	f->flow.told.time = f->flow.clock.now;
	f->flow.state = FLOW_RUNNING;
	f->flow.ip = ip;
	f->batch.count = f->batch.context_count = 0;
}

struct block *flow_fixture_block(struct flow_fixture *f, uint64_t ip)
{
	struct code_space *space = code_space_get(&f->code, f->machines.host, 7, ip, 64);
	struct block *block = block_get(&f->code, space, ip, 0);

	assert_non_null(block);
	return block;
}

static int item_text(const struct flow_item *item, char *to, size_t room)
{
	static const char *const names[] = {
		[FLOW_BLOCK] = "BLOCK",   [FLOW_TO] = "TO",     [FLOW_ASYNC] = "ASYNC",
		[FLOW_BEGIN] = "BEGIN",   [FLOW_END] = "END",   [FLOW_END_ASYNC] = "END_ASYNC",
		[FLOW_ABORT] = "ABORT",   [FLOW_TIME] = "TIME", [FLOW_CONTEXT] = "CONTEXT",
		[FLOW_GAP] = "GAP",       [FLOW_AT] = "AT",     [FLOW_EVENT] = "EVENT",
		[FLOW_VALUE] = "VALUE",   [FLOW_IP] = "IP",     [FLOW_HERE] = "HERE",
		[FLOW_SWITCH] = "SWITCH",
	};

	if (item->kind == FLOW_BLOCK)
		return snprintf(to, room, "BLOCK(%" PRIx64 ":%u%s)", item->block->ip, item->count,
				item->flags & FLOW_TAKEN ? "+" : "");
	return snprintf(to, room, "%s(%" PRIx64 ")", names[item->kind],
			item->kind == FLOW_GAP || item->kind == FLOW_TIME ? item->count
									  : item->value);
}

void flow_fixture_expect(const struct flow_fixture *f, const char *items)
{
	char text[4096] = "";
	size_t size = 0;

	for (uint32_t i = 0; i < f->batch.count; i++) {
		assert_true(size + 64 < sizeof(text));
		if (i)
			text[size++] = ' ';
		size += (size_t)item_text(&f->batch.items[i], text + size, sizeof(text) - size);
	}
	text[size] = 0;
	assert_string_equal(text, items);
}
