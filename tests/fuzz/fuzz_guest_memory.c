/* The memory of a guest with parts overwritten by the input: pieces of any bytes, each behind four
 * that say where it goes. All files that are made of the memory are copied. */
#include "decode/base/cleanup.h"
#include "guest/channel.h"
#include "guest/channel_memory.h"
#include "tests/fake_linux.h"
#include "tests/fuzz/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20, STEP = 64 << 10 };

static void change(struct fake_memory *memory, struct bytes rest)
{
	enum { PLACE = 4 };
	uint64_t place;

	while (bytes_read(rest, 0, PLACE, &place)) {
		struct bytes piece;

		rest = bytes_slice(rest, PLACE, rest.size);
		piece = fuzz_piece(&rest);
		place %= memory->size;
		for (size_t i = 0; i < piece.size && place + i < memory->size; i++)
			memory->data[place + i] = piece.data[i];
	}
}

static void read_file(struct channel *channel, const char *path)
{
	static uint8_t part[STEP];
	int got = channel_open(channel, path, NULL);

	for (uint64_t at = 0; got >= 0 && at < MOST_BYTES; at += (uint64_t)got) {
		got = channel_read(channel, at, part, sizeof(part), NULL);
		if (got > STEP)
			abort();
		if (got <= 0)
			break;
	}
	channel_close(channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { "/proc/kallsyms", "/proc/modules",
					     "/proc/kcore",    "/proc/sys/kernel/random/boot_id",
					     "/proc/version",  "/proc/stat" };
	struct channel *channel = NULL;
	struct fake_linux guest;

	fake_linux_init(&guest, size && data[0] & 1);
	change(&guest.memory, bytes_slice((struct bytes){ data, size }, 1, size));
	if (!channel_memory_new(&guest.memory.reader, &guest.memory.root, 1, &channel, NULL))
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
			read_file(channel, files[i]);
	channel_free(channel);
	fake_linux_deinit(&guest);
	return 0;
}
