#include "correlate/correlation.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/pt/pt_offsets.h"
#include "tests/fake_tree.h"
#include "tests/perf_build.h"
#include "tests/pt_encode.h"

/* A small recording on disk, corrected, copied and brought back. What the command line makes of it
 * is in cli/correlate.py. */

enum { VMCS = 0x2664e, TICK = 80, STAMPS = 6, GUEST_STAMPS = 3, TID = 77 };

static const uint64_t noon = 1000000000000, offset = (uint64_t)-29000000000;

struct fixture {
	struct fake_tree tree;
	char path[96], data[104], journal[128], json[128], copy[96], draft[104];
	uint8_t *before; /* the data file */
	size_t size;
	struct correlation correlation;
};

static bool go_on(void *context, double done)
{
	return true;
}

static bool stop(void *context, double done)
{
	return false;
}

static const struct watch patient = { go_on, NULL }, impatient = { stop, NULL };

/* Host and guest show their TSCs in turn. */
static void make_recording(struct fixture *f)
{
	struct perf_build build = { 0 };
	struct pt_bytes trace = { 0 };
	struct bytes file;

	for (unsigned i = 0; i < STAMPS; i++) {
		const struct pt_psb_plus group = {
			.nr = i % 2,
			.vmcs = VMCS,
			.tsc = (noon + (uint64_t)i * TICK + (i % 2 ? offset : 0)) & PT_TSC_MASK,
			.ctc = (uint16_t)i
		};

		pt_put_psb_plus(&trace, &group);
	}
	perf_build_pt(&build, 0, 1);
	perf_build_aux(&build, 0, 0, trace.data, trace.size);
	file = perf_build_file(&build);
	fake_tree_bytes(&f->tree, file.data, file.size, "recording/data");
	f->size = file.size;
	f->before = malloc(file.size);
	assert_non_null(f->before);
	memcpy(f->before, file.data, file.size);
	perf_build_free(&build);
	pt_bytes_free(&trace);
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ 0 };
	fake_tree_init(&fixture.tree);
	(void)snprintf(fixture.path, sizeof(fixture.path), "%s/recording", fixture.tree.path);
	(void)snprintf(fixture.data, sizeof(fixture.data), "%s/data", fixture.path);
	(void)snprintf(fixture.journal, sizeof(fixture.journal), "%s.ptvm-undo", fixture.data);
	(void)snprintf(fixture.json, sizeof(fixture.json), "%s.ptvm.json", fixture.data);
	(void)snprintf(fixture.copy, sizeof(fixture.copy), "%s/copy", fixture.tree.path);
	(void)snprintf(fixture.draft, sizeof(fixture.draft), "%s.new", fixture.copy);
	make_recording(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	correlation_close(&f->correlation);
	fake_tree_deinit(&f->tree);
	free(f->before);
	return 0;
}

static void reopen(struct fixture *f, const char *path)
{
	struct ptvm_error error = { 0 };

	correlation_close(&f->correlation);
	if (correlation_open(&f->correlation, path, true, &error))
		fail_msg("%s", error.message);
}

static void find(struct fixture *f)
{
	const struct offsets_given none = { 0 };

	assert_int_equal(correlation_find(&f->correlation, &none, &patient, NULL), 0);
}

static const struct tsc_segment *segment_found(const struct fixture *f)
{
	const struct tsc_offsets *offsets = &f->correlation.offsets;

	assert_int_equal(offsets->guests.count, 1);
	assert_int_equal(offsets->guests.items[0].vmcs, VMCS);
	assert_int_equal(offsets->guests.items[0].segments.count, 1);
	return &offsets->guests.items[0].segments.items[0];
}

static void open_and_find(struct fixture *f)
{
	reopen(f, f->path);
	find(f);
}

static int apply(struct fixture *f, bool force, struct ptvm_error *error)
{
	struct apply_result result;

	return correlation_apply(&f->correlation, force, &patient, &result, error);
}

