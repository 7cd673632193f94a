/* A SAMPLE is a row of fields. Each is there if its bit in sample_type is set, in the order of
 * perf_output_sample() (kernel/events/core.c). AUX comes after all others, so each of those has to
 * be read, or at least stepped over by its size. The trailer of other records is a shorter row,
 * with IDENTIFIER at its end, so that the id can be found before the event is known. */
#include "decode/perf_sample.h"

#include "decode/base/error.h"

enum { READ_ENABLED = 1, READ_RUNNING = 2, READ_ID = 4, READ_GROUP = 8, READ_LOST = 16 };

/* Bits of branch_sample_type; the second one is Linux 6.8's. */
enum { BRANCH_HW_INDEX = 1 << 17, BRANCH_COUNTERS = 1 << 19 };

/* A place in the row. With a field that does not fit the row has ended: all behind it is read as 0.
 */
struct cursor {
	struct bytes body;
	uint64_t position;
	bool is_bad;
};

static struct bytes take(struct cursor *c, uint64_t size)
{
	struct bytes part = bytes_slice(c->body, c->position, size);

	c->is_bad |= part.size != size;
	c->position += part.size;
	return part;
}

static uint64_t take_u64(struct cursor *c)
{
	struct bytes field = take(c, 8);

	return field.size == 8 ? load_le(field.data, 8) : 0;
}

/* `count` items of `size` bytes. */
static struct bytes take_items(struct cursor *c, uint64_t count, uint64_t size)
{
	if (count > c->body.size / size) {
		c->is_bad = true;
		c->position = c->body.size;
		return (struct bytes){ NULL, 0 };
	}
	return take(c, count * size);
}

static void skip_read(struct cursor *c, uint64_t format)
{
	unsigned times = !!(format & READ_ENABLED) + !!(format & READ_RUNNING);
	unsigned each = 1 + !!(format & READ_ID) + !!(format & READ_LOST);

	if (format & READ_GROUP) {
		uint64_t count = take_u64(c);

		(void)take(c, 8 * times);
		(void)take_items(c, count, 8 * each);
	} else {
		(void)take(c, 8 * (times + each));
	}
}

static struct bytes take_raw(struct cursor *c)
{
	struct bytes size = take(c, 4);

	return take(c, size.size == 4 ? load_le(size.data, 4) : 0);
}

static struct bytes take_branches(struct cursor *c, uint64_t branch_type)
{
	uint64_t count = take_u64(c);
	struct bytes branches;

	if (branch_type & BRANCH_HW_INDEX)
		(void)take_u64(c);
	branches = take_items(c, count, 24);
	if (branch_type & BRANCH_COUNTERS)
		(void)take_items(c, count, 8);
	return branches;
}

static void skip_registers(struct cursor *c, uint64_t mask)
{
	uint64_t abi = take_u64(c);

	if (abi)
		(void)take(c, 8 * (uint64_t)__builtin_popcountll(mask));
}

static void skip_stack(struct cursor *c)
{
	uint64_t size = take_u64(c);

	(void)take(c, size);
	if (size)
		(void)take_u64(c);
}

/* TID and CPU are pairs of 32 bits in both rows. */
static void take_thread(struct cursor *c, struct perf_sample *ret)
{
	uint64_t pair = take_u64(c);

	if (c->is_bad)
		return;
	ret->pid = (int32_t)(uint32_t)pair;
	ret->tid = (int32_t)(uint32_t)(pair >> 32);
}

static void take_cpu(struct cursor *c, struct perf_sample *ret)
{
	uint64_t pair = take_u64(c);

	if (!c->is_bad)
		ret->cpu = (int32_t)(uint32_t)pair;
}

static void take_front(struct cursor *c, uint64_t type, struct perf_sample *ret)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = take_u64(c);
	if (type & PERF_SAMPLE_IP)
		ret->ip = take_u64(c);
	if (type & PERF_SAMPLE_TID)
		take_thread(c, ret);
	if (type & PERF_SAMPLE_TIME)
		ret->time = take_u64(c);
	if (type & PERF_SAMPLE_ADDR)
		ret->address = take_u64(c);
	if (type & PERF_SAMPLE_ID)
		ret->id = take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		(void)take_u64(c);
	if (type & PERF_SAMPLE_CPU)
		take_cpu(c, ret);
	if (type & PERF_SAMPLE_PERIOD)
		ret->period = take_u64(c);
}

