/* Any bytes as commands to a recorder: as many as there are whole lines, at most. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/record/control_fifo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096 /* that a pipe holds in any case */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct control_fifo fifo;
	size_t lines = 0;
	char name[32];
	int ends[2];

	if (size > MOST_BYTES)
		return 0;
	if (pipe2(ends, O_CLOEXEC) || write(ends[1], data, size) != (ssize_t)size)
		abort();
	(void)close(ends[1]);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	(void)snprintf(name, sizeof(name), "fd:%d", ends[0]);
	if (control_fifo_open(name, &fifo, NULL))
		abort();
	while (control_fifo_next(&fifo) != CONTROL_NONE)
		if (!lines--)
			abort();
	if (lines)
		abort();
	control_fifo_close(&fifo);
	return 0;
}