static bool is_there(const char *path)
{
	struct stat status;

	return !lstat(path, &status);
}

/* Whether the file has the bytes of the recording as it was made. */
static bool is_as_made(const struct fixture *f, const char *path)
{
	uint8_t bytes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, bytes, sizeof(bytes));

	(void)close(fd);
	assert_int_equal(size, f->size);
	return !memcmp(bytes, f->before, f->size);
}

static void assert_untouched(const struct fixture *f)
{
	assert_true(is_as_made(f, f->data));
	assert_false(is_there(f->journal));
}

static void assert_open_fails(struct fixture *f, int r, const char *why)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(correlation_open(&f->correlation, f->path, true, &error), r);
	assert_non_null(strstr(error.message, why));
}

static void what_is_no_recording_is_told(void **state)
{
	struct fixture *f = *state;

	fake_tree_file(&f->tree, "not perf.data, but long enough for a header", "recording/data");
	assert_open_fails(f, -PTVM_BAD_INPUT, f->data);
	correlation_close(&f->correlation);
	assert_int_equal(unlink(f->data), 0);
	assert_open_fails(f, -PTVM_BAD_INPUT, f->path);
}

static void a_recording_without_pt_is_told(void **state)
{
	struct fixture *f = *state;
	struct perf_build build = { 0 };
	struct bytes file;

	perf_build_event(&build, 1, 9, BUILD_SAMPLE_TYPE, 2, 128);
	file = perf_build_file(&build);
	fake_tree_bytes(&f->tree, file.data, file.size, "recording/data");
	perf_build_free(&build);
	assert_open_fails(f, -PTVM_BAD_INPUT, "no Intel PT");
}

/* What is only to be undone does not need it. */
static void json_that_is_damaged_is_told_by_the_search(void **state)
{
	const struct offsets_given none = { 0 };
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	fake_tree_file(&f->tree, "{", "recording/data.ptvm.json");
	reopen(f, f->path);
	assert_int_equal(correlation_find(&f->correlation, &none, &patient, &error),
			 -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, f->json));
}

static void a_journal_that_is_damaged_is_told(void **state)
{
	struct fixture *f = *state;

	fake_tree_file(&f->tree, "{", "recording/data.ptvm-undo");
	assert_open_fails(f, -PTVM_BAD_INPUT, f->journal);
}

static void the_offset_is_found(void **state)
{
	struct fixture *f = *state;

	open_and_find(f);
	assert_int_equal(f->correlation.journal, JOURNAL_NONE);
	assert_int_equal(segment_found(f)->offset, offset & PT_TSC_MASK);
	assert_int_equal(segment_found(f)->source, TSC_INFERRED);
	assert_int_equal(segment_found(f)->observations, GUEST_STAMPS);
	assert_untouched(f);
}

static void what_is_given_comes_before_what_is_found(void **state)
{
	struct fixture *f = *state;
	struct offsets_given given = { 0 };

	assert_int_equal(offsets_given_parse("5", &given, NULL), 0);
	reopen(f, f->path);
	assert_int_equal(correlation_find(&f->correlation, &given, &patient, NULL), 0);
	assert_int_equal(segment_found(f)->offset, 5);
	assert_int_equal(segment_found(f)->source, TSC_GIVEN);
}

/* KVM's word on thread TID, whose queue it is. */
static void add_json(const struct fixture *f)
{
	fake_tree_file(&f->tree,
		       "{\"version\": 1, \"machines\": [{\"pid\": 70, \"name\": \"vm1\","
		       " \"vcpus\": [{\"index\": 0, \"tid\": 77, \"tsc\": ["
		       "{\"time_ns\": 500000000001, \"offset\": -28999999999}]}]}]}",
		       "recording/data.ptvm.json");
}

static void what_kvm_told_is_exact(void **state)
{
	struct fixture *f = *state;

	add_json(f);
	reopen(f, f->path);
	f->correlation.data.queues.items[0].tid = TID;
	find(f);
	assert_int_equal(segment_found(f)->offset, (offset + 1) & PT_TSC_MASK);
	assert_int_equal(segment_found(f)->source, TSC_RECORDED);
}

