#include "decode/perf/perf_walk.h"

#include "decode/base/error.h"
#include "decode/pt/aux_pages.h"

/* Types from TYPE_END on are damage: no kernel or perf is anywhere near. */
enum { HEADER = 8, AUXTRACE_SIZE = 48, TYPE_END = 256 };

enum {
	SEARCH_BYTES = 64 << 20, /* to search behind damage */
	ROW = 4,                 /* records that must follow on each other to be believed there */
	PAYLOAD_LEAST = 8,       /* bytes of a cut payload that are of use */
};

/* Bytes to read ahead: twice as many each time, until the walk steps over trace. */
enum { AHEAD_FIRST = 16 << 10, AHEAD_MOST = 1 << 20 };

/* Records of trace, ahead of the walk, up to which the kernel is asked to read. */
enum { INDEX_AHEAD = 256 };

/* Bytes before a record of trace that may be the group of records there. */
static uint64_t group_before(const struct perf_walk *walk, size_t i)
{
	const uint64_t *index = walk->data->aux_index.items;
	uint64_t distance = i ? index[i] - index[i - 1] : index[i];

	return walk->group_size < distance ? walk->group_size : distance;
}

/* The index of the trace tells where the next groups of records end: each with the header of the
 * trace behind it. The kernel reads them at once, where it would otherwise be asked for one after
 * the other. How long a group is, former ones tell; those that touch are asked for as one. */
static void prefetch_groups(struct perf_walk *walk)
{
	const uint64_t *index = walk->data->aux_index.items;
	size_t end = walk->data->aux_index.count, i = walk->index_ahead;

	if (end - walk->next_index > INDEX_AHEAD)
		end = walk->next_index + INDEX_AHEAD;
	if (i > walk->next_index + INDEX_AHEAD / 2)
		return;
	while (i < end) {
		uint64_t from = index[i] - group_before(walk, i), to = index[i];

		while (++i < end && index[i] - group_before(walk, i) <= to)
			to = index[i];
		aux_pages_prefetch(&walk->data->mapping, from, to + HEADER - from);
	}
	walk->index_ahead = i;
}

/* A group of records ends with the trace at `offset`. */
static void end_group(struct perf_walk *walk, uint64_t offset)
{
	uint64_t size = offset - walk->group_start, shrunk = walk->group_size / 8 * 7;

	size = size > shrunk ? size : shrunk;
	walk->group_size = size < AHEAD_MOST ? size : AHEAD_MOST;
	prefetch_groups(walk);
}

void perf_walk_init(struct perf_walk *walk, const struct perf_data *data, struct arena *arena)
{
	uint64_t left = data->file.size - data->data_offset;

	*walk = (struct perf_walk){ .data = data,
				    .arena = arena,
				    .all = data->mapping.size ? data->mapping : data->file,
				    .position = data->data_offset,
				    .ahead_step = AHEAD_FIRST / 2,
				    .group_start = data->data_offset,
				    .group_size = AHEAD_FIRST };
	walk->truncated = !data->is_pipe && (!data->data_size || data->data_size > left);
	walk->end = data->data_offset +
		    (data->data_size && data->data_size < left ? data->data_size : left);
	prefetch_groups(walk);
}

/* Bytes that may be records in a row: the trace behind the next header that the index names is not.
 */
static uint64_t records_left(const struct perf_walk *walk)
{
	uint64_t next = walk->next_index < walk->data->aux_index.count
				? walk->data->aux_index.items[walk->next_index]
				: walk->end;

	return next >= walk->position ? next - walk->position + HEADER : UINT64_MAX;
}

/* Records lie in small groups between long stretches of trace, which must not be read. */
static void read_ahead(struct perf_walk *walk)
{
	uint64_t left = records_left(walk);

	if (walk->position + HEADER <= walk->ahead)
		return;
	walk->ahead_step = walk->position >= walk->ahead + AHEAD_FIRST ? AHEAD_FIRST
			   : walk->ahead_step < AHEAD_MOST             ? 2 * walk->ahead_step
								       : AHEAD_MOST;
	aux_pages_prefetch(&walk->data->mapping, walk->position,
			   left < walk->ahead_step ? left : walk->ahead_step);
	walk->ahead = walk->position + walk->ahead_step;
}

