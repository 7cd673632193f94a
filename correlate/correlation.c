#include "correlate/correlation.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "correlate/correlate_report.h"
#include "correlate/recording_copy.h"
#include "correlate/tsc_offset_infer.h"
#include "decode/base/cleanup.h"
#include "decode/perf/perf_damage.h"

static char *beside(const char *path, const char *suffix)
{
	char *ret;

	return asprintf(&ret, "%s%s", path, suffix) < 0 ? NULL : ret;
}

static int read_recorded(struct correlation *correlation, struct ptvm_error *error)
{
	_cleanup_free_ char *path = beside(correlation->data.file_path, ".ptvm.json");

	if (!path)
		return -PTVM_NO_MEMORY;
	return offsets_recorded_load(path, &correlation->recorded, error);
}

/* Who has a lock on the file, as the kernel says (proc_locks(5)); 0 unknown. */
static int lock_owner(int fd)
{
	_cleanup_fclose_ FILE *locks = fopen("/proc/locks", "re");
	unsigned int major_number, minor_number, pid;
	unsigned long inode;
	struct stat status;
	char line[256];

	if (!locks || fstat(fd, &status))
		return 0;
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*s FLOCK %*s %*s %u %x:%x:%lu", &pid, &major_number,
			   &minor_number, &inode) == 4 &&
		    inode == status.st_ino && major_number == major(status.st_dev) &&
		    minor_number == minor(status.st_dev))
			return (int)pid;
	return 0;
}

/* Nobody waits for a lock. Where a file system has none, two runs at a time are not seen. */
static int lock(struct correlation *correlation, bool changes, struct ptvm_error *error)
{
	const char *path = correlation->data.file_path;
	int how = changes ? LOCK_EX : LOCK_SH;
	int owner, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return 0;
	correlation->lock = fd;
	if (!flock(fd, how | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	owner = lock_owner(fd);
	if (!owner)
		return ptvm_fail(error, PTVM_SYSTEM, "%s: another ptvm is at work", path);
	return ptvm_fail(error, PTVM_SYSTEM, "%s: another ptvm (pid %d) is at work", path, owner);
}

int correlation_open(struct correlation *correlation, const char *path, bool changes,
		     struct ptvm_error *error)
{
	struct journal journal;
	int r = perf_data_open(path, &correlation->data, error);

	if (!r && !correlation->data.have_pt)
		r = ptvm_fail(error, PTVM_BAD_INPUT, "%s: no Intel PT in this recording", path);
	if (!r)
		r = lock(correlation, changes, error);
	if (r)
		return r;
	correlation->journal_path = beside(correlation->data.file_path, ".ptvm-undo");
	if (!correlation->journal_path ||
	    sideband_build(&correlation->data, &correlation->sideband))
		return -PTVM_NO_MEMORY;
	r = journal_open(correlation->journal_path, &journal, error);
	if (r)
		return r;
	correlation->journal = journal.state;
	journal_close(&journal);
	return 0;
}

static size_t count_of(int32_t tid, const int32_t *tids, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += tids[i] == tid;
	return found;
}

static int use_recorded(struct correlation *correlation)
{
	const struct pt_config *pt = &correlation->data.pt;
	const struct correlate_report report = { &correlation->data, correlation->sideband,
						 &correlation->recorded, &correlation->offsets };
	struct vmcs_offsets *guests = correlation->offsets.guests.items;
	size_t count = correlation->offsets.guests.count;
	_cleanup_free_ int32_t *tids = calloc(count + 1, sizeof(*tids));
	int r = 0;

	if (!tids)
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		tids[i] = report_thread(&report, &guests[i]);
	for (size_t i = 0; i < count && !r; i++)
		r = offsets_recorded_use(&correlation->recorded, tids[i],
					 count_of(tids[i], tids, count) == 1, &pt->conv,
					 tsc_tolerance(pt), &guests[i]);
	return r;
}

int correlation_find(struct correlation *correlation, const struct offsets_given *given,
		     const struct watch *watch, struct ptvm_error *error)
{
	const struct perf_data *data = &correlation->data;
	struct vmcs_table table = { 0 };
	int r = read_recorded(correlation, error);

	if (!r)
		r = vmcs_collect(data->queues.items, data->queues.count, &data->pt, data->mapping,
				 watch, &table);
	if (!r)
		r = tsc_offset_infer(&table, &data->pt, &correlation->offsets);
	vmcs_table_free(&table);
	/* KVM's offsets are those of the recording as it was made */
	if (!r && correlation->journal != JOURNAL_DONE)
		r = use_recorded(correlation);
	if (!r)
		r = offsets_given_use(given, &correlation->offsets);
	if (!r)
		r = perf_damage_check_pages(data, error);
	if (r == -PTVM_SYSTEM)
		return ptvm_fail_errno(error, "cannot start a thread");
	return r;
}

/* May we change this file? */
static int check_rights(const struct stat *status, const char *path, struct ptvm_error *error)
{
	if (status->st_uid && status->st_uid != geteuid())
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: not owned by you or root (use -f to change it all the same)",
				 path);
	if (!(status->st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)))
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: read-only (use -o to write a corrected copy, or -f)", path);
	return 0;
}

