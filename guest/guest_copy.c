#include "guest/guest_copy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decode/base/cleanup.h"
#include "decode/base/write_all.h"
#include "decode/code/kallsyms.h"
#include "guest/channel.h"
#include "guest/code_ranges.h"
#include "guest/json_text.h"
#include "guest/kcore_memory.h"
#include "guest/output_directory.h"

void guest_copy_init(struct guest_copy *copy, struct channel *channel,
		     const struct output_directory *directory, const char *domain)
{
	*copy = (struct guest_copy){ .channel = channel,
				     .directory = directory,
				     .domain = domain,
				     .doing = "modules",
				     .kallsyms = -1,
				     .code = { .file = -1 } };
}

static int create(const struct guest_copy *copy, const char *name, struct ptvm_error *error)
{
	char path[PATH_MAX];
	int file = open(output_directory_file(copy->directory, name, path),
			O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return file < 0 ? ptvm_fail_errno(error, "%s", path) : file;
}

static int write_text(int file, const char *text, size_t size, struct ptvm_error *error)
{
	return write_all(file, text, size) ? ptvm_fail_errno(error, "cannot write the copy") : 0;
}

static void say(struct guest_copy *copy, const char *doing, uint64_t total)
{
	copy->doing = doing;
	copy->done = 0;
	copy->total = total;
}

/* The text of /proc/modules, of `*ret_size` bytes; none where the kernel has no modules. */
static int fetch_modules(struct guest_copy *copy, char **ret, size_t *ret_size,
			 struct ptvm_error *error)
{
	_cleanup_free_ char *text = malloc(GUEST_MODULES_BYTES + 1);
	struct ptvm_error why = { 0 };
	int r;

	if (!text)
		return -PTVM_NO_MEMORY;
	r = channel_read_text(copy->channel, "/proc/modules", text, GUEST_MODULES_BYTES + 1, &why);
	if (r < 0 && r != -PTVM_NOT_FOUND)
		return ptvm_fail_as(error, &why, r);
	if (r == GUEST_MODULES_BYTES)
		return ptvm_fail(error, PTVM_BAD_INPUT, "/proc/modules: %d MiB or more",
				 GUEST_MODULES_BYTES >> 20);
	*ret_size = r > 0 ? (size_t)r : 0;
	*ret = take_ptr(text);
	return 0;
}

static int copy_modules(struct guest_copy *copy, struct ptvm_error *error)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int file = -1;
	size_t size;
	int r = fetch_modules(copy, &text, &size, error);

	if (r)
		return r;
	r = modules_parse(text, size, &copy->modules);
	if (r)
		return r;
	file = create(copy, "modules", error);
	if (file < 0)
		return file;
	return write_text(file, text, size, error);
}

static int open_kallsyms(struct guest_copy *copy, struct ptvm_error *error)
{
	int r = channel_open(copy->channel, "/proc/kallsyms", error);

	if (r)
		return r;
	r = create(copy, "kallsyms", error);
	if (r < 0)
		return r;
	copy->kallsyms = r;
	say(copy, "symbols", 0);
	return 0;
}

static void close_kallsyms(struct guest_copy *copy)
{
	if (copy->kallsyms >= 0)
		(void)close(copy->kallsyms);
	copy->kallsyms = -1;
}

static int copy_kallsyms(struct guest_copy *copy, struct ptvm_error *error)
{
	_cleanup_free_ char *text = malloc(CHANNEL_READ_BYTES);
	int r;

	if (!text)
		return -PTVM_NO_MEMORY;
	r = channel_read(copy->channel, copy->done, text, CHANNEL_READ_BYTES, error);
	if (r > 0 && copy->done + (uint64_t)r > GUEST_KALLSYMS_BYTES)
		return ptvm_fail(error, PTVM_BAD_INPUT, "/proc/kallsyms: more than %d MiB",
				 GUEST_KALLSYMS_BYTES >> 20);
	if (r > 0) {
		copy->done += (uint64_t)r;
		r = write_text(copy->kallsyms, text, (size_t)r, error);
		return r ? r : 1;
	}
	if (!r && !copy->done)
		return ptvm_fail(error, PTVM_BAD_INPUT,
				 "/proc/kallsyms: empty (a mount by sshfs needs -o direct_io)");
	copy->kallsyms_bytes = copy->done;
	close_kallsyms(copy);
	return r;
}

