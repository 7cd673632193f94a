/* Runs a fuzz target once on each file of a corpus directory, where libFuzzer is not there. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/base/cleanup.h"

enum { LARGEST = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as large as the file, so that a sanitizer sees a read past its end. */
static int replay(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "rb");
	_cleanup_free_ uint8_t *data = NULL;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || size > LARGEST)
		return -1;
	rewind(file);
	data = malloc(size ? (size_t)size : 1);
	if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
		return -1;
	(void)LLVMFuzzerTestOneInput(data, (size_t)size);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent **names = NULL;
	int count = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
	int replayed = 0;

	for (int i = 0; i < count; i++) {
		char path[4096];

		(void)snprintf(path, sizeof(path), "%s/%s", argv[1], names[i]->d_name);
		if (names[i]->d_name[0] != '.' && replay(path)) {
			perror(path);
			return 1;
		}
		replayed += names[i]->d_name[0] != '.';
		free(names[i]);
	}
	free(names);
	(void)printf("%d files replayed\n", replayed);
	return replayed ? 0 : 1;
}