void perf_walk_deinit(struct perf_walk *walk)
{
	perf_unpack_deinit(&walk->unpack);
}

static void note(struct perf_walk *walk, uint64_t offset, const char *reason)
{
	if (walk->bad_reason)
		return;
	walk->bad_reason = reason;
	walk->bad_offset = offset;
}

static void read_header(const uint8_t *p, struct perf_item *ret)
{
	*ret = (struct perf_item){
		.data = p,
		.type = (uint32_t)load_le(p, 4),
		.misc = (uint16_t)load_le(p + 4, 2),
		.size = (uint16_t)load_le(p + 6, 2),
	};
}

/* NULL, or why this cannot be a record. */
static const char *header_fault(const struct perf_item *item, uint64_t left)
{
	/* Compressed bytes and the features in a pipe have any size, and a build id as perf inject
	 * writes it has 100 bytes and more. */
	bool may_be_odd = item->type == PERF_COMPRESSED || item->type == PERF_HEADER_FEATURE ||
			  item->type == PERF_HEADER_BUILD_ID;

	if (item->size < HEADER)
		return "record smaller than its header";
	if (!item->type || item->type >= TYPE_END)
		return "no such type of record";
	if (item->size % 8 && !may_be_odd)
		return "record size not a multiple of 8";
	if (item->type == PERF_AUXTRACE && item->size < AUXTRACE_SIZE)
		return "AUXTRACE record too short";
	if (item->size > left)
		return "record longer than the data";
	return NULL;
}

/* Whether the file may just have been cut off in this record, without other damage. */
static bool is_cut_off(const struct perf_item *item, uint64_t left)
{
	return item->size > left && item->type && item->type < TYPE_END;
}

/* The next AUXTRACE record after `from` that the index names and that is there, else the end. */
static uint64_t next_indexed(struct perf_walk *walk, uint64_t from)
{
	for (; walk->next_index < walk->data->aux_index.count; walk->next_index++) {
		uint64_t offset = walk->data->aux_index.items[walk->next_index], type, size;

		if (offset <= from)
			continue;
		if (offset >= walk->end)
			break;
		if (bytes_read(walk->all, offset, 4, &type) && type == PERF_AUXTRACE &&
		    bytes_read(walk->all, offset + 6, 2, &size) && size >= AUXTRACE_SIZE)
			return offset;
	}
	return walk->end;
}

/* Bytes that follow the record outside its size. */
static uint64_t payload_size(const struct perf_item *item)
{
	if (item->type == PERF_AUXTRACE)
		return load_le(item->data + 8, 8);
	if (item->type == PERF_TRACING_DATA && item->size >= 12)
		return (load_le(item->data + 8, 4) + 7) & ~(uint64_t)7;
	return 0;
}

/* Whether ROW records follow on each other from here on, which is hardly by chance. The answer must
 * not depend on the size of the data or on the index: a recording whose recorder was killed gets
 * these later, by --repair, and must be read in the same way before and after. So a record of trace
 * of which nothing is there does not count, as --repair takes it away. */
static bool is_row(const struct perf_walk *walk, uint64_t position)
{
	struct perf_item item;

	for (unsigned i = 0; i < ROW; i++) {
		const uint64_t left = walk->end - position;
		uint64_t payload;

		if (left < HEADER)
			return false;
		read_header(walk->all.data + position, &item);
		if (header_fault(&item, left))
			return false;
		payload = payload_size(&item);
		position += item.size;
		if (payload && walk->end - position < PAYLOAD_LEAST)
			return false;
		position += payload < walk->end - position ? payload : walk->end - position;
	}
	return true;
}

/* Go on at the next records; if there are none near, at the next AUXTRACE record that the index
 * names. */
static bool resume(struct perf_walk *walk)
{
	uint64_t next = next_indexed(walk, walk->position);
	uint64_t near = next - walk->position > SEARCH_BYTES ? walk->position + SEARCH_BYTES : next;

	for (uint64_t at = walk->position + 1; at < near; at++)
		if (walk->all.data[at] && is_row(walk, at)) {
			next = at;
			break;
		}
	walk->skipped_bytes += next - walk->position;
	walk->position = next;
	return next < walk->end;
}

