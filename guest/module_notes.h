/* The ELF notes of a module in a guest's memory: its build id. The kernel keeps where they are for
 * /sys/module only, in structs that differ from version to version; but they are in the module's
 * read-only data, and begin in a way that nothing else does. */
#pragma once

#include "decode/base/error.h"

struct listed_module;
struct page_walk;
struct text;

enum { MODULE_NOTES_BYTES = 16 << 20 /* of a module's memory, more is not searched */ };

/**
 * Append the note with the build id, as /sys/module/NAME/notes/.note.gnu.build-id has it; nothing
 * where there is none.
 * Returns 0, -PTVM_NO_MEMORY or an error of the memory.
 */
int module_notes_print(struct page_walk *walk, const struct listed_module *module,
		       struct text *text, struct ptvm_error *error);
