#include "decode/base/regular_file.h"

#include <fcntl.h>

#include "decode/base/cleanup.h"

int regular_file_open(const char *path, struct stat *ret, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;

	if (stat(path, ret))
		return ptvm_fail_errno(error, "%s", path);
	if (!S_ISREG(ret->st_mode))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not a regular file", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret))
		return ptvm_fail_errno(error, "%s", path);
	return take_fd(&fd);
}