/* A payload that reaches into the next record of the index has a damaged size. One that reaches
 * past the end may have, too, or the file was cut off. */
static void take_payload(struct perf_walk *walk, struct perf_item *item)
{
	uint64_t size = payload_size(item);
	uint64_t end = size ? next_indexed(walk, walk->position - 1) : walk->end;

	if (size > end - walk->position) {
		note(walk, item->file_offset, "record's trace is longer than the data");
		walk->truncated |= end == walk->end;
		size = end - walk->position;
	}
	item->payload = bytes_slice(walk->all, walk->position, size);
	item->payload_offset = walk->position;
	walk->position += size;
	if (!size)
		return;
	end_group(walk, item->file_offset);
	walk->group_start = walk->position;
}

static void unpack(struct perf_walk *walk, const struct perf_item *item)
{
	struct bytes compressed = { item->data + HEADER, item->size - (size_t)HEADER };

	if (item->type == PERF_COMPRESSED2) {
		uint64_t size;

		(void)bytes_read(compressed, 0, 8, &size);
		compressed = bytes_slice(compressed, 8, size);
	}
	perf_unpack_feed(&walk->unpack, compressed);
	walk->inner_offset = item->file_offset;
}

/* The next unpacked record; -PTVM_END when there is none. */
static int next_inner(struct perf_walk *walk, struct perf_item *ret)
{
	while (!walk->inner.size) {
		int r = perf_unpack_next(&walk->unpack, walk->arena, &walk->inner);

		if (r == -PTVM_END || r == -PTVM_NO_MEMORY)
			return r;
		if (r < 0)
			note(walk, walk->inner_offset, "compressed records are damaged");
	}
	read_header(walk->inner.data, ret);
	ret->file_offset = walk->inner_offset;
	if (ret->type == PERF_AUXTRACE || header_fault(ret, walk->inner.size)) {
		note(walk, walk->inner_offset, "impossible record in compressed data");
		walk->inner.size = 0;
		walk->unpack.is_broken = true;
		return -PTVM_END;
	}
	walk->inner = bytes_slice(walk->inner, ret->size, walk->inner.size);
	return 0;
}

/* Read the header at the position; false at its end or where it cannot be one. */
static bool next_outer(struct perf_walk *walk, struct perf_item *ret)
{
	uint64_t left = walk->end - walk->position;
	const char *fault = "record header cut off";

	if (left >= HEADER) {
		read_ahead(walk);
		read_header(walk->all.data + walk->position, ret);
		fault = header_fault(ret, left);
		walk->truncated |= is_cut_off(ret, left);
	} else {
		walk->truncated = true;
	}
	if (fault)
		note(walk, walk->position, fault);
	return !fault;
}

/* Go on in the next file, whose compressed records are a stream of their own. False when there is
 * none. */
static bool next_part(struct perf_walk *walk)
{
	const struct perf_part *part;

	if (walk->next_part == walk->data->parts.count)
		return false;
	part = &walk->data->parts.items[walk->next_part++];
	walk->position = part->offset;
	walk->end = part->offset + part->size;
	perf_unpack_deinit(&walk->unpack);
	return true;
}

/* The next record that is not inside of a compressed one; -PTVM_END after the last file's last. */
static int next_in_files(struct perf_walk *walk, struct perf_item *ret)
{
	do {
		while (walk->position < walk->end)
			if (next_outer(walk, ret))
				return 0;
			else if (!resume(walk))
				break;
	} while (next_part(walk));
	return -PTVM_END;
}

int perf_walk_next(struct perf_walk *walk, struct perf_item *ret)
{
	int r = next_inner(walk, ret);

	if (r != -PTVM_END)
		return r;
	if (next_in_files(walk, ret) < 0)
		return -PTVM_END;
	ret->file_offset = walk->position;
	walk->position += ret->size;
	take_payload(walk, ret);
	if (ret->type == PERF_COMPRESSED || ret->type == PERF_COMPRESSED2)
		unpack(walk, ret);
	return 0;
}
