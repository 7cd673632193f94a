/* struct module (include/linux/module.h of Linux) begins with its state, the list's pointers and
 * its name: that much never changed. The place of the rest depends on the configuration of the
 * kernel. Pointers back into the struct itself tell it:
 *
 *   - each part of a module's memory ends with a node of a tree, which points to the module and is
 *     48 bytes more. Before it are, to 6.3, for core and init,
 *       base, size, three sizes in it (80 bytes with the node)
 *     from 6.4, for text and six other parts,
 *       base, size (72), in 6.13 base, writable copy, flag, size (80), later base, flag, size (72)
 *   - the pointer to the symbols of a module that is loaded points just behind itself:
 *       table, count, names, types (since 5.2) */
#include "guest/module_list.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/base/bytes.h"
#include "decode/base/cleanup.h"
#include "decode/base/text.h"
#include "decode/base/vec.h"
#include "guest/kernel_image.h"
#include "guest/page_walk.h"

enum {
	LIST_AT = 8,
	NAME_AT = 24,
	HEAD_BYTES = NAME_AT + MODULE_NAME_BYTES,
	ALIGN = 64, /* of a struct module */
	STRUCT_BYTES = 2048,
	SHORT_PART = 72,
	LONG_PART = 80,
	PARTS = 7,                     /* since 6.4 */
	FIXED_PART = 2,                /* of these, read-only data (MOD_RODATA) */
	TRIES = 4 * MODULE_LIST_ITEMS, /* structs followed that may be modules */
};

struct search {
	struct page_walk *walk;
	uint64_t start;
	unsigned tries;
};

static bool is_in_kernel(uint64_t address)
{
	return address >= kernel_image_first && address < kernel_image_last && !(address % 8);
}

