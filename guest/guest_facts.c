#include "guest/guest_facts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode/perf/build_id.h"
#include "guest/channel.h"
#include "guest/kcore_head.h"

/* _stext of a kernel that did not move: 16 MiB into its mapping (CONFIG_PHYSICAL_START). */
static const uint64_t linked_start = 0xffffffff81000000;

enum { STAT_BYTES = 64 << 10, NOTES_BYTES = 4096 };

/* Take over a value up to the first byte that is not printable. */
static void set(struct guest_fact *fact, const char *value, const char *from)
{
	size_t used = 0;

	while (value[used] >= ' ' && value[used] <= '~' && used < sizeof(fact->value) - 1)
		used++;
	memcpy(fact->value, value, used);
	fact->value[used] = '\0';
	fact->from = used ? from : NULL;
}

static void set_from_file(struct channel *channel, const char *path, struct guest_fact *fact)
{
	char text[sizeof(fact->value)];

	if (channel_read_text(channel, path, text, sizeof(text), NULL) > 0)
		set(fact, text, path);
}

static void set_from_vmcoreinfo(const struct kcore_head *head, const char *name,
				struct guest_fact *fact)
{
	char text[sizeof(fact->value)];

	if (vmcoreinfo_value(head->vmcoreinfo, name, text, sizeof(text)))
		set(fact, text, "VMCOREINFO");
}

static void set_from_notes(struct channel *channel, struct guest_fact *fact)
{
	static const char path[] = "/sys/kernel/notes";
	struct build_id id;
	char notes[NOTES_BYTES], text[BUILD_ID_TEXT_BYTES];
	int size = channel_read_text(channel, path, notes, sizeof(notes), NULL);

	if (size <= 0)
		return;
	(void)build_id_find((struct bytes){ (const uint8_t *)notes, (size_t)size }, &id);
	set(fact, build_id_text(&id, text), path);
}

/* "btime SECONDS" */
static void set_boot_time(struct channel *channel, struct guest_fact *fact)
{
	static const char path[] = "/proc/stat";
	char text[STAT_BYTES];
	const char *line;

	if (channel_read_text(channel, path, text, sizeof(text), NULL) <= 0)
		return;
	line = strstr(text, "\nbtime ");
	if (line)
		set(fact, line + strlen("\nbtime "), path);
}

static void set_kaslr_offset(const struct kcore_head *head, uint64_t kernel_start,
			     struct guest_fact *fact)
{
	struct guest_fact offset = { 0 };
	char text[sizeof(fact->value) + 2];

	set_from_vmcoreinfo(head, "KERNELOFFSET", &offset);
	if (offset.from)
		(void)snprintf(text, sizeof(text), "0x%s", offset.value);
	else
		(void)snprintf(text, sizeof(text), "0x%" PRIx64, kernel_start - linked_start);
	set(fact, text, offset.from ? offset.from : "/proc/kallsyms");
}

void guest_facts_read(struct channel *channel, const struct kcore_head *head, uint64_t kernel_start,
		      struct guest_facts *ret)
{
	memset(ret, 0, sizeof(*ret));
	set_from_file(channel, "/proc/sys/kernel/osrelease", &ret->release);
	if (!ret->release.from)
		set_from_vmcoreinfo(head, "OSRELEASE", &ret->release);
	set_from_notes(channel, &ret->build_id);
	if (!ret->build_id.from)
		set_from_vmcoreinfo(head, "BUILD-ID", &ret->build_id);
	set_kaslr_offset(head, kernel_start, &ret->kaslr_offset);
	set_boot_time(channel, &ret->boot_time);
	set_from_file(channel, "/proc/sys/kernel/random/boot_id", &ret->boot_id);
}
