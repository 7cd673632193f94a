#include "decode/perf/perf_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cleanup.h"
#include "decode/base/sort.h"
#include "decode/base/spool.h"
#include "decode/base/vec.h"
#include "decode/base/write_all.h"
#include "decode/perf/perf_header.h"

/* What recordings are called where nobody says otherwise. */
static const char *const names[] = { "ptvm.data", "perf.data" };

static uint64_t whole_pages(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static int map(int fd, struct perf_data *ret, struct ptvm_error *error)
{
	struct stat status;
	void *bytes;

	if (fstat(fd, &status) < 0)
		return ptvm_fail_errno(error, "%s", ret->file_path);
	if (!status.st_size)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: empty file", ret->file_path);
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return ptvm_fail_errno(error, "%s: cannot map", ret->file_path);
	ret->file = ret->mapping = (struct bytes){ bytes, (size_t)status.st_size };
	return 0;
}

/* As many bytes as there are, up to `size`; fewer only at the end. */
static ssize_t read_all(int fd, uint8_t *bytes, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t got = read(fd, bytes + used, size - used);

		if (got < 0 && errno != EINTR)
			return -1;
		if (!got)
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)used;
}

/* Copy all of `from` to a temporary file, whose descriptor is returned. What does not begin as a
 * recording is refused at once, as it may never end. */
static int spool(int from, const char *path, struct ptvm_error *error)
{
	enum { STEP = 1 << 20 };
	_cleanup_close_ int to = spool_open();
	_cleanup_free_ uint8_t *buffer = malloc(STEP);
	bool begun = false;
	ssize_t got;

	if (to < 0)
		return ptvm_fail_errno(error, "no temporary file for a pipe");
	if (!buffer)
		return -PTVM_NO_MEMORY;
	while ((got = read_all(from, buffer, STEP)) > 0) {
		int r = begun ? 0
			      : perf_header_check((struct bytes){ buffer, (size_t)got }, path,
						  error);

		if (r < 0)
			return r;
		if (write_all(to, buffer, (size_t)got) < 0)
			return ptvm_fail_errno(error, "%s: cannot keep what comes from it", path);
		begun = true;
	}
	if (got < 0)
		return ptvm_fail_errno(error, "%s", path);
	return take_fd(&to);
}

static int open_stream(int from, struct perf_data *ret, struct ptvm_error *error)
{
	_cleanup_close_ int fd = spool(from, ret->file_path, error);

	return fd < 0 ? fd : map(fd, ret, error);
}

static int open_standard_input(struct perf_data *ret, struct ptvm_error *error)
{
	struct stat status;

	ret->file_path = strdup("-");
	if (!ret->file_path)
		return -PTVM_NO_MEMORY;
	if (!fstat(STDIN_FILENO, &status) && S_ISREG(status.st_mode) &&
	    !lseek(STDIN_FILENO, 0, SEEK_CUR))
		return map(STDIN_FILENO, ret, error);
	return open_stream(STDIN_FILENO, ret, error);
}

/* The path of the data file: `data` in a directory, whose own path is kept without a slash at its
 * end. */
static int set_paths(struct perf_data *ret)
{
	struct stat status;
	size_t length = strlen(ret->path);

	if (stat(ret->path, &status) < 0 || !S_ISDIR(status.st_mode)) {
		ret->file_path = strdup(ret->path);
		return ret->file_path ? 0 : -PTVM_NO_MEMORY;
	}
	while (length > 1 && ret->path[length - 1] == '/')
		length--;
	ret->directory = strndup(ret->path, length);
	if (!ret->directory || asprintf(&ret->file_path, "%s/data", ret->directory) < 0) {
		ret->file_path = NULL;
		return -PTVM_NO_MEMORY;
	}
	return 0;
}

/* A thread of the recorder calls its file data.N. */
static bool part_number(const char *name, uint32_t *ret)
{
	enum { PREFIX = 5, MOST_DIGITS = 9 };
	size_t digits = strncmp(name, "data.", PREFIX) ? 0 : strspn(name + PREFIX, "0123456789");

	if (!digits || digits > MOST_DIGITS || name[PREFIX + digits])
		return false;
	*ret = (uint32_t)strtoul(name + PREFIX, NULL, 10);
	return true;
}

static int add_part(struct perf_data *data, uint32_t number, const char *name)
{
	struct perf_part part = { .number = number };
	struct stat status;

	if (asprintf(&part.path, "%s/%s", data->directory, name) < 0)
		return -PTVM_NO_MEMORY;
	if (!stat(part.path, &status) && S_ISREG(status.st_mode) && status.st_size) {
		part.size = (uint64_t)status.st_size;
		if (vec_push(&data->parts, part))
			return 0;
	}
	free(part.path);
	return part.size ? -PTVM_NO_MEMORY : 0;
}

SORT_BY(compare_parts, struct perf_part, number)

