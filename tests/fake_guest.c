#include "tests/fake_guest.h"

#include <elf.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake_memory.h"

enum {
	NOTES_AT = 0x400,
	KERNEL_AT = 0x10000,
	MODULES_AT = KERNEL_AT + FAKE_GUEST_KERNEL_BYTES,
	MODULES_BYTES = 0x40000,
	RAM_AT = MODULES_AT + MODULES_BYTES,
	RAM_BYTES = 0x10000,
	KCORE_BYTES = RAM_AT + RAM_BYTES,
};

static const char kallsyms[] = "ffffffff96000000 T _stext\n"
			       "ffffffff96000000 T _text\n"
			       "ffffffff96000040 t start_kernel\n"
			       "ffffffff96180123 T _etext\n"
			       "ffffffff96190000 D jiffies\n"
			       "ffffffff961a0000 B _end\n"
			       "ffffffffc0533010 t virtio_probe\t[virtio]\n"
			       "ffffffffc0550020 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

static const char modules[] = "virtio 12288 1 virtio_pci, Live 0xffffffffc0533000\n";

/* The top table is the first thing in RAM that a fake_memory has. */
static const char vmcoreinfo[] = "OSRELEASE=6.1.0-fake\nPAGESIZE=4096\n"
				 "SYMBOL(init_uts_ns)=ffffffff96190100\n"
				 "SYMBOL(init_top_pgt)=ffffffff80002000\nNUMBER(phys_base)=0\n"
				 "KERNELOFFSET=15000000\n";

uint8_t fake_guest_byte(uint64_t address)
{
	return (uint8_t)(address ^ address >> 8 ^ address >> 16 ^ address >> 24);
}

static void put_code(uint8_t *to, uint64_t address, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = fake_guest_byte(address + i);
}

static size_t put_note(uint8_t *to, const char *name, uint32_t type, const void *content,
		       size_t size)
{
	Elf64_Nhdr note = { (uint32_t)strlen(name) + 1, (uint32_t)size, type };
	size_t name_size = (note.n_namesz + 3) & ~3u;

	memset(to, 0, sizeof(note) + name_size + size);
	memcpy(to, &note, sizeof(note));
	memcpy(to + sizeof(note), name, note.n_namesz);
	memcpy(to + sizeof(note) + name_size, content, size);
	return sizeof(note) + name_size + ((size + 3) & ~(size_t)3);
}

/* Page tables that say what is code; what they map is not in this RAM. */
static void put_ram(uint8_t *to)
{
	enum { TOP = 2 * FAKE_MEMORY_PAGE, ELSEWHERE = 0x100000 };
	struct fake_memory ram;

	fake_memory_init(&ram, RAM_BYTES, false);
	assert_int_equal(ram.root.cr3, TOP);
	fake_memory_map(&ram, 0xffffffff80000000 + TOP, TOP, FAKE_MEMORY_PAGE, FAKE_MEMORY_DATA);
	fake_memory_map(&ram, FAKE_GUEST_KERNEL, ELSEWHERE, FAKE_MEMORY_PAGE, 0);
	fake_memory_map(&ram, FAKE_GUEST_MODULE, ELSEWHERE, FAKE_MEMORY_PAGE, 0);
	fake_memory_map(&ram, FAKE_GUEST_THUNKS, ELSEWHERE, FAKE_MEMORY_PAGE, 0);
	fake_memory_map(&ram, FAKE_GUEST_THUNKS + FAKE_MEMORY_PAGE, ELSEWHERE, FAKE_MEMORY_PAGE,
			FAKE_MEMORY_DATA);
	memcpy(to, ram.data, RAM_BYTES);
	fake_memory_deinit(&ram);
}

static void make_kcore(const struct fake_tree *tree)
{
	uint8_t *kcore = calloc(1, KCORE_BYTES);
	Elf64_Ehdr file = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_CORE,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(file),
			    .e_ehsize = sizeof(file),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 4 };
	Elf64_Phdr headers[4] = {
		{ .p_type = PT_NOTE, .p_offset = NOTES_AT },
		{ .p_type = PT_LOAD,
		  .p_offset = KERNEL_AT,
		  .p_vaddr = FAKE_GUEST_KERNEL,
		  .p_paddr = UINT64_MAX,
		  .p_filesz = FAKE_GUEST_KERNEL_BYTES },
		{ .p_type = PT_LOAD,
		  .p_offset = MODULES_AT,
		  .p_vaddr = FAKE_GUEST_MODULE - 0x3000,
		  .p_paddr = UINT64_MAX,
		  .p_filesz = MODULES_BYTES },
		{ .p_type = PT_LOAD,
		  .p_offset = RAM_AT,
		  .p_vaddr = 0xffff888000000000,
		  .p_filesz = RAM_BYTES },
	};

	assert_non_null(kcore);
	headers[0].p_filesz = put_note(kcore + NOTES_AT, "CORE", 1, "abcd", 4);
	headers[0].p_filesz += put_note(kcore + NOTES_AT + headers[0].p_filesz, "VMCOREINFO", 0,
					vmcoreinfo, strlen(vmcoreinfo));
	memcpy(kcore, &file, sizeof(file));
	memcpy(kcore + sizeof(file), headers, sizeof(headers));
	put_code(kcore + KERNEL_AT, FAKE_GUEST_KERNEL, FAKE_GUEST_KERNEL_BYTES);
	put_code(kcore + MODULES_AT, FAKE_GUEST_MODULE - 0x3000, MODULES_BYTES);
	put_ram(kcore + RAM_AT);
	fake_tree_bytes(tree, kcore, KCORE_BYTES, "proc/kcore");
	free(kcore);
}

