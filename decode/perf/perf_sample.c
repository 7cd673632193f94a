/* A SAMPLE is a row of fields. Each is there if its bit in sample_type is set, in the order of
 * perf_output_sample() (kernel/events/core.c). AUX comes after all others, so each of those has to
 * be read, or at least stepped over by its size. The trailer of other records is a shorter row,
 * with IDENTIFIER at its end, so that the id can be found before the event is known. */
#include "decode/perf/perf_sample.h"

#include "decode/base/byte_reader.h"
#include "decode/base/error.h"

enum { READ_ENABLED = 1, READ_RUNNING = 2, READ_ID = 4, READ_GROUP = 8, READ_LOST = 16 };

/* Bits of branch_sample_type; the second one is Linux 6.8's. */
enum { BRANCH_HW_INDEX = 1 << 17, BRANCH_COUNTERS = 1 << 19 };

static uint64_t take_u64(struct byte_reader *row)
{
	return byte_reader_number(row, 8);
}

/* `count` items of `size` bytes. */
static struct bytes take_items(struct byte_reader *row, uint64_t count, uint64_t size)
{
	return byte_reader_take(row, count > UINT64_MAX / size ? UINT64_MAX : count * size);
}

static void skip_read(struct byte_reader *row, uint64_t format)
{
	unsigned times = !!(format & READ_ENABLED) + !!(format & READ_RUNNING);
	unsigned each = 1 + !!(format & READ_ID) + !!(format & READ_LOST);

	if (format & READ_GROUP) {
		uint64_t count = take_u64(row);

		(void)byte_reader_take(row, 8 * times);
		(void)take_items(row, count, 8 * each);
	} else {
		(void)byte_reader_take(row, 8 * (times + each));
	}
}

static struct bytes take_branches(struct byte_reader *row, uint64_t branch_type)
{
	uint64_t count = take_u64(row);
	struct bytes branches;

	if (branch_type & BRANCH_HW_INDEX)
		(void)take_u64(row);
	branches = take_items(row, count, 24);
	if (branch_type & BRANCH_COUNTERS)
		(void)take_items(row, count, 8);
	return branches;
}

static void skip_registers(struct byte_reader *row, uint64_t mask)
{
	uint64_t abi = take_u64(row);

	if (abi)
		(void)byte_reader_take(row, 8 * (uint64_t)__builtin_popcountll(mask));
}

static void skip_stack(struct byte_reader *row)
{
	uint64_t size = take_u64(row);

	(void)byte_reader_take(row, size);
	if (size)
		(void)take_u64(row);
}

/* TID and CPU are pairs of 32 bits in both rows. */
static void take_thread(struct byte_reader *row, struct perf_sample *ret)
{
	uint64_t pair = take_u64(row);

	if (row->is_bad)
		return;
	ret->pid = (int32_t)(uint32_t)pair;
	ret->tid = (int32_t)(uint32_t)(pair >> 32);
}

static void take_cpu(struct byte_reader *row, struct perf_sample *ret)
{
	uint64_t pair = take_u64(row);

	if (!row->is_bad)
		ret->cpu = (int32_t)(uint32_t)pair;
}

static void take_front(struct byte_reader *row, uint64_t type, struct perf_sample *ret)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = take_u64(row);
	if (type & PERF_SAMPLE_IP)
		ret->ip = take_u64(row);
	if (type & PERF_SAMPLE_TID)
		take_thread(row, ret);
	if (type & PERF_SAMPLE_TIME)
		ret->time = take_u64(row);
	if (type & PERF_SAMPLE_ADDR)
		ret->address = take_u64(row);
	if (type & PERF_SAMPLE_ID)
		ret->id = take_u64(row);
	if (type & PERF_SAMPLE_STREAM_ID)
		(void)take_u64(row);
	if (type & PERF_SAMPLE_CPU)
		take_cpu(row, ret);
	if (type & PERF_SAMPLE_PERIOD)
		ret->period = take_u64(row);
}

static void take_middle(struct byte_reader *row, const struct perf_event *event,
			struct perf_sample *ret)
{
	uint64_t type = event->sample_type;

	if (type & PERF_SAMPLE_READ)
		skip_read(row, event->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		ret->callchain = take_items(row, take_u64(row), 8);
	if (type & PERF_SAMPLE_RAW)
		ret->raw = byte_reader_sized(row, 4);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		ret->branches = take_branches(row, event->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		skip_registers(row, event->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		skip_stack(row);
}

static void take_back(struct byte_reader *row, const struct perf_event *event,
		      struct perf_sample *ret)
{
	static const uint64_t words_before[] = { PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT,
						 PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION };
	static const uint64_t words_after[] = { PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP,
						PERF_SAMPLE_DATA_PAGE_SIZE,
						PERF_SAMPLE_CODE_PAGE_SIZE };
	uint64_t type = event->sample_type;

	for (size_t i = 0; i < sizeof(words_before) / sizeof(*words_before); i++)
		if (type & words_before[i])
			(void)take_u64(row);
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_registers(row, event->sample_regs_intr);
	for (size_t i = 0; i < sizeof(words_after) / sizeof(*words_after); i++)
		if (type & words_after[i])
			(void)take_u64(row);
	if (type & PERF_SAMPLE_AUX)
		ret->aux = byte_reader_sized(row, 8);
}

int perf_sample_read(const struct perf_event *event, struct bytes body, struct perf_sample *ret)
{
	struct byte_reader row = { .left = body };

	*ret = (struct perf_sample){ .pid = -1, .tid = -1, .cpu = -1 };
	take_front(&row, event->sample_type, ret);
	if (event->sample_type & ~(uint64_t)PERF_SAMPLE_KNOWN)
		return -PTVM_BAD_INPUT;
	take_middle(&row, event, ret);
	take_back(&row, event, ret);
	return row.is_bad ? -PTVM_BAD_INPUT : 0;
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
	struct byte_reader row;

	*ret = (struct perf_sample){ .pid = -1, .tid = -1, .cpu = -1 };
	if (size > body.size)
		return -PTVM_BAD_INPUT;
	if (!size)
		return 0;
	row = (struct byte_reader){ .left = bytes_slice(body, body.size - size, size) };
	if (type & PERF_SAMPLE_TID)
		take_thread(&row, ret);
	if (type & PERF_SAMPLE_TIME)
		ret->time = take_u64(&row);
	if (type & PERF_SAMPLE_ID)
		ret->id = take_u64(&row);
	if (type & PERF_SAMPLE_STREAM_ID)
		(void)take_u64(&row);
	if (type & PERF_SAMPLE_CPU)
		take_cpu(&row, ret);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = take_u64(&row);
	return 0;
}

uint64_t perf_sample_id(const struct perf_event *event, struct bytes body)
{
	const uint64_t before =
		PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	uint64_t type = event->sample_type, offset = 0;

	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return 0;
	if (!(type & PERF_SAMPLE_IDENTIFIER))
		offset = 8 * (uint64_t)__builtin_popcountll(type & before);
	return bytes_number(body, offset, 8);
}

uint64_t perf_trailer_id(const struct perf_event *event, struct bytes body)
{
	uint64_t type = event->sample_type, back = 8;

	if (!trailer_size(event) || !(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return 0;
	if (!(type & PERF_SAMPLE_IDENTIFIER))
		back += 8 * (uint64_t)__builtin_popcountll(
				    type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
	return back > body.size ? 0 : bytes_number(body, body.size - back, 8);
}
