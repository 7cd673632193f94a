#include "decode/perf/perf_record.h"

#include <string.h>
#include <sys/mman.h>

#include "decode/base/bytes.h"
#include "decode/base/error.h"

enum { HEADER = 8 };

/* Whether the record has `size` bytes after its header. */
static bool has(const struct perf_record *record, uint32_t size)
{
	return record->size >= HEADER + size;
}

static uint64_t u64_at(const struct perf_record *record, uint32_t offset)
{
	return load_le(record->data + HEADER + offset, 8);
}

static uint32_t u32_at(const struct perf_record *record, uint32_t offset)
{
	return (uint32_t)load_le(record->data + HEADER + offset, 4);
}

static int32_t s32_at(const struct perf_record *record, uint32_t offset)
{
	return (int32_t)u32_at(record, offset);
}

static uint16_t u16_at(const struct perf_record *record, uint32_t offset)
{
	return (uint16_t)load_le(record->data + HEADER + offset, 2);
}

/* The text at `offset` when its NUL lies within the record, else NULL. */
static const char *text_at(const struct perf_record *record, uint32_t offset)
{
	if (!has(record, offset + 1))
		return NULL;
	const uint8_t *text = record->data + HEADER + offset;
	return memchr(text, 0, record->size - HEADER - offset) ? (const char *)text : NULL;
}

static void read_mmap2(const struct perf_record *record, struct perf_mmap *ret)
{
	if (record->misc & PERF_MISC_MMAP_BUILD_ID) {
		ret->build_id =
			build_id_make(record->data + HEADER + 36, record->data[HEADER + 32]);
	} else {
		ret->major = u32_at(record, 32);
		ret->minor = u32_at(record, 36);
		ret->inode = u64_at(record, 40);
		ret->generation = u64_at(record, 48);
	}
	ret->protection = u32_at(record, 56);
	ret->flags = u32_at(record, 60);
}

int perf_mmap_read(const struct perf_record *record, struct perf_mmap *ret)
{
	uint32_t name_offset = record->type == PERF_MMAP2 ? 64 : 32;
	const char *filename = text_at(record, name_offset);

	if (!filename)
		return -PTVM_BAD_INPUT;
	*ret = (struct perf_mmap){
		.pid = s32_at(record, 0),
		.tid = s32_at(record, 4),
		.start = u64_at(record, 8),
		.size = u64_at(record, 16),
		.page_offset = u64_at(record, 24),
		.filename = filename,
		.protection = record->misc & PERF_MISC_MMAP_DATA ? PROT_NONE : PROT_EXEC,
	};
	if (record->type == PERF_MMAP2)
		read_mmap2(record, ret);
	return 0;
}

int perf_comm_read(const struct perf_record *record, struct perf_comm *ret)
{
	const char *name = text_at(record, 8);

	if (!name)
		return -PTVM_BAD_INPUT;
	*ret = (struct perf_comm){
		.pid = s32_at(record, 0),
		.tid = s32_at(record, 4),
		.is_exec = record->misc & PERF_MISC_EXEC,
		.name = name,
	};
	return 0;
}

int perf_task_read(const struct perf_record *record, struct perf_task *ret)
{
	if (!has(record, 24))
		return -PTVM_BAD_INPUT;
	*ret = (struct perf_task){
		.pid = s32_at(record, 0),
		.parent_pid = s32_at(record, 4),
		.tid = s32_at(record, 8),
		.parent_tid = s32_at(record, 12),
		.time = u64_at(record, 16),
	};
	return 0;
}

int perf_switch_read(const struct perf_record *record, struct perf_switch *ret)
{
	bool is_wide = record->type == PERF_SWITCH_CPU_WIDE;

	if (is_wide && !has(record, 8))
		return -PTVM_BAD_INPUT;
	*ret = (struct perf_switch){
		.is_out = record->misc & PERF_MISC_SWITCH_OUT,
		.is_preempt = record->misc & PERF_MISC_SWITCH_PREEMPT,
		.other_pid = is_wide ? s32_at(record, 0) : -1,
		.other_tid = is_wide ? s32_at(record, 4) : -1,
	};
	return 0;
}

int perf_thread_read(const struct perf_record *record, int32_t *ret_pid, int32_t *ret_tid)
{
	if (!has(record, 8))
		return -PTVM_BAD_INPUT;
	*ret_pid = s32_at(record, 0);
	*ret_tid = s32_at(record, 4);
	return 0;
}

int perf_aux_read(const struct perf_record *record, struct perf_aux *ret)
{
	if (!has(record, 24))
		return -PTVM_BAD_INPUT;
	ret->offset = u64_at(record, 0);
	ret->size = u64_at(record, 8);
	ret->flags = u64_at(record, 16);
	return 0;
}

int perf_lost_read(const struct perf_record *record, struct perf_lost *ret)
{
	if (!has(record, 16))
		return -PTVM_BAD_INPUT;
	ret->id = u64_at(record, 0);
	ret->count = u64_at(record, 8);
	return 0;
}

int perf_lost_samples_read(const struct perf_record *record, uint64_t *ret)
{
	if (!has(record, 8))
		return -PTVM_BAD_INPUT;
	*ret = u64_at(record, 0);
	return 0;
}

int perf_ksymbol_read(const struct perf_record *record, struct perf_ksymbol *ret)
{
	const char *name = text_at(record, 16);

	if (!name)
		return -PTVM_BAD_INPUT;
	*ret = (struct perf_ksymbol){
		.address = u64_at(record, 0),
		.size = u32_at(record, 8),
		.type = u16_at(record, 12),
		.flags = u16_at(record, 14),
		.name = name,
	};
	return 0;
}

int perf_bpf_event_read(const struct perf_record *record, struct perf_bpf_event *ret)
{
	if (!has(record, 16))
		return -PTVM_BAD_INPUT;
	ret->type = u16_at(record, 0);
	ret->flags = u16_at(record, 2);
	ret->id = u32_at(record, 4);
	memcpy(ret->tag, record->data + HEADER + 8, sizeof(ret->tag));
	return 0;
}

int perf_text_poke_read(const struct perf_record *record, struct perf_text_poke *ret)
{
	if (!has(record, 12))
		return -PTVM_BAD_INPUT;

	uint16_t old_size = u16_at(record, 8), new_size = u16_at(record, 10);

	if (!has(record, 12 + (uint32_t)old_size + new_size))
		return -PTVM_BAD_INPUT;
	*ret = (struct perf_text_poke){
		.address = u64_at(record, 0),
		.old_size = old_size,
		.new_size = new_size,
		.old_bytes = record->data + HEADER + 12,
		.new_bytes = record->data + HEADER + 12 + old_size,
	};
	return 0;
}

int perf_thread_map_entry(const struct perf_record *record, uint64_t index, int32_t *ret_tid,
			  char ret_name[17])
{
	enum { ENTRY = 24, FIRST = 8 };

	if (!has(record, FIRST) || index >= u64_at(record, 0) ||
	    index >= (uint64_t)(record->size - HEADER - FIRST) / ENTRY)
		return -PTVM_END;

	uint32_t offset = FIRST + (uint32_t)index * ENTRY;

	*ret_tid = s32_at(record, offset);
	memcpy(ret_name, record->data + HEADER + offset + 8, 16);
	ret_name[16] = 0;
	return 0;
}
