#include "decode/label_targets.h"

#include <stdio.h>
#include <string.h>

enum {
	SYMBOL_NAME_MAX = 256,
	SCAN_MAX = 4096,      /* instructions of a function */
	BLIND_SCAN_MAX = 512, /* and where functions are not known */
};

struct targets {
	struct machine *machine;
	const struct insn *label;
	uint64_t time_ns;
	uint64_t *items, costs[LABEL_TARGETS_MAX];
	unsigned count, left; /* instructions that may still be looked at */
};

/* Kept in order of cost. */
static void add(struct targets *targets, uint64_t ip, bool is_shared)
{
	uint64_t next = insn_next(targets->label);
	bool is_back = ip < next;
	uint64_t distance = is_back ? next - ip : ip - next;
	uint64_t cost = (uint64_t)is_shared << 41 | (uint64_t)is_back << 40 | distance;
	unsigned i = targets->count;

	if (!distance || distance >> 31 || (targets->label->length == 2 && distance > 127))
		return;
	for (unsigned k = 0; k < i; k++)
		if (targets->items[k] == ip && targets->costs[k] <= cost)
			return;
	if (i == LABEL_TARGETS_MAX && cost >= targets->costs[--i])
		return;
	for (; i > 0 && targets->costs[i - 1] > cost; i--) {
		targets->items[i] = targets->items[i - 1];
		targets->costs[i] = targets->costs[i - 1];
	}
	targets->items[i] = ip;
	targets->costs[i] = cost;
	if (targets->count < LABEL_TARGETS_MAX)
		targets->count++;
}

static bool read_insn(const struct targets *targets, uint64_t ip, struct insn *ret)
{
	struct code_view view;

	return !machine_code(targets->machine, -1, ip, targets->time_ns, &view) &&
	       !insn_read(view.data, view.left, ip, 64, ret);
}

/* int3, or a NOP of any length that is not a prefixed other instruction */
static bool is_padding(const struct insn *insn)
{
	const uint8_t *bytes = insn->bytes;

	for (unsigned i = 0; i + 1 < insn->length && (*bytes == 0x66 || *bytes == 0x2e); i++)
		bytes++;
	return *bytes == 0xcc || *bytes == 0x90 || (bytes[0] == 0x0f && bytes[1] == 0x1f);
}

static bool goes_on(const struct insn *insn)
{
	switch ((enum insn_class)insn->class) {
	case INSN_JMP:
	case INSN_JMP_INDIRECT:
	case INSN_RET:
	case INSN_IRET:
	case INSN_SYSRET:
	case INSN_FAR_JMP:
	case INSN_FAR_RET: return false;
	default: return insn->bytes[0] != 0x0f || insn->bytes[1] != 0x0b; /* ud2 */
	}
}

static bool is_in(const struct targets *targets, uint64_t ip, uint64_t start, const char *name)
{
	struct symbol_view view;

	if (!name)
		return true;
	machine_symbol(targets->machine, -1, ip, targets->time_ns, &view);
	return view.name && ip - view.offset == start;
}

/* One function from its start; without a name, whatever is there. */
static void scan(struct targets *targets, uint64_t start, const char *name, bool is_new)
{
	uint64_t ip = start;
	struct insn insn;

	while (targets->left && is_in(targets, ip, start, name) && read_insn(targets, ip, &insn)) {
		targets->left--;
		if (is_new)
			add(targets, ip, false);
		is_new = !goes_on(&insn) || (is_new && is_padding(&insn));
		if ((insn.class == INSN_JCC || insn.class == INSN_JMP) &&
		    is_in(targets, insn.target, start, name))
			add(targets, insn.target, true);
		ip = insn_next(&insn);
	}
}

/* The function that holds the label, and its .cold part. */
static void scan_function(struct targets *targets, const struct symbol_view *view)
{
	char cold[SYMBOL_NAME_MAX];
	uint64_t start;

	scan(targets, targets->label->ip - view->offset, view->name, false);
	if (snprintf(cold, sizeof(cold), "%s.cold", view->name) >= (int)sizeof(cold))
		return;
	start = machine_symbol_address(targets->machine, cold);
	if (start)
		scan(targets, start, cold, true);
}

unsigned label_targets(struct machine *machine, const struct insn *label, uint64_t time_ns,
		       uint64_t *ret, unsigned *ret_looked_at)
{
	struct targets targets = {
		.machine = machine, .label = label, .time_ns = time_ns, .items = ret
	};
	struct symbol_view view;
	unsigned most;

	machine_symbol(machine, -1, label->ip, time_ns, &view);
	targets.left = most = view.name ? SCAN_MAX : BLIND_SCAN_MAX;
	if (view.name)
		scan_function(&targets, &view);
	else
		scan(&targets, insn_next(label), NULL, false);
	*ret_looked_at = most - targets.left;
	return targets.count;
}
