#include "guest/channel_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/text.h"
#include "guest/bpf_symbols.h"
#include "guest/guest_copy.h"
#include "guest/guest_kernel.h"
#include "guest/guest_modules.h"
#include "guest/memory_kcore.h"
#include "guest/module_list.h"
#include "guest/module_notes.h"
#include "guest/module_symbols.h"

struct channel_memory {
	struct channel channel;
	struct guest_kernel kernel;
	struct module_list modules; /* as /proc/modules was when it was read last */
	struct text text;           /* of the open file */
	struct memory_kcore kcore;  /* if it is that */
};

static void print_symbols(const struct guest_kernel *kernel, struct text *text)
{
	struct kallsyms_place place = { 0 };
	struct kallsyms_symbol symbol;
	char line[sizeof(symbol.name) + 32];

	while (kallsyms_tables_next(&kernel->symbols, &place, &symbol) &&
	       text->size <= GUEST_KALLSYMS_BYTES) {
		(void)snprintf(line, sizeof(line), "%016" PRIx64 " %c %s\n", symbol.address,
			       symbol.type, symbol.name);
		text_puts(text, line);
	}
}

static int print_modules(struct channel_memory *memory, const struct module_list *list,
			 struct ptvm_error *error)
{
	size_t symbols = 0;
	int r = 0;

	for (size_t i = 0; i < list->count && !r; i++) {
		if (list->items[i].symbol_count <= MODULE_SYMBOLS)
			symbols += list->items[i].symbol_count;
		if (symbols > MODULE_SYMBOLS_ALL)
			return ptvm_fail(error, PTVM_BAD_INPUT, "modules with more than %d symbols",
					 MODULE_SYMBOLS_ALL);
		r = module_symbols_print(&memory->kernel.walk, &list->items[i],
					 GUEST_KALLSYMS_BYTES, &memory->text);
	}
	return r;
}

static int make_kallsyms(struct channel_memory *memory, struct ptvm_error *error)
{
	_cleanup_(module_list_free) struct module_list list = { 0 };
	struct guest_kernel *kernel = &memory->kernel;
	uint64_t bpf = guest_kernel_symbol(kernel, "bpf_kallsyms");
	int r;

	print_symbols(kernel, &memory->text);
	r = module_list_find(&kernel->walk, kernel->image_end, &list, error);
	if (!r)
		r = print_modules(memory, &list, error);
	if (bpf && !r)
		bpf_symbols_print(&kernel->walk, bpf, kernel->image_end, &memory->text);
	return r;
}

static int make_modules(struct channel_memory *memory, struct ptvm_error *error)
{
	int r;

	module_list_free(&memory->modules);
	r = module_list_find(&memory->kernel.walk, memory->kernel.image_end, &memory->modules,
			     error);
	if (!r)
		module_list_print(&memory->modules, &memory->text);
	return r;
}

/* /sys/module/NAME/notes/.note.gnu.build-id */
static int make_module_note(struct channel_memory *memory, const char *path,
			    struct ptvm_error *error)
{
	char wanted[CHANNEL_PATH_BYTES];

	for (size_t i = 0; i < memory->modules.count; i++) {
		(void)snprintf(wanted, sizeof(wanted), "/sys/module/%s/" GUEST_MODULES_ID_FILE,
			       memory->modules.items[i].name);
		if (!strcmp(wanted, path))
			return module_notes_print(&memory->kernel.walk, &memory->modules.items[i],
						  &memory->text, error);
	}
	return ptvm_fail(error, PTVM_NOT_FOUND, "%s: cannot be made of the guest's memory", path);
}

static int make_kcore(struct channel_memory *memory, struct ptvm_error *error)
{
	return memory_kcore_make(&memory->kernel, &memory->kcore, error);
}

