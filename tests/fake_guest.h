/* A guest made of a few files: a kernel of known code, symbols and page tables below the root of a
 * fake_tree. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/error.h"
#include "tests/fake_tree.h"

#define FAKE_GUEST_KERNEL 0xffffffff96000000
#define FAKE_GUEST_MODULE 0xffffffffc0533000
#define FAKE_GUEST_THUNKS 0xffffffffc0565000 /* a page that only the page tables tell of */
enum {
	FAKE_GUEST_KERNEL_BYTES = 0x200000, /* whole pages */
	FAKE_GUEST_TEXT_BYTES = 0x180123,   /* _etext - _stext */
	FAKE_GUEST_MODULE_BYTES = 0x3000,
};

/** Make the files. */
void fake_guest_init(const struct fake_tree *tree);

/** The byte of code that it has at `address`. */
uint8_t fake_guest_byte(uint64_t address);

/** How a guest agent may lie. */
enum fake_lie {
	FAKE_TRUTH,
	FAKE_READ_FAILS,    /* libvirt says that there was no answer */
	FAKE_SEEKS_WRONG,   /* seeks, but says that it is elsewhere */
	FAKE_READS_MORE,    /* than it was asked for */
	FAKE_READS_NONSENSE /* no reply that has a meaning */
};

/** An agent of such a guest. Zero-initialise but for the tree. */
struct fake_agent {
	const struct fake_tree *tree;
	enum fake_lie lie;
	int open, closed; /* how often guest-file-open and -close were done */
	int most;         /* bytes asked for in one command */
	int file;
	struct fake_program {
		uint8_t *output; /* of dd or sh; NULL: it failed */
		size_t size;
		bool was_asked; /* and said that it still ran */
	} program;
};

/** As struct agent_line has it; `context` is a struct fake_agent. */
int fake_agent_ask(void *context, const char *command, char **ret, struct ptvm_error *error);

/** An agent that gives replies which were written before, and keeps what it was asked. */
struct fake_script {
	const char *const *replies; /* NULL: it does not answer that one; the last one is for all */
	size_t count, next;
	char asked[4096]; /* a line for each command, without what all begin with */
};

/** As struct agent_line has it; `context` is a struct fake_script. */
int fake_script_ask(void *context, const char *command, char **ret, struct ptvm_error *error);
