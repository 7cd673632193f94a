/* libipt's block decoder over a whole trace, for flow.py: libipt_flow TRACE ELF. Says how many
 * instructions it found, and how often it lost its way. */
#include <elf.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	uint8_t *data;
	size_t size;
};

static int map(const char *path, struct file *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -1;
	ret->size = (size_t)status.st_size;
	ret->data = mmap(NULL, ret->size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	return ret->data == MAP_FAILED ? -1 : 0;
}

/* By way of a cache: without one libipt maps a part of the file each time the flow comes to it. */
static int add_code(struct pt_image *image, struct pt_image_section_cache *cache, const char *path)
{
	enum { CACHED = 512 << 20 }; /* bytes, more than any of the programs has */
	struct file file;
	Elf64_Ehdr elf;

	if (map(path, &file) || file.size < sizeof(elf) || pt_iscache_set_limit(cache, CACHED) < 0)
		return -1;
	memcpy(&elf, file.data, sizeof(elf));
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		uint64_t at = elf.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr part;
		int id;

		if (at + sizeof(part) > file.size)
			return -1;
		memcpy(&part, file.data + at, sizeof(part));
		if (part.p_type != PT_LOAD || !part.p_filesz)
			continue;
		id = pt_iscache_add_file(cache, path, part.p_offset, part.p_filesz, part.p_vaddr);
		if (id < 0 || pt_image_add_cached(image, cache, id, NULL) < 0)
			return -1;
	}
	return 0;
}

/* Blocks up to the next error, which is returned. */
static int follow(struct pt_block_decoder *decoder, uint64_t *insns)
{
	int status = pt_blk_sync_forward(decoder);

	while (status >= 0) {
		struct pt_block block;
		struct pt_event event;

		while (status >= 0 && status & pts_event_pending)
			status = pt_blk_event(decoder, &event, sizeof(event));
		if (status < 0)
			break;
		status = pt_blk_next(decoder, &block, sizeof(block));
		*insns += block.ninsn;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);
	struct pt_block_decoder *decoder;
	struct pt_config config;
	uint64_t insns = 0, errors = 0;
	struct file trace;

	if (argc != 3 || map(argv[1], &trace))
		return 1;
	pt_config_init(&config);
	config.begin = trace.data;
	config.end = trace.data + trace.size;
	decoder = pt_blk_alloc_decoder(&config);
	if (!decoder || !cache || add_code(pt_blk_get_image(decoder), cache, argv[2]))
		return 1;
	while (follow(decoder, &insns) != -pte_eos)
		errors++;
	pt_blk_free_decoder(decoder);
	pt_iscache_free(cache);
	(void)printf("%llu instructions, %llu errors\n", (unsigned long long)insns,
		     (unsigned long long)errors);
	return 0;
}