static void take_middle(struct cursor *c, const struct perf_event *event, struct perf_sample *ret)
{
	uint64_t type = event->sample_type;

	if (type & PERF_SAMPLE_READ)
		skip_read(c, event->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		ret->callchain = take_items(c, take_u64(c), 8);
	if (type & PERF_SAMPLE_RAW)
		ret->raw = take_raw(c);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		ret->branches = take_branches(c, event->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		skip_registers(c, event->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		skip_stack(c);
}

static void take_back(struct cursor *c, const struct perf_event *event, struct perf_sample *ret)
{
	static const uint64_t words_before[] = { PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT,
						 PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION };
	static const uint64_t words_after[] = { PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP,
						PERF_SAMPLE_DATA_PAGE_SIZE,
						PERF_SAMPLE_CODE_PAGE_SIZE };
	uint64_t type = event->sample_type;

	for (size_t i = 0; i < sizeof(words_before) / sizeof(*words_before); i++)
		if (type & words_before[i])
			(void)take_u64(c);
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_registers(c, event->sample_regs_intr);
	for (size_t i = 0; i < sizeof(words_after) / sizeof(*words_after); i++)
		if (type & words_after[i])
			(void)take_u64(c);
	if (type & PERF_SAMPLE_AUX)
		ret->aux = take(c, take_u64(c));
}

int perf_sample_read(const struct perf_event *event, struct bytes body, struct perf_sample *ret)
{
	struct cursor c = { .body = body };

	*ret = (struct perf_sample){ .pid = -1, .tid = -1, .cpu = -1 };
	take_front(&c, event->sample_type, ret);
	if (event->sample_type & ~(uint64_t)PERF_SAMPLE_KNOWN)
		return -PTVM_BAD_INPUT;
	take_middle(&c, event, ret);
	take_back(&c, event, ret);
	return c.is_bad ? -PTVM_BAD_INPUT : 0;
}

/* Bytes that trailers of this event have; 0 when it has none. */
static uint32_t trailer_size(const struct perf_event *event)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	if (!(event->flags & PERF_FLAG_SAMPLE_ID_ALL))
		return 0;
	return 8 * (uint32_t)__builtin_popcountll(event->sample_type & fields);
}

int perf_trailer_read(const struct perf_event *event, struct bytes body, struct perf_sample *ret)
{
	uint32_t size = trailer_size(event);
	uint64_t type = event->sample_type;
	struct cursor c = { .body = body };

	*ret = (struct perf_sample){ .pid = -1, .tid = -1, .cpu = -1 };
	if (size > body.size)
		return -PTVM_BAD_INPUT;
	if (!size)
		return 0;
	c.position = body.size - size;
	if (type & PERF_SAMPLE_TID)
		take_thread(&c, ret);
	if (type & PERF_SAMPLE_TIME)
		ret->time = take_u64(&c);
	if (type & PERF_SAMPLE_ID)
		ret->id = take_u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		(void)take_u64(&c);
	if (type & PERF_SAMPLE_CPU)
		take_cpu(&c, ret);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = take_u64(&c);
	return 0;
}

uint64_t perf_sample_id(const struct perf_event *event, struct bytes body)
{
	const uint64_t before =
		PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	uint64_t type = event->sample_type, offset = 0, id;

	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return 0;
	if (!(type & PERF_SAMPLE_IDENTIFIER))
		offset = 8 * (uint64_t)__builtin_popcountll(type & before);
	(void)bytes_read(body, offset, 8, &id);
	return id;
}

uint64_t perf_trailer_id(const struct perf_event *event, struct bytes body)
{
	uint64_t type = event->sample_type, back = 8, id;

	if (!trailer_size(event) || !(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return 0;
	if (!(type & PERF_SAMPLE_IDENTIFIER))
		back += 8 * (uint64_t)__builtin_popcountll(
				    type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
	if (back > body.size)
		return 0;
	(void)bytes_read(body, body.size - back, 8, &id);
	return id;
}