/* Open for writing. Returns the descriptor. */
static int open_target(const char *path, bool force, struct ptvm_error *error)
{
	_cleanup_close_ int fd = -1;
	struct stat status;
	int r;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		return ptvm_fail_errno(error, "%s: cannot be changed (use -o for a copy)", path);
	if (!S_ISREG(status.st_mode))
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "%s: no regular file, cannot be changed (use --dry-run)", path);
	r = force ? 0 : check_rights(&status, path, error);
	return r ? r : take_fd(&fd);
}

int correlation_apply(const struct correlation *correlation, bool force, const struct watch *watch,
		      struct apply_result *ret, struct ptvm_error *error)
{
	const char *path = correlation->data.file_path;
	_cleanup_close_ int fd = open_target(path, force, error);
	struct apply_target target = { fd, path, correlation->journal_path, &file_io_system,
				       *watch };

	*ret = (struct apply_result){ 0 };
	if (fd < 0)
		return fd;
	return offset_apply(&correlation->data, &correlation->offsets, &target, ret, error);
}

static int apply_to_copy(const struct correlation *correlation, const char *draft,
			 const struct watch *watch, struct apply_result *ret,
			 struct ptvm_error *error)
{
	_cleanup_free_ char *path = beside(draft, "/data");
	_cleanup_free_ char *journal = beside(draft, "/data.ptvm-undo");
	_cleanup_close_ int fd = -1;

	if (!path || !journal)
		return -PTVM_NO_MEMORY;
	fd = open_target(path, false, error);
	if (fd < 0)
		return fd;

	struct apply_target target = { fd, path, journal, &file_io_system, *watch };

	return offset_apply(&correlation->data, &correlation->offsets, &target, ret, error);
}

/* Where a copy is until it is complete: beside `to`, which may end with slashes. */
static char *draft_of(const char *to)
{
	size_t length = strlen(to);
	char *ret;

	while (length > 1 && to[length - 1] == '/')
		length--;
	return asprintf(&ret, "%.*s.new", (int)length, to) < 0 ? NULL : ret;
}

int correlation_can_copy(const char *to, struct ptvm_error *error)
{
	_cleanup_free_ char *draft = draft_of(to);
	_cleanup_free_ char *copy = strdup(to);

	if (!draft || !copy)
		return -PTVM_NO_MEMORY;
	if (!access(to, F_OK) || !access(draft, F_OK))
		return ptvm_fail(error, PTVM_BAD_INPUT, "%s: is there already",
				 access(to, F_OK) ? draft : to);
	if (access(dirname(copy), W_OK | X_OK))
		return ptvm_fail_errno(error, "%s", to);
	return 0;
}

int correlation_copy(const struct correlation *correlation, const char *to,
		     const struct watch *watch, struct apply_result *ret, struct ptvm_error *error)
{
	const struct perf_data *data = &correlation->data;
	_cleanup_free_ char *draft = draft_of(to);
	int r;

	*ret = (struct apply_result){ 0 };
	if (!draft)
		return -PTVM_NO_MEMORY;
	r = correlation_can_copy(to, error);
	if (!r)
		r = recording_copy(data->directory ? data->directory : data->file_path, draft,
				   watch, error);
	if (r)
		return r;
	if (correlation->journal != JOURNAL_DONE)
		r = apply_to_copy(correlation, draft, watch, ret, error);
	if (!r && rename(draft, to))
		r = ptvm_fail_errno(error, "%s", to);
	if (r)
		recording_remove(draft);
	return r;
}

int correlation_undo(struct correlation *correlation, bool force, const struct watch *watch,
		     struct ptvm_error *error)
{
	const char *path = correlation->data.file_path;
	_cleanup_close_ int fd = open_target(path, force, error);
	struct apply_target target = { fd, path, correlation->journal_path, &file_io_system,
				       *watch };
	struct journal journal;
	int r;

	if (fd < 0)
		return fd;
	r = journal_open(correlation->journal_path, &journal, error);
	if (!r && journal.state == JOURNAL_NONE)
		r = ptvm_fail(error, PTVM_NOT_FOUND, "%s: nothing to undo", path);
	if (!r)
		r = offset_undo(&target, &journal, force, error);
	journal_close(&journal);
	if (!r)
		correlation->journal = JOURNAL_NONE;
	return r;
}

void correlation_close(struct correlation *correlation)
{
	tsc_offsets_free(&correlation->offsets);
	offsets_recorded_free(&correlation->recorded);
	sideband_free(correlation->sideband);
	perf_data_close(&correlation->data);
	free(correlation->journal_path);
	if (correlation->lock)
		(void)close(correlation->lock);
	*correlation = (struct correlation){ 0 };
}
