/* Any bytes as a recording to repair: one that is complete stays as it is; one that was repaired
 * has all records that it had, and is not repaired again. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/perf/perf_data.h"
#include "host/record/recording_repair.h"

enum { DATA_SIZE = 48, MAX_INPUT = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t before[2 * MAX_INPUT], after[2 * MAX_INPUT];

static size_t read_all(int fd, uint8_t *data)
{
	ssize_t size = pread(fd, data, 2 * MAX_INPUT, 0);

	return size < 0 ? 0 : (size_t)size;
}

static size_t count_records(const char *path)
{
	struct perf_data recording = { 0 };
	size_t count = perf_data_open(path, &recording, NULL) ? 0 : recording.records.count;

	perf_data_close(&recording);
	return count;
}

static void check(int fd, const char *path)
{
	const size_t size = read_all(fd, before), records = count_records(path);
	const int r = recording_repair(path, NULL);
	size_t repaired = read_all(fd, after);
	uint64_t data_size;

	memcpy(&data_size, before + DATA_SIZE, sizeof(data_size));
	if ((r || data_size) && (repaired != size || memcmp(before, after, size)))
		__builtin_trap();
	if (r || data_size)
		return;
	if (count_records(path) != records)
		__builtin_trap();
	memcpy(before, after, repaired);
	(void)recording_repair(path, NULL);
	if (read_all(fd, after) != repaired || memcmp(before, after, repaired))
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("recording", 0);
	char path[64];

	if (fd < 0 || size > MAX_INPUT || size < DATA_SIZE + sizeof(uint64_t) ||
	    write(fd, data, size) != (ssize_t)size)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(fd, path);
	return 0;
}