static int read_head(struct guest_copy *copy, struct ptvm_error *error)
{
	_cleanup_free_ uint8_t *head = malloc(KCORE_HEAD_BYTES);
	int r;

	if (!head)
		return -PTVM_NO_MEMORY;
	r = channel_open(copy->channel, "/proc/kcore", error);
	if (r)
		return r;
	r = channel_read(copy->channel, 0, head, KCORE_HEAD_BYTES, error);
	if (r < 0)
		return r;
	return kcore_head_read((struct bytes){ head, (size_t)r }, &copy->head, error);
}

static int load_symbols(const struct guest_copy *copy, struct symbols *ret,
			struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	char path[PATH_MAX];
	int r = kallsyms_load(output_directory_file(copy->directory, "kallsyms", path), ret, &why);

	if (r && r != -PTVM_BAD_INPUT)
		return ptvm_fail_as(error, &why, r);
	if (!r)
		return 0;
	return ptvm_fail(error, PTVM_BAD_INPUT,
			 "/proc/kallsyms: no addresses: it was not root who read it, or "
			 "kernel.kptr_restrict is 2 there");
}

/* What the kernel's page tables say that it can execute; nothing where kcore does not lead to
 * them. */
static int add_pages(const struct guest_copy *copy, uint64_t image_end, struct code_ranges *ranges,
		     struct ptvm_error *error)
{
	struct kcore_memory memory = { copy->channel, &copy->head };
	const struct guest_memory reader = { kcore_memory_read, &memory };
	struct vmcoreinfo info;
	struct page_walk walk;
	int r;

	if (!vmcoreinfo_read(copy->head.vmcoreinfo, &info))
		return 0;
	page_walk_init(&walk, &reader, info.root);
	r = vmcoreinfo_check_root(&info, &walk, error);
	if (r)
		return r == -PTVM_NOT_FOUND ? 0 : r;
	return code_ranges_add_pages(ranges, &walk, image_end, error);
}

/* Take also what has no symbols. */
static int widen(const struct guest_copy *copy, const struct symbols *symbols,
		 struct code_ranges *ranges, struct ptvm_error *error)
{
	uint64_t image_end = symbols_address(symbols, "_end");
	int r;

	if (copy->channel->way->is_code_only)
		r = code_ranges_add(ranges, ranges->kernel_start, UINT64_MAX);
	else
		r = image_end > ranges->kernel_start ? add_pages(copy, image_end, ranges, error)
						     : 0;
	if (!r)
		code_ranges_join(ranges);
	return r;
}

static int plan(struct guest_copy *copy, const struct symbols *symbols, struct ptvm_error *error)
{
	_cleanup_(code_ranges_free) struct code_ranges ranges = { 0 };
	char path[PATH_MAX];
	int r = code_ranges_find(symbols, &copy->modules, &ranges, error);

	if (!r)
		r = read_head(copy, error);
	if (!r)
		r = widen(copy, symbols, &ranges, error);
	if (!r)
		r = kcore_copy_plan(&copy->head, &ranges, &copy->code, error);
	if (!r)
		r = kcore_copy_create(&copy->code,
				      output_directory_file(copy->directory, "kcore", path), error);
	copy->kernel_start = ranges.kernel_start;
	return r;
}

static int begin_code(struct guest_copy *copy, struct ptvm_error *error)
{
	_cleanup_(symbols_free) struct symbols symbols = { 0 };
	int r;

	r = load_symbols(copy, &symbols, error);
	if (!r)
		r = plan(copy, &symbols, error);
	if (!r)
		say(copy, "code", copy->code.total);
	return r;
}

static int copy_code(struct guest_copy *copy, struct ptvm_error *error)
{
	int r = kcore_copy_next(&copy->code, copy->channel, error);

	copy->done = copy->code.done;
	return r;
}