/* KVM told of the recording as it was made: corrected, it has no offset any more. */
static void what_kvm_told_is_not_said_of_a_corrected_recording(void **state)
{
	struct fixture *f = *state;

	open_and_find(f);
	assert_int_equal(apply(f, false, NULL), 0);
	add_json(f);
	reopen(f, f->path);
	f->correlation.data.queues.items[0].tid = TID;
	find(f);
	assert_true(tsc_offsets_are_none(&f->correlation.offsets));
	assert_int_equal(segment_found(f)->source, TSC_INFERRED);
	assert_false(f->correlation.offsets.guests.items[0].disagrees);
}

static void applied_it_has_no_offset_any_more(void **state)
{
	struct fixture *f = *state;
	struct apply_result result;

	open_and_find(f);
	assert_int_equal(correlation_apply(&f->correlation, false, &patient, &result, NULL), 0);
	assert_int_equal(result.changed, GUEST_STAMPS);
	assert_int_equal(result.left, 0);
	assert_false(is_as_made(f, f->data));
	open_and_find(f);
	assert_int_equal(f->correlation.journal, JOURNAL_DONE);
	assert_true(tsc_offsets_are_none(&f->correlation.offsets));
}

static void an_interrupt_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct apply_result result;

	open_and_find(f);
	assert_int_equal(correlation_apply(&f->correlation, false, &impatient, &result, NULL),
			 -PTVM_END);
	assert_untouched(f);
}

static void undone_it_is_as_it_was_made(void **state)
{
	struct fixture *f = *state;

	open_and_find(f);
	assert_int_equal(apply(f, false, NULL), 0);
	reopen(f, f->path);
	assert_int_equal(correlation_undo(&f->correlation, false, &patient, NULL), 0);
	assert_int_equal(f->correlation.journal, JOURNAL_NONE);
	assert_untouched(f);
}

static void a_run_that_was_interrupted_is_seen_and_undone(void **state)
{
	struct fixture *f = *state;

	open_and_find(f);
	assert_int_equal(apply(f, false, NULL), 0);
	assert_int_equal(journal_mark(f->journal, JOURNAL_OPEN, &file_io_system, NULL), 0);
	reopen(f, f->path);
	assert_int_equal(f->correlation.journal, JOURNAL_OPEN);
	assert_int_equal(correlation_undo(&f->correlation, false, &patient, NULL), 0);
	assert_untouched(f);
}

static void nothing_to_undo_is_told(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	reopen(f, f->path);
	assert_int_equal(correlation_undo(&f->correlation, false, &patient, &error),
			 -PTVM_NOT_FOUND);
	assert_non_null(strstr(error.message, f->data));
	assert_untouched(f);
}

static void a_file_of_another_size_is_not_brought_back(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	open_and_find(f);
	assert_int_equal(apply(f, false, NULL), 0);
	reopen(f, f->path);
	assert_int_equal(truncate(f->data, (off_t)f->size + 1), 0);
	assert_int_equal(correlation_undo(&f->correlation, true, &patient, &error),
			 -PTVM_INCONSISTENT);
	assert_int_equal(f->correlation.journal, JOURNAL_DONE);
	assert_true(is_there(f->journal));
}

static void assert_not_ours(struct fixture *f, const char *why)
{
	struct ptvm_error error = { 0 };

	assert_int_equal(apply(f, false, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, f->data));
	assert_non_null(strstr(error.message, why));
	assert_untouched(f);
	error = (struct ptvm_error){ 0 };
	assert_int_equal(correlation_undo(&f->correlation, false, &patient, &error),
			 -PTVM_BAD_INPUT);
}

static void need_root(void)
{
	if (geteuid())
		skip();
}

