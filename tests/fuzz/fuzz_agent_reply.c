#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/agent_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *reply = strndup((const char *)data, size);
	struct agent_output output;
	struct agent_info info;
	char text[16];
	int64_t handle;

	if (!reply)
		return 0;
	(void)agent_info_read(reply, &info, NULL);
	(void)agent_handle_read(reply, &handle, NULL);
	if (agent_data_read(reply, text, sizeof(text), NULL) > (int)sizeof(text))
		abort();
	(void)agent_position_read(reply, &handle, NULL);
	(void)agent_process_read(reply, &handle, NULL);
	if (!agent_output_read(reply, text, sizeof(text), &output, NULL) &&
	    output.size > sizeof(text))
		abort();
	free(reply);
	return 0;
}
