#include "decode/patch_options.h"

#include <string.h>

#include "decode/label_targets.h"

static const uint8_t nop2[] = { 0x66, 0x90 }, nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };

/* A direct jump or call of 2 or 5 bytes. */
static void write_branch(struct patch_option *option, const struct insn *insn, uint8_t opcode)
{
	uint64_t distance = option->to - insn_next(insn);

	option->bytes[0] = opcode;
	memcpy(option->bytes + 1, &distance, option->size - 1u);
}

/* A jump label: what goes to the next instruction is a NOP. */
static void add_label(struct patch_options *options, const struct insn *insn, uint64_t to,
		      unsigned unlikely)
{
	struct patch_option *option = &options->items[options->count++];

	*option = (struct patch_option){ .to = to,
					 .size = insn->length,
					 .unlikely = (uint8_t)unlikely };
	if (to != insn_next(insn))
		write_branch(option, insn, insn->length == 2 ? 0xeb : 0xe9);
	else
		memcpy(option->bytes, insn->length == 2 ? nop2 : nop5, insn->length);
}

static void add_labels(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		       struct patch_options *ret)
{
	struct label_targets targets;
	/* with a second copy, a label must have changed twice to be as before */
	unsigned least = machine_has_later_code(machine) ? PATCH_IMPROBABLE : 0;

	label_targets_find(machine, insn, time_ns, &targets);
	ret->looked_at += targets.looked_at;
	for (unsigned i = 0; i < targets.count && ret->count < PATCH_OPTIONS_MAX; i++)
		add_label(ret, insn, targets.items[i],
			  i < targets.back_count   ? least
			  : i < targets.dead_count ? least + 1
						   : least + PATCH_IMPROBABLE);
}

/* Returns whether a later copy differs. */
static bool add_later(struct machine *machine, const struct insn *insn, uint64_t time_ns,
		      struct patch_options *ret)
{
	struct patch_option *option = &ret->items[ret->count];
	struct insn later;
	struct bytes bytes;

	bytes = machine_later_code(machine, insn->ip, insn->length, time_ns);
	if (!bytes.size)
		return false;
	if (insn_read(bytes.data, bytes.size, insn->ip, 64, &later))
		return true;
	*option = (struct patch_option){ .size = later.length, .is_known = true };
	memcpy(option->bytes, later.bytes, later.length);
	option->to = later.class == INSN_JMP || later.class == INSN_CALL ? later.target
									 : insn_next(&later);
	ret->count++;
	return true;
}

bool patch_options_may_be(struct machine *machine, const struct insn *insn, uint64_t time_ns)
{
	return label_targets_is_label(insn) ||
	       machine_later_code(machine, insn->ip, insn->length, time_ns).size;
}

void patch_options_find(struct machine *machine, const struct insn *insn, uint64_t time_ns,
			struct patch_options *ret)
{
	ret->count = ret->looked_at = 0;
	if (!add_later(machine, insn, time_ns, ret) && label_targets_is_label(insn))
		add_labels(machine, insn, time_ns, ret);
}