void fake_guest_init(const struct fake_tree *tree)
{
	uint8_t notes[64];
	size_t size = put_note(notes, "GNU", 3, "\x01\x02\xfe\xff", 4);

	fake_tree_bytes(tree, notes, size, "sys/kernel/notes");
	fake_tree_file(tree, kallsyms, "proc/kallsyms");
	fake_tree_file(tree, modules, "proc/modules");
	fake_tree_file(tree, "6.1.0-fake\n", "proc/sys/kernel/osrelease");
	fake_tree_file(tree, "cpu 1 2 3\nbtime 1700000000\n", "proc/stat");
	make_kcore(tree);
}

static int reply(char **ret, json_t *content)
{
	json_t *json = json_pack("{s:o}", "return", content);

	assert_non_null(json);
	*ret = json_dumps(json, 0);
	json_decref(json);
	return 0;
}

static json_t *base64(const char *name, const uint8_t *data, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc(size / 3 * 4 + 5), *to = text;
	json_t *json;

	assert_non_null(text);
	for (size_t i = 0; i < size; i += 3) {
		unsigned bits = (unsigned)data[i] << 16;

		bits |= i + 1 < size ? (unsigned)data[i + 1] << 8 : 0;
		bits |= i + 2 < size ? data[i + 2] : 0;
		for (int shift = 18; shift >= 0; shift -= 6)
			*to++ = digits[bits >> shift & 63];
	}
	*to = '\0';
	if (size % 3)
		memcpy(to - 3 + size % 3, "==", 3 - size % 3);
	json = json_pack("{s:s}", name, text);
	free(text);
	return json;
}

static int answer_open(struct fake_agent *agent, json_t *arguments, char **ret,
		       struct ptvm_error *error)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s", agent->tree->path,
		       json_string_value(json_object_get(arguments, "path")));
	agent->file = open(path, O_RDONLY | O_CLOEXEC);
	if (agent->file < 0)
		return ptvm_fail_errno(error, "guest agent: %s", path);
	agent->open++;
	return reply(ret, json_integer(1000 + agent->open));
}

static int answer_seek(const struct fake_agent *agent, json_t *arguments, char **ret)
{
	json_int_t offset = json_integer_value(json_object_get(arguments, "offset"));

	assert_int_equal(lseek(agent->file, offset, SEEK_SET), offset);
	return reply(ret,
		     json_pack("{s:I}", "position", offset + (agent->lie == FAKE_SEEKS_WRONG)));
}

static int answer_read(struct fake_agent *agent, json_t *arguments, char **ret,
		       struct ptvm_error *error)
{
	int count = (int)json_integer_value(json_object_get(arguments, "count"));
	int more = agent->lie == FAKE_READS_MORE ? 100 : 0;
	uint8_t *data;
	ssize_t n;

	if (agent->lie == FAKE_READ_FAILS)
		return ptvm_fail(error, PTVM_SYSTEM, "guest agent: no answer");
	if (agent->lie == FAKE_READS_NONSENSE)
		return reply(ret, json_string("bytes"));
	if (count > agent->most)
		agent->most = count;
	data = malloc((size_t)(count + more));
	assert_non_null(data);
	n = read(agent->file, data, (size_t)(count + more));
	assert_true(n >= 0);
	(void)reply(ret, base64("buf-b64", data, (size_t)n));
	free(data);
	return 0;
}

static int answer_close(struct fake_agent *agent, char **ret)
{
	agent->closed++;
	(void)close(agent->file);
	return reply(ret, json_object());
}

/* The value of one of dd's arguments, as "bs=". */
static const char *dd_argument(json_t *arguments, const char *name)
{
	json_t *words = json_object_get(arguments, "arg"), *word;
	size_t i;

	json_array_foreach(words, i, word)
	{
		if (!strncmp(json_string_value(word), name, strlen(name)))
			return json_string_value(word) + strlen(name);
	}
	fail_msg("dd has no %s", name);
	return NULL;
}