static int make_notes(struct channel_memory *memory, struct ptvm_error *error)
{
	const struct guest_kernel *kernel = &memory->kernel;
	uint64_t start = guest_kernel_symbol(kernel, "__start_notes");
	uint64_t end = guest_kernel_symbol(kernel, "__stop_notes");
	struct bytes notes = bytes_slice(kernel->image.bytes, start - kernel->image.address,
					 end > start ? end - start : 0);

	text_add(&memory->text, (const char *)notes.data, notes.size);
	return 0;
}

/* The kernel makes one when it is first asked for it; until then there is none (proc_do_uuid() of
 * drivers/char/random.c). */
static int make_boot_id(struct channel_memory *memory, struct ptvm_error *error)
{
	struct guest_kernel *kernel = &memory->kernel;
	uint64_t address = guest_kernel_symbol(kernel, "sysctl_bootid");
	uint8_t id[16] = { 0 };
	char digits[3];
	int r = address ? page_walk_read(&kernel->walk, address, id, sizeof(id), error) : 0;

	for (size_t i = 0; i < sizeof(id) && id[8] && !r; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text_putc(&memory->text, '-');
		(void)snprintf(digits, sizeof(digits), "%02x", id[i]);
		text_puts(&memory->text, digits);
	}
	return r;
}

static void memory_close(struct channel *channel)
{
	struct channel_memory *memory = (struct channel_memory *)channel;

	text_free(&memory->text);
	memory_kcore_free(&memory->kcore);
}

/* Make the text or the kcore of a file. */
static int make(struct channel_memory *memory, const char *path, struct ptvm_error *error)
{
	static const struct {
		const char *path;
		int (*make)(struct channel_memory *memory, struct ptvm_error *error);
	} files[] = {
		{ "/proc/kallsyms", make_kallsyms },
		{ "/proc/modules", make_modules },
		{ "/proc/kcore", make_kcore },
		{ "/proc/sys/kernel/random/boot_id", make_boot_id },
		{ "/sys/kernel/notes", make_notes },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(files[i].path, path))
			return files[i].make(memory, error);
	return make_module_note(memory, path, error);
}

static int memory_open(struct channel *channel, const char *path, struct ptvm_error *error)
{
	struct channel_memory *memory = (struct channel_memory *)channel;
	int r;

	page_walk_forget(&memory->kernel.walk);
	r = make(memory, path, error);
	if (!r && memory->text.failed)
		r = -PTVM_NO_MEMORY;
	if (r)
		memory_close(channel);
	return r;
}

static int memory_read(struct channel *channel, uint64_t offset, void *data, size_t size,
		       struct ptvm_error *error)
{
	struct channel_memory *memory = (struct channel_memory *)channel;
	struct bytes text = { (const uint8_t *)memory->text.data, memory->text.size };
	struct bytes part = bytes_slice(text, offset, size);

	if (memory->kcore.code.count)
		return memory_kcore_read(&memory->kcore, &memory->kernel, offset, data, size,
					 error);
	if (part.size)
		memcpy(data, part.data, part.size);
	return (int)part.size;
}

static void memory_free(struct channel *channel)
{
	struct channel_memory *memory = (struct channel_memory *)channel;

	module_list_free(&memory->modules);
	guest_kernel_free(&memory->kernel);
	free(channel);
}

static const struct channel_way memory_way = {
	.name = "memory",
	.open = memory_open,
	.read = memory_read,
	.close = memory_close,
	.free = memory_free,
	.opens_fast = true,
	.is_code_only = true,
};

int channel_memory_new(const struct guest_memory *memory, const struct page_root *roots,
		       size_t count, struct channel **ret, struct ptvm_error *error)
{
	struct channel_memory *channel = calloc(1, sizeof(*channel));
	int r;

	if (!channel)
		return -PTVM_NO_MEMORY;
	channel_init(&channel->channel, &memory_way);
	r = guest_kernel_find(memory, roots, count, &channel->kernel, error);
	if (r)
		channel_free(&channel->channel);
	else
		*ret = &channel->channel;
	return r;
}
