#include "guest/kcore_copy.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "guest/channel.h"
#include "guest/code_ranges.h"
#include "guest/kcore_head.h"

enum { PAGE = 4096 };

static int add_piece(struct kcore_copy *copy, const struct kcore_segment *segment,
		     const struct code_range *range, struct ptvm_error *error)
{
	uint64_t segment_end = segment->address + segment->size;
	uint64_t start = range->start > segment->address ? range->start : segment->address;
	uint64_t end = range->end < segment_end ? range->end : segment_end;
	struct kcore_piece piece;

	if (start >= end)
		return 0;
	if (end - start > KCORE_COPY_BYTES - copy->total)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "/proc/kcore: more than %d MiB of code (at %#" PRIx64 ")",
				 KCORE_COPY_BYTES >> 20, start);
	if (copy->pieces.count == KCORE_COPY_PIECES)
		return ptvm_fail(error, PTVM_BAD_INPUT, "/proc/kcore: more than %d pieces of code",
				 KCORE_COPY_PIECES);
	piece = (struct kcore_piece){
		.address = start,
		.size = end - start,
		.from = segment->offset + (start - segment->address),
	};
	copy->total += piece.size;
	return vec_push(&copy->pieces, piece) ? 0 : -PTVM_NO_MEMORY;
}

static uint64_t page_up(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void place_pieces(struct kcore_copy *copy)
{
	uint64_t to = page_up(sizeof(Elf64_Ehdr) + copy->pieces.count * sizeof(Elf64_Phdr));

	for (size_t i = 0; i < copy->pieces.count; i++) {
		copy->pieces.items[i].to = to;
		to += page_up(copy->pieces.items[i].size);
	}
}

static bool has_address(const struct kcore_copy *copy, uint64_t address)
{
	for (size_t i = 0; i < copy->pieces.count; i++)
		if (address - copy->pieces.items[i].address < copy->pieces.items[i].size)
			return true;
	return false;
}

int kcore_copy_plan(const struct kcore_head *head, const struct code_ranges *ranges,
		    struct kcore_copy *ret, struct ptvm_error *error)
{
	int r = 0;

	*ret = (struct kcore_copy){ .file = -1, .buffer = malloc(CHANNEL_READ_BYTES) };
	if (!ret->buffer)
		return -PTVM_NO_MEMORY;
	for (size_t k = 0; k < ranges->count; k++)
		for (size_t i = 0; i < head->segments.count && !r; i++)
			r = add_piece(ret, &head->segments.items[i], &ranges->items[k], error);
	if (r)
		return r;
	if (!has_address(ret, ranges->kernel_start))
		return ptvm_fail(error, PTVM_BAD_INPUT, "/proc/kcore: no kernel text at %#" PRIx64,
				 ranges->kernel_start);
	place_pieces(ret);
	ret->left = ret->pieces.items[0].size;
	return 0;
}

static int write_at(const struct kcore_copy *copy, const void *data, size_t size, uint64_t offset,
		    struct ptvm_error *error)
{
	const uint8_t *from = data;
	ssize_t n;

	while (size) {
		n = pwrite(copy->file, from, size, (off_t)offset);
		if (n < 0 && errno != EINTR)
			return ptvm_fail_errno(error, "cannot write the copy of kcore");
		if (n > 0) {
			from += n;
			offset += (size_t)n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int write_headers(const struct kcore_copy *copy, struct ptvm_error *error)
{
	const Elf64_Ehdr file = kcore_head_make(copy->pieces.count);
	int r = write_at(copy, &file, sizeof(file), 0, error);

	for (size_t i = 0; i < copy->pieces.count && !r; i++) {
		const struct kcore_piece *piece = &copy->pieces.items[i];
		Elf64_Phdr header = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W | PF_X,
			.p_offset = piece->to,
			.p_vaddr = piece->address,
			.p_filesz = piece->size,
			.p_memsz = piece->size,
			.p_align = PAGE,
		};

		r = write_at(copy, &header, sizeof(header), sizeof(file) + i * sizeof(header),
			     error);
	}
	return r;
}

int kcore_copy_create(struct kcore_copy *copy, const char *path, struct ptvm_error *error)
{
	copy->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (copy->file < 0)
		return ptvm_fail_errno(error, "%s", path);
	return write_headers(copy, error);
}

int kcore_copy_next(struct kcore_copy *copy, struct channel *channel, struct ptvm_error *error)
{
	const struct kcore_piece *piece = &copy->pieces.items[copy->at];
	uint64_t passed = piece->size - copy->left;
	size_t size = copy->left < CHANNEL_READ_BYTES ? copy->left : CHANNEL_READ_BYTES;
	int r = channel_read(channel, piece->from + passed, copy->buffer, size, error);

	if (r < 0)
		return r;
	if ((size_t)r < size)
		return ptvm_fail(error, PTVM_BAD_INPUT, "/proc/kcore: ends before %#" PRIx64,
				 piece->from + passed + size);
	r = write_at(copy, copy->buffer, size, piece->to + passed, error);
	if (r)
		return r;
	copy->left -= size;
	copy->done += size;
	if (!copy->left && ++copy->at < copy->pieces.count)
		copy->left = copy->pieces.items[copy->at].size;
	return copy->left > 0;
}

void kcore_copy_free(struct kcore_copy *copy)
{
	if (copy->file >= 0)
		(void)close(copy->file);
	vec_free(&copy->pieces);
	free(copy->buffer);
	*copy = (struct kcore_copy){ .file = -1 };
}