static bool are_same(const struct modules *a, const struct modules *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = a->items[i].start == b->items[i].start &&
		       a->items[i].end == b->items[i].end &&
		       !strcmp(a->items[i].name, b->items[i].name);
	return same;
}

static void forget(struct guest_copy *copy)
{
	close_kallsyms(copy);
	modules_free(&copy->modules);
	kcore_head_free(&copy->head);
	kcore_copy_free(&copy->code);
	guest_modules_free(&copy->files);
}

/* Begin again, unless that was done often enough. Returns 1. */
static int retry(struct guest_copy *copy, struct ptvm_error *error)
{
	if (++copy->tries == GUEST_COPY_TRIES)
		return ptvm_fail(error, PTVM_INCONSISTENT,
				 "/proc/modules: changed during each of %d copies",
				 GUEST_COPY_TRIES);
	forget(copy);
	memset(&copy->modules, 0, sizeof(copy->modules));
	output_directory_clear(copy->directory);
	copy->step = 0;
	return 1;
}

static int compare_modules(struct guest_copy *copy, struct ptvm_error *error)
{
	_cleanup_(modules_free) struct modules now = { 0 };
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = fetch_modules(copy, &text, &size, error);

	if (!r)
		r = modules_parse(text, size, &now);
	if (r || are_same(&copy->modules, &now))
		return r;
	return retry(copy, error);
}

static json_t *fact_json(const struct guest_fact *fact)
{
	return fact->from ? json_pack("{s:s, s:s}", "value", fact->value, "from", fact->from)
			  : json_null();
}

json_t *guest_copy_json(const struct guest_copy *copy)
{
	char kernel_start[24];

	(void)snprintf(kernel_start, sizeof(kernel_start), "%#" PRIx64, copy->kernel_start);
	return json_pack(
		"{s:o, s:s, s:I, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:o}", "domain",
		copy->domain ? json_text(copy->domain) : json_null(), "via",
		copy->channel->way->name, "copied_at", (json_int_t)time(NULL), "release",
		fact_json(&copy->facts.release), "build_id", fact_json(&copy->facts.build_id),
		"kaslr_offset", fact_json(&copy->facts.kaslr_offset), "kernel_start", kernel_start,
		"boot_time", fact_json(&copy->facts.boot_time), "boot_id",
		fact_json(&copy->facts.boot_id), "code_bytes", (json_int_t)copy->code.total,
		"kallsyms_bytes", (json_int_t)copy->kallsyms_bytes, "modules",
		(json_int_t)copy->modules.count, "module_files", guest_modules_json(&copy->files));
}

static int write_json(const struct guest_copy *copy, struct ptvm_error *error)
{
	_cleanup_close_ int file = create(copy, "guest.json", error);
	json_t *json;
	int r;

	if (file < 0)
		return file;
	json = guest_copy_json(copy);
	if (!json)
		return -PTVM_NO_MEMORY;
	r = json_dumpfd(json, file, JSON_INDENT(2));
	json_decref(json);
	return r ? ptvm_fail(error, PTVM_SYSTEM, "guest.json: cannot write it") : 0;
}

static int collect_facts(struct guest_copy *copy, struct ptvm_error *error)
{
	int r;

	say(copy, "facts", 0);
	guest_facts_read(copy->channel, &copy->head, copy->kernel_start, &copy->facts);
	if (copy->is_again)
		return 0;
	r = guest_modules_read(copy->channel, &copy->modules, copy->facts.release.value,
			       &copy->files);
	return r || copy->is_bare ? r : write_json(copy, error);
}

int guest_copy_next(struct guest_copy *copy, struct ptvm_error *error)
{
	/* Each returns 1 to be called again. */
	static int (*const steps[])(struct guest_copy *, struct ptvm_error *) = {
		copy_modules, open_kallsyms,   copy_kallsyms, begin_code,
		copy_code,    compare_modules, collect_facts,
	};
	int r = steps[copy->step](copy, error);

	if (r)
		return r;
	return ++copy->step < sizeof(steps) / sizeof(steps[0]);
}

void guest_copy_free(struct guest_copy *copy)
{
	channel_close(copy->channel);
	forget(copy);
}
