/* What a machine is made of; for machines.c, machine.c, machine_*.c and tracepoint_table.c only. */
#pragma once

#include <pthread.h>

#include "decode/base/arena.h"
#include "decode/base/bytes.h"
#include "decode/code/caller_table.h"
#include "decode/code/dso.h"
#include "decode/code/elf_file.h"
#include "decode/code/ftrace_table.h"
#include "decode/code/history.h"
#include "decode/code/label_table.h"
#include "decode/code/later_code.h"
#include "decode/code/machine.h"
#include "decode/code/machines.h"
#include "decode/code/modules.h"
#include "decode/code/probe_table.h"
#include "decode/code/process.h"
#include "decode/code/text_poke.h"
#include "decode/code/tracepoint_table.h"

/** A name that holds for a range of addresses: the kernel's or a module's, or a KSYMBOL. */
struct named_range {
	uint64_t start;
	const char *name; /* NULL: the range has no name any more */
};

struct named_ranges {
	struct {
		struct named_range *items;
		size_t count, room;
	} list; /* as in `history` */
	struct history history;
};

struct machine_mapping {
	struct bytes bytes;
	const char *path;
	bool has_symbols; /* of an ELF file that lies at its addresses plus `base`, if not read */
	uint64_t base;
};

struct machine {
	int32_t pid;
	bool is_guest;
	bool is_timeless;        /* the trace has no time: what was last holds throughout */
	bool is_flat;            /* made by hand: one address space for everything */
	const char *kernel_name; /* "[kernel.kallsyms]" */
	struct image image;
	struct later_code later;
	struct text_pokes pokes;
	struct symbols symbols;
	struct symbols later_symbols; /* of modules that only a later copy has */
	struct named_ranges maps;     /* the kernel and its modules */
	struct named_ranges ksymbols; /* BPF programs and other text made at run time */
	/* Where the recording says the kernel is: a symbol and its address; NULL unknown. */
	const char *reference_name;
	uint64_t reference_address;
	struct build_id kernel_id; /* the host's, none unknown */
	struct processes processes;
	struct {
		struct dso **items;
		size_t count, room;
	} dsos;
	void *dso_tree; /* of tsearch(3): the same by name and build id, as there may be very many
			 */
	struct dso_places places;
	struct {
		struct machine_mapping *items;
		size_t count, room;
	} files;                        /* mapped, of the image */
	atomic_bool has_unread_symbols; /* some of `files` have, see machine_load_symbols() */
	struct arena names;
	pthread_mutex_t lock; /* of notes, and of loading files */
	struct {
		char **items;
		size_t count, room;
	} notes;
	bool no_kernel_noted;
	atomic_bool misses_guest; /* of the host: machines_miss_guest() */
	/* machine_tables.c; 0: nobody has asked */
	atomic_uint_least64_t int3_handler, switch_to;
	struct label_table labels;
	struct probe_table probes;
	struct ftrace_table ftrace;
	atomic_bool tables_are_loaded; /* labels, probes and ftrace */
	struct caller_table callers;
	atomic_bool callers_are_loaded;
	struct tracepoint_table tracepoints;
	atomic_bool tracepoints_are_loaded;
	pthread_mutex_t tracepoints_lock;
};

/** Add a note for the user. To be called while loading, or with the lock held. */
void machine_note(struct machine *machine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Append a named range. Returns 0 or -PTVM_NO_MEMORY. */
int named_ranges_add(struct named_ranges *ranges, uint64_t start, uint64_t end, uint64_t time,
		     const char *name);

/** The file with this name (borrowed) and build id, which is made if it is new; NULL when memory is
 * out. */
struct dso *machine_dso(struct machine *machine, const char *name, const struct build_id *build_id);

/**
 * Find the machine of a guest by exact pid, or make it. Returns 0, -PTVM_NO_MEMORY, or -PTVM_END if
 * it would be one more than MACHINES_GUESTS_MAX, with a note.
 */
int machines_guest_add(struct machines *machines, int32_t pid, struct machine **ret);

/** Map a file for as long as the machine lives. Returns 0 or an error as mapped_file_open(). */
int machine_keep_file(struct machine *machine, const char *path, struct bytes *ret,
		      struct ptvm_error *error);

/** The same for an ELF file; elf_file_close() in any case. Also returns as elf_file_read(). */
int machine_open_elf(struct machine *machine, const char *path, struct elf_file *ret,
		     struct ptvm_error *error);

/** Take maps, processes, pokes and run-time symbols from the records of a recording. Returns 0 or
 * -PTVM_NO_MEMORY. */
int machines_read_records(struct machines *machines, const struct perf_data *data);

/** Read the symbols of the files that were given by hand, if that is not done. Never fails: without
 * memory fewer are known. The lock must not be held. */
void machine_load_symbols(struct machine *machine);

/** Where a kernel's files are; NULL where there is none. */
struct kernel_files {
	const char *kallsyms, *kcore, *modules, *vmlinux;
	/* what a later copy has besides, see docs/recording-format.md */
	const char *later_kcore, *later_kallsyms;
};

/** DIRECTORY/NAME, which lives as long as the machine, if it is there; NULL otherwise. */
const char *machine_path(struct machine *machine, const char *directory, const char *name);

/** The files of a kernel in a directory laid out as kcore_dir. */
struct kernel_files machine_kernel_files(struct machine *machine, const char *directory);

/**
 * The files of the host's kernel for a recording that brings none, where perf keeps and takes them:
 * in its cache, by the kernel's build id, else from the kernel that runs now if it is the same.
 * Call after the records were read. Without a build id, and below a --symfs, there are none.
 */
struct kernel_files machine_cached_kernel(struct machine *machine);

/**
 * Load a kernel's code and symbols, after the records were read.
 *
 * @files   those that were found
 * @asked   those of them whose failure is an error, because the user named them; the others'
 *          failures become notes
 *
 * Returns 0, -PTVM_NO_MEMORY, or -PTVM_SYSTEM or -PTVM_BAD_INPUT for a file that was asked for.
 */
int machine_load_kernel(struct machine *machine, const struct kernel_files *files,
			const struct kernel_files *asked, struct ptvm_error *error);