/* The guest's shell runs here, outside of the tree. */
static void run_shell(struct fake_program *program, json_t *arguments)
{
	enum { MOST = 65536 };
	json_t *words = json_object_get(arguments, "arg");
	FILE *pipe;

	assert_string_equal(json_string_value(json_array_get(words, 0)), "-c");
	pipe = popen(json_string_value(json_array_get(words, 1)), "r");
	program->output = malloc(MOST);
	assert_non_null(pipe);
	assert_non_null(program->output);
	program->size = fread(program->output, 1, MOST, pipe);
	if (!pclose(pipe))
		return;
	free(program->output);
	*program = (struct fake_program){ 0 };
}

static void run_dd(const struct fake_agent *agent, struct fake_program *program, json_t *arguments)
{
	long block = atol(dd_argument(arguments, "bs="));
	size_t size = (size_t)(block * atol(dd_argument(arguments, "count=")));
	char path[PATH_MAX];
	int file;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s%s", agent->tree->path,
		       dd_argument(arguments, "if="));
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		program->output = malloc(size);
		assert_non_null(program->output);
		n = pread(file, program->output, size,
			  block * atol(dd_argument(arguments, "skip=")));
		assert_true(n >= 0);
		program->size = (size_t)n;
		(void)close(file);
	}
}

/* The program has ended when this returns, but the first guest-exec-status says that it still runs.
 */
static int answer_run(struct fake_agent *agent, json_t *arguments, char **ret)
{
	const char *path = json_string_value(json_object_get(arguments, "path"));

	agent->program = (struct fake_program){ 0 };
	if (!strcmp(path, "sh")) {
		run_shell(&agent->program, arguments);
	} else {
		assert_string_equal(path, "dd");
		run_dd(agent, &agent->program, arguments);
	}
	return reply(ret, json_pack("{s:i}", "pid", 77));
}

static int answer_status(struct fake_agent *agent, json_t *arguments, char **ret)
{
	struct fake_program *program = &agent->program;
	bool was_asked = program->was_asked;
	json_t *output;

	assert_int_equal(json_integer_value(json_object_get(arguments, "pid")), 77);
	program->was_asked = true;
	if (!was_asked)
		return reply(ret, json_pack("{s:b}", "exited", 0));
	output = program->size ? base64("out-data", program->output, program->size) : json_object();
	(void)json_object_set_new(output, "exited", json_true());
	(void)json_object_set_new(output, "exitcode", json_integer(!program->output));
	free(program->output);
	program->output = NULL;
	return reply(ret, output);
}

int fake_agent_ask(void *context, const char *command, char **ret, struct ptvm_error *error)
{
	struct fake_agent *agent = context;
	json_t *json = json_loads(command, 0, NULL);
	json_t *arguments = json_object_get(json, "arguments");
	const char *verb = json_string_value(json_object_get(json, "execute"));
	int r = -PTVM_BAD_USAGE;

	assert_non_null(verb);
	if (!strcmp(verb, "guest-file-open"))
		r = answer_open(agent, arguments, ret, error);
	else if (!strcmp(verb, "guest-file-seek"))
		r = answer_seek(agent, arguments, ret);
	else if (!strcmp(verb, "guest-file-read"))
		r = answer_read(agent, arguments, ret, error);
	else if (!strcmp(verb, "guest-file-close"))
		r = answer_close(agent, ret);
	else if (!strcmp(verb, "guest-exec"))
		r = answer_run(agent, arguments, ret);
	else if (!strcmp(verb, "guest-exec-status"))
		r = answer_status(agent, arguments, ret);
	json_decref(json);
	return r;
}

int fake_script_ask(void *context, const char *command, char **ret, struct ptvm_error *error)
{
	static const char begin[] = "{\"execute\":\"guest-";
	struct fake_script *script = context;
	const char *reply = script->replies[script->next];
	const size_t used = strlen(script->asked);
	json_t *json = json_loads(command, 0, NULL);

	assert_non_null(json);
	json_decref(json);
	assert_int_equal(strncmp(command, begin, strlen(begin)), 0);
	assert_in_range(snprintf(script->asked + used, sizeof(script->asked) - used, "%s\n",
				 command + strlen(begin)),
			1, sizeof(script->asked) - used - 1);
	if (script->next + 1 < script->count)
		script->next++;
	if (!reply)
		return ptvm_fail(error, PTVM_SYSTEM, "guest agent: no answer");
	*ret = strdup(reply);
	assert_non_null(*ret);
	return 0;
}
