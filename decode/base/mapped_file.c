#include "decode/base/mapped_file.h"

#include <sys/mman.h>

#include "decode/base/cleanup.h"
#include "decode/base/regular_file.h"

int mapped_file_open(const char *path, struct bytes *ret, struct ptvm_error *error)
{
	struct stat status;
	_cleanup_close_ int fd = regular_file_open(path, &status, error);
	void *data;

	if (fd < 0)
		return fd;
	*ret = (struct bytes){ NULL, 0 };
	if (!status.st_size)
		return 0;
	data = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return ptvm_fail_errno(error, "%s", path);
	*ret = (struct bytes){ data, status.st_size };
	return 0;
}

void mapped_file_close(struct bytes *file)
{
	if (file->data)
		(void)munmap((void *)file->data, file->size);
	*file = (struct bytes){ NULL, 0 };
}