static void a_read_only_file_takes_force(void **state)
{
	struct fixture *f = *state;

	need_root(); /* nobody else could open it */
	open_and_find(f);
	assert_int_equal(chmod(f->data, 0444), 0);
	assert_not_ours(f, "read-only");
	assert_int_equal(apply(f, true, NULL), 0);
	assert_false(is_as_made(f, f->data));
	assert_int_equal(correlation_undo(&f->correlation, true, &patient, NULL), 0);
	assert_untouched(f);
}

static void a_file_of_another_user_takes_force(void **state)
{
	struct fixture *f = *state;

	need_root();
	open_and_find(f);
	assert_int_equal(chown(f->data, 12345, 12345), 0);
	assert_not_ours(f, "not owned");
	assert_int_equal(apply(f, true, NULL), 0);
	assert_false(is_as_made(f, f->data));
}

static void a_file_that_went_away_is_told(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	open_and_find(f);
	assert_int_equal(unlink(f->data), 0);
	assert_int_equal(apply(f, true, &error), -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ENOENT);
}

static void what_is_no_file_is_not_changed(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	open_and_find(f);
	assert_int_equal(unlink(f->data), 0);
	assert_int_equal(mkfifo(f->data, 0600), 0);
	assert_int_equal(apply(f, true, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, "no regular file"));
}

static void assert_at_work(struct fixture *f, bool changes)
{
	struct correlation another = { 0 };
	struct ptvm_error error = { 0 };
	char who[32];

	assert_int_equal(correlation_open(&another, f->path, changes, &error), -PTVM_SYSTEM);
	assert_non_null(strstr(error.message, "at work"));
	(void)snprintf(who, sizeof(who), "(pid %d)", (int)getpid());
	if (strstr(error.message, "(pid")) /* not all file systems tell */
		assert_non_null(strstr(error.message, who));
	correlation_close(&another);
}

/* What another run reads, to copy it, must be all as it was or all corrected. */
static void who_changes_it_is_alone(void **state)
{
	struct fixture *f = *state;

	open_and_find(f);
	assert_at_work(f, false);
	assert_at_work(f, true);
	assert_int_equal(apply(f, false, NULL), 0);
	assert_at_work(f, false);
	correlation_close(&f->correlation);
	reopen(f, f->path);
	assert_int_equal(f->correlation.journal, JOURNAL_DONE);
}

static void many_may_read_it_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct correlation another = { 0 };

	assert_int_equal(correlation_open(&f->correlation, f->path, false, NULL), 0);
	assert_int_equal(correlation_open(&another, f->path, false, NULL), 0);
	correlation_close(&another);
	assert_at_work(f, true);
}

static void a_copy_needs_a_place_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };

	assert_int_equal(correlation_can_copy(f->copy, &error), 0);
	assert_false(is_there(f->copy));
	assert_int_equal(correlation_can_copy(f->data, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, f->data));
	error = (struct ptvm_error){ 0 };
	fake_tree_file(&f->tree, "", "copy.new");
	assert_int_equal(correlation_can_copy(f->copy, &error), -PTVM_BAD_INPUT);
	assert_non_null(strstr(error.message, f->draft));
	error = (struct ptvm_error){ 0 };
	assert_int_equal(correlation_can_copy("/proc/none/copy", &error), -PTVM_SYSTEM);
	assert_int_equal(error.sys_errno, ENOENT);
}

static int copy_to(struct fixture *f, const char *to, const struct watch *watch,
		   struct ptvm_error *error)
{
	struct apply_result result;

	return correlation_copy(&f->correlation, to, watch, &result, error);
}

/* As shells complete the name of a directory. */
static void slashes_at_the_end_of_a_copy_mean_nothing(void **state)
{
	struct fixture *f = *state;
	char slashes[sizeof(f->copy) + 2];

	open_and_find(f);
	(void)snprintf(slashes, sizeof(slashes), "%s//", f->copy);
	assert_int_equal(copy_to(f, slashes, &patient, NULL), 0);
	assert_true(is_there(f->copy));
	assert_false(is_there(f->draft));
	assert_int_equal(copy_to(f, slashes, &patient, NULL), -PTVM_BAD_INPUT);
}

