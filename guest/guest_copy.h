/* Copies a guest's kernel: kallsyms, modules, the code in kcore, and guest.json, which says whose
 * they are. One step at a time, so that its caller can tell how far it is, or give up. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "decode/code/modules.h"
#include "guest/guest_facts.h"
#include "guest/guest_modules.h"
#include "guest/kcore_copy.h"
#include "guest/kcore_head.h"

struct channel;
struct output_directory;

enum {
	GUEST_KALLSYMS_BYTES = 64 << 20, /* more is refused, as are more modules */
	GUEST_MODULES_BYTES = 1 << 20,
	GUEST_COPY_TRIES = 3,
};

struct guest_copy {
	struct channel *channel;
	const struct output_directory *directory;
	const char *domain;
	bool is_bare;  /* leave guest.json out; this and the next are set before the first step */
	bool is_again; /* leave out the files of modules, which are known */

	const char *doing;    /* a word for people */
	uint64_t done, total; /* bytes of that; `total` 0: not known */

	struct guest_facts facts; /* below, what was found when all is copied */
	uint64_t kernel_start;
	uint64_t kallsyms_bytes;
	struct modules modules;
	struct guest_modules files; /* and what else is known of them */
	struct kcore_copy code;

	unsigned step, tries;
	int kallsyms; /* the file while it is written, else -1 */
	struct kcore_head head;
};

/**
 * Begin; nothing is asked of the guest yet.
 *
 * @channel, directory  borrowed until guest_copy_free()
 * @domain              for guest.json; NULL: not known
 */
void guest_copy_init(struct guest_copy *copy, struct channel *channel,
		     const struct output_directory *directory, const char *domain);

/**
 * Do the next part, which takes seconds at most.
 *
 * Where modules were loaded or removed meanwhile the copy begins again.
 *
 * Returns 1 while there is more to do, 0 when the copy is complete, -PTVM_BAD_INPUT (the guest
 * shows no addresses, or makes no sense), -PTVM_INCONSISTENT (modules kept changing) or another
 * error.
 */
int guest_copy_next(struct guest_copy *copy, struct ptvm_error *error);

/**
 * What was copied, of which kernel, and where each fact is from, as guest.json has it; once the
 * copy is complete. Returns NULL where memory is out.
 */
json_t *guest_copy_json(const struct guest_copy *copy);

/** Free everything but the channel and the directory; also after a failure. */
void guest_copy_free(struct guest_copy *copy);