static int list_parts(struct perf_data *data)
{
	DIR *directory = opendir(data->directory);
	const struct dirent *entry;
	uint32_t number;
	int r = 0;

	while (directory && !r && (entry = readdir(directory)))
		if (part_number(entry->d_name, &number))
			r = add_part(data, number, entry->d_name);
	if (directory)
		(void)closedir(directory);
	sort_vec(&data->parts, compare_parts);
	return r;
}

static int map_part(const uint8_t *at, const struct perf_part *part, struct ptvm_error *error)
{
	_cleanup_close_ int fd = open(part->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return ptvm_fail_errno(error, "%s", part->path);
	if (mmap((void *)at, part->size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return ptvm_fail_errno(error, "%s: cannot map", part->path);
	return 0;
}

/* Give the parts places behind the file. Returns the size of all, or 0: too large to be. */
static uint64_t place_parts(struct perf_data *data)
{
	uint64_t total = whole_pages(data->file.size);

	for (size_t i = 0; i < data->parts.count; i++) {
		struct perf_part *part = &data->parts.items[i];

		part->offset = total;
		if (part->size > INT64_MAX - total)
			return 0;
		total += whole_pages(part->size);
	}
	return total;
}

/* Map the file again where there is room behind it, and the others there. */
static int map_parts(int fd, struct perf_data *data, struct ptvm_error *error)
{
	uint64_t total = place_parts(data), first = data->file.size;
	uint8_t *bytes;
	int r = 0;

	if (!total)
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: too large", data->directory);
	bytes = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return ptvm_fail_errno(error, "%s: cannot map", data->directory);
	(void)munmap((void *)data->file.data, data->file.size);
	data->mapping = (struct bytes){ bytes, total };
	data->file = (struct bytes){ bytes, first };
	if (mmap(bytes, first, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return ptvm_fail_errno(error, "%s: cannot map", data->file_path);
	for (size_t i = 0; i < data->parts.count && !r; i++)
		r = map_part(bytes + data->parts.items[i].offset, &data->parts.items[i], error);
	return r;
}

static int map_directory(int fd, struct perf_data *ret, struct ptvm_error *error)
{
	int r = map(fd, ret, error);

	if (!r)
		r = list_parts(ret);
	return r || !ret->parts.count ? r : map_parts(fd, ret, error);
}

/* Nothing in a directory is called as the file of a recording; perhaps the directory of one is. */
static int refuse_directory(const struct perf_data *data, struct ptvm_error *error)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s", data->directory, names[i]) < 0)
			return -PTVM_NO_MEMORY;
		if (!access(path, F_OK))
			return ptvm_fail(error, PTVM_BAD_INPUT,
					 "%s: not a recording, but %s may be one", data->path,
					 path);
	}
	return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not a recording: no file 'data' in it",
			 data->path);
}

int perf_file_open(const char *path, struct perf_data *ret, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;
	struct stat status;

	ret->path = strdup(path);
	if (!ret->path)
		return -PTVM_NO_MEMORY;
	if (!strcmp(path, "-"))
		return open_standard_input(ret, error);
	if (set_paths(ret) < 0)
		return -PTVM_NO_MEMORY;
	/* The user may name a pipe, but a pipe inside of a recording's directory is none of its
	 * own: opening it may block, and opening a device may have effects. */
	if (ret->directory && !stat(ret->file_path, &status) && !S_ISREG(status.st_mode))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: not a regular file", ret->file_path);
	fd = open(ret->file_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && ret->directory)
		return refuse_directory(ret, error);
	if (fd < 0)
		return ptvm_fail_errno(error, "%s", ret->file_path);
	if (!fstat(fd, &status) && !S_ISREG(status.st_mode))
		return open_stream(fd, ret, error);
	return ret->directory ? map_directory(fd, ret, error) : map(fd, ret, error);
}

int perf_file_default(const char **ret, struct ptvm_error *error)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (access(names[i], F_OK))
			continue;
		*ret = names[i];
		return 0;
	}
	return ptvm_fail(error, PTVM_NOT_FOUND,
			 "no ptvm.data or perf.data here: name the recording with -i");
}

static void free_parts(struct perf_data *data)
{
	for (size_t i = 0; i < data->parts.count; i++)
		free(data->parts.items[i].path);
	vec_free(&data->parts);
}

void perf_file_drop_parts(struct perf_data *data)
{
	uint64_t rest = whole_pages(data->file.size);

	if (!data->parts.count)
		return;
	(void)munmap((void *)(data->mapping.data + rest), data->mapping.size - rest);
	data->mapping = data->file;
	free_parts(data);
}

void perf_file_close(struct perf_data *data)
{
	if (data->mapping.size)
		(void)munmap((void *)data->mapping.data, data->mapping.size);
	free_parts(data);
	free(data->path);
	free(data->directory);
	free(data->file_path);
}