static void a_copy_is_corrected_and_can_be_undone(void **state)
{
	struct fixture *f = *state;
	char data[128];

	(void)snprintf(data, sizeof(data), "%s/data", f->copy);
	add_json(f);
	open_and_find(f);
	assert_int_equal(copy_to(f, f->copy, &patient, NULL), 0);
	assert_false(is_there(f->draft));
	assert_untouched(f);
	assert_false(is_as_made(f, data));
	reopen(f, f->copy);
	assert_int_equal(f->correlation.journal, JOURNAL_DONE);
	find(f);
	assert_true(f->correlation.recorded.entries.count > 0);
	assert_int_equal(correlation_undo(&f->correlation, false, &patient, NULL), 0);
	assert_true(is_as_made(f, data));
}

static void a_corrected_recording_is_copied_with_its_journal(void **state)
{
	struct fixture *f = *state;
	struct apply_result result = { 1, 1 };

	open_and_find(f);
	assert_int_equal(apply(f, false, NULL), 0);
	open_and_find(f);
	assert_int_equal(correlation_copy(&f->correlation, f->copy, &patient, &result, NULL), 0);
	assert_int_equal(result.changed, 0);
	open_and_find(f);
	reopen(f, f->copy);
	assert_int_equal(f->correlation.journal, JOURNAL_DONE);
	assert_int_equal(correlation_undo(&f->correlation, false, &patient, NULL), 0);
}

static void a_copy_that_fails_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct ptvm_error error = { 0 };
	char within[128];

	(void)snprintf(within, sizeof(within), "%s/within", f->path);
	open_and_find(f);
	assert_int_equal(copy_to(f, within, &patient, &error), -PTVM_BAD_INPUT);
	assert_int_equal(copy_to(f, f->copy, &impatient, NULL), -PTVM_END);
	assert_false(is_there(f->copy));
	assert_false(is_there(f->draft));
	assert_untouched(f);
}

static void what_is_there_is_not_copied_over(void **state)
{
	struct fixture *f = *state;

	open_and_find(f);
	fake_tree_file(&f->tree, "precious", "copy.new/file");
	assert_int_equal(copy_to(f, f->copy, &patient, NULL), -PTVM_BAD_INPUT);
	assert_true(is_there(f->draft));
	assert_false(is_there(f->copy));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_no_recording_is_told),
		TEST(a_recording_without_pt_is_told),
		TEST(json_that_is_damaged_is_told_by_the_search),
		TEST(a_journal_that_is_damaged_is_told),
		TEST(the_offset_is_found),
		TEST(what_is_given_comes_before_what_is_found),
		TEST(what_kvm_told_is_exact),
		TEST(what_kvm_told_is_not_said_of_a_corrected_recording),
		TEST(applied_it_has_no_offset_any_more),
		TEST(an_interrupt_changes_nothing),
		TEST(undone_it_is_as_it_was_made),
		TEST(a_run_that_was_interrupted_is_seen_and_undone),
		TEST(nothing_to_undo_is_told),
		TEST(a_file_of_another_size_is_not_brought_back),
		TEST(a_read_only_file_takes_force),
		TEST(a_file_of_another_user_takes_force),
		TEST(a_file_that_went_away_is_told),
		TEST(what_is_no_file_is_not_changed),
		TEST(who_changes_it_is_alone),
		TEST(many_may_read_it_at_a_time),
		TEST(a_copy_needs_a_place_of_its_own),
		TEST(slashes_at_the_end_of_a_copy_mean_nothing),
		TEST(a_copy_is_corrected_and_can_be_undone),
		TEST(a_corrected_recording_is_copied_with_its_journal),
		TEST(a_copy_that_fails_leaves_nothing),
		TEST(what_is_there_is_not_copied_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
