#include "decode/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "decode/base/cleanup.h"

int mapped_file_open(const char *path, struct bytes *ret, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;
	struct stat status;
	void *data;

	/* Before opening: the name may come from a recording, and opening a device can do things.
	 */
	if (stat(path, &status))
		return ptvm_fail_errno(error, "%s", path);
	if (!S_ISREG(status.st_mode))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not a regular file", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status))
		return ptvm_fail_errno(error, "%s", path);
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