static bool is_name(const uint8_t *name)
{
	size_t length = strnlen((const char *)name, MODULE_NAME_BYTES), i = 0;

	for (; i < length; i++)
		if (!isalnum(name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	for (; i < MODULE_NAME_BYTES; i++)
		if (name[i])
			return false;
	return length && length < MODULE_NAME_BYTES;
}

/* Do HEAD_BYTES look like those of a module? */
static bool is_head(const uint8_t *head)
{
	return load_le(head, 4) <= MODULE_UNFORMED && is_in_kernel(load_le(head + LIST_AT, 8)) &&
	       is_in_kernel(load_le(head + LIST_AT + 8, 8)) && is_name(head + NAME_AT);
}

static uint64_t read_word(struct page_walk *walk, uint64_t address)
{
	uint8_t word[8];

	return page_walk_read(walk, address, word, sizeof(word), NULL) ? 0 : load_le(word, 8);
}

/* Read the STRUCT_BYTES of the module that `node`, its pair of pointers in the list, belongs to; 0
 * where nothing is mapped. False where it is no module. */
static bool read_struct(const struct search *search, uint64_t node, uint8_t *ret)
{
	if (!is_in_kernel(node) || node < search->start)
		return false;
	(void)page_walk_read(search->walk, node - LIST_AT, ret, STRUCT_BYTES, NULL);
	return is_head(ret);
}

/* The parts of its memory: `count` of them, of `part` bytes each. The first one is code, and ends
 * at `at`. */
static void read_parts(const uint8_t *module, size_t at, size_t part, unsigned count,
		       struct listed_module *ret)
{
	bool is_new = count >= PARTS;
	size_t base = is_new && part == SHORT_PART ? 16 : 24, size = 16, fixed;

	if (is_new)
		size = load_le(module + at - 4, 4) ? 4 : 8;
	ret->text = load_le(module + at - base, 8);
	if (!is_in_kernel(ret->text))
		ret->text = 0;
	fixed = at + (is_new ? FIXED_PART * part : 0);
	ret->fixed = load_le(module + fixed - base, 8);
	ret->fixed_size = (uint32_t)load_le(module + fixed - size, 4);
	if (!is_in_kernel(ret->fixed))
		ret->fixed = 0;
	for (; count--; at += part)
		ret->size += load_le(module + at - size, 4);
}

/* How many words from `at` on, `part` bytes apart, point to the module. */
static unsigned count_parts(const uint8_t *module, size_t at, size_t part, uint64_t address)
{
	unsigned count = 0;

	for (; at + 8 <= STRUCT_BYTES && load_le(module + at, 8) == address; at += part)
		count++;
	return count;
}

static void find_parts(const uint8_t *module, struct listed_module *ret)
{
	static const size_t sizes[] = { SHORT_PART, LONG_PART };

	for (size_t at = HEAD_BYTES; at + 8 <= STRUCT_BYTES; at += 8)
		for (unsigned i = 0; i < 2; i++) {
			unsigned count = count_parts(module, at, sizes[i], ret->address);

			if (count < (sizes[i] == SHORT_PART ? PARTS : 2))
				continue;
			read_parts(module, at, sizes[i], count, ret);
			return;
		}
}

static void find_symbols(const uint8_t *module, struct listed_module *ret)
{
	for (size_t at = HEAD_BYTES; at + 40 <= STRUCT_BYTES; at += 8) {
		if (load_le(module + at, 8) != ret->address + at + 8)
			continue;
		ret->symbols = load_le(module + at + 8, 8);
		ret->symbol_count = (uint32_t)load_le(module + at + 16, 4);
		ret->names = load_le(module + at + 24, 8);
		ret->types = load_le(module + at + 32, 8);
		if (is_in_kernel(ret->symbols) && ret->names >= kernel_image_first &&
		    ret->types >= kernel_image_first)
			return;
	}
	ret->symbol_count = 0;
}

static void read_module(const uint8_t *module, uint64_t address, struct listed_module *ret)
{
	*ret = (struct listed_module){ .address = address,
				       .state = (enum module_state)load_le(module, 4) };
	memcpy(ret->name, module + NAME_AT, sizeof(ret->name));
	find_parts(module, ret);
	find_symbols(module, ret);
}

/* Follow the list from its head back to it. False where it does not lead there. */
static int follow(const struct search *search, uint64_t head, struct module_list *ret)
{
	uint8_t module[STRUCT_BYTES];
	struct listed_module item;
	uint64_t node = read_word(search->walk, head), last = head;
	unsigned steps = 0;

	for (; node != head; last = node, node = load_le(module + LIST_AT, 8)) {
		if (steps++ == MODULE_LIST_ITEMS || !read_struct(search, node, module) ||
		    load_le(module + LIST_AT + 8, 8) != last)
			return -PTVM_NOT_FOUND;
		read_module(module, node - LIST_AT, &item);
		if (item.state != MODULE_UNFORMED && !vec_push(ret, item))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

/* The list's head, the one of its nodes that is in the kernel's image; 0 where `node` leads to
 * none. */
static uint64_t find_head(struct search *search, uint64_t node)
{
	uint64_t next;

	for (unsigned i = 0; i < MODULE_LIST_ITEMS && search->tries; i++, node = next) {
		search->tries--;
		next = read_word(search->walk, node);
		if (!is_in_kernel(next) || read_word(search->walk, next + 8) != node)
			return 0;
		if (next < search->start)
			return next;
	}
	return 0;
}

/* Search one part of the modules' memory. Returns 1 where the list was found. */
static int search_run(struct search *search, const struct page_run *run, struct module_list *ret,
		      struct ptvm_error *error)
{
	_cleanup_free_ uint8_t *data = malloc(run->size);
	uint64_t head;
	int r;

	if (!data)
		return -PTVM_NO_MEMORY;
	r = page_walk_read(search->walk, run->address, data, run->size, error);
	for (size_t at = 0; !r && search->tries && at + HEAD_BYTES <= run->size; at += ALIGN) {
		if (!is_head(data + at))
			continue;
		head = find_head(search, run->address + at + LIST_AT);
		r = head ? follow(search, head, ret) : -PTVM_NOT_FOUND;
		if (r != -PTVM_NOT_FOUND)
			return r ? r : 1;
		ret->count = 0;
		r = 0;
	}
	return r == -PTVM_NOT_FOUND ? 0 : r;
}

int module_list_find(struct page_walk *walk, uint64_t start, struct module_list *ret,
		     struct ptvm_error *error)
{
	struct search search = { walk, start, TRIES };
	uint64_t at = start, searched = 0;
	struct page_run run;
	int r;

	memset(ret, 0, sizeof(*ret));
	while ((r = page_walk_next(walk, at, kernel_image_last, &run, error)) > 0) {
		at = run.address + run.size;
		if (!run.is_supervisor || run.is_executable)
			continue;
		searched += run.size;
		if (searched > MODULE_LIST_BYTES)
			return 0;
		r = search_run(&search, &run, ret, error);
		if (r)
			return r < 0 ? r : 0;
	}
	return r;
}

void module_list_print(const struct module_list *list, struct text *text)
{
	static const char *const states[] = { "Live", "Loading", "Unloading", "" };
	char line[MODULE_NAME_BYTES + 80];

	for (size_t i = 0; i < list->count; i++) {
		const struct listed_module *module = &list->items[i];

		(void)snprintf(line, sizeof(line), "%s %" PRIu64 " - - %s 0x%016" PRIx64 "\n",
			       module->name, module->size, states[module->state], module->text);
		text_puts(text, line);
	}
}

void module_list_free(struct module_list *list)
{
	vec_free(list);
}
