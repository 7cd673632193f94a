#include "decode/code/label_targets.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/sort.h"
#include "decode/code/label_table.h"

enum {
	SCAN_MAX = 8192,    /* instructions of a function */
	PIECE_MAX = 64,     /* instructions until it is known whether a piece leads back */
	BACK_DISTANCE = 16, /* behind the label, which may share its end with others */
	AHEAD_MAX = 6,
	ENDBR_SIZE = 4,
};

bool label_targets_is_label(const struct insn *insn)
{
	if (insn->length != 2 && insn->length != 5)
		return false;
	if (insn->class == INSN_JMP)
		return insn->bytes[0] == 0xeb || insn->bytes[0] == 0xe9;
	return insn->length == 2 ? !memcmp(insn->bytes, "\x66\x90", 2)
				 : !memcmp(insn->bytes, "\x0f\x1f\x44\0\0", 5);
}

static void add(struct label_places *places, uint64_t ip)
{
	if (places->count < LABEL_PLACES_MAX)
		places->items[places->count++] = ip;
}

static bool read_insn(struct label_scan *scan, uint64_t ip, struct insn *ret)
{
	struct code_view view;

	if (scan->looked_at == scan->most)
		return false;
	scan->looked_at++;
	return !machine_code(scan->machine, -1, ip, scan->time_ns, &view) &&
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
	case INSN_UD:
	case INSN_JMP:
	case INSN_JMP_INDIRECT:
	case INSN_RET:
	case INSN_IRET:
	case INSN_SYSRET:
	case INSN_FAR_JMP:
	case INSN_FAR_RET: return false;
	default: return true;
	}
}

static bool is_in(const struct label_scan *scan, uint64_t ip, uint64_t start)
{
	struct symbol_view view;

	machine_symbol(scan->machine, -1, ip, scan->time_ns, &view);
	return view.name && ip - view.offset == start;
}

/* A branch out of the function may show where its other part is. */
static void note_cold(struct label_scan *scan, uint64_t ip)
{
	size_t length = strlen(scan->name);
	struct symbol_view view;

	if (scan->cold)
		return;
	machine_symbol(scan->machine, -1, ip, scan->time_ns, &view);
	if (view.name && !strncmp(view.name, scan->name, length) &&
	    !strcmp(view.name + length, ".cold"))
		scan->cold = ip - view.offset;
}

static void scan_part(struct label_scan *scan, uint64_t start, bool is_new)
{
	uint64_t ip = start;
	struct insn insn;

	while (is_in(scan, ip, start) && read_insn(scan, ip, &insn)) {
		bool is_nothing = is_padding(&insn) && !label_targets_is_label(&insn);

		if (is_new && !is_nothing)
			add(&scan->leaders, ip);
		is_new = !goes_on(&insn) || (is_new && is_nothing);
		if (insn.class == INSN_JCC || insn.class == INSN_JMP) {
			add(&scan->reached, insn.target);
			note_cold(scan, insn.target);
		}
		ip = insn_next(&insn);
	}
}

static bool is_reached(const struct label_scan *scan, uint64_t ip)
{
	return bsearch(&ip, scan->reached.items, scan->reached.count, sizeof(ip), sort_numbers);
}

enum way_back { WAY_NONE, WAY_NEAR, WAY_EXACT };

/* How close behind the label the code at `ip`, or a branch in it (`by_branch`), goes on; to go
 * where a jump behind the label leads is close, too. */
static enum way_back leads_back(struct label_scan *scan, uint64_t ip, uint64_t next, bool by_branch)
{
	enum way_back ret = WAY_NONE;
	struct insn insn;

	for (unsigned i = 0; i < PIECE_MAX && read_insn(scan, ip, &insn); i++) {
		if (insn.class == INSN_JMP || (by_branch && insn.class == INSN_JCC)) {
			if (insn.target == next)
				return WAY_EXACT;
			if (insn.target - next <= BACK_DISTANCE || insn.target == scan->beyond)
				ret = WAY_NEAR;
		}
		if (!goes_on(&insn))
			break;
		ip = insn_next(&insn);
	}
	return ret;
}

static bool is_in_reach(const struct insn *label, uint64_t ip)
{
	int64_t distance = (int64_t)(ip - insn_next(label));
	int64_t most = label->length == 2 ? 127 : INT32_MAX;

	return distance && distance >= -most - 1 && distance <= most;
}

static void insert(struct label_targets *targets, unsigned at, uint64_t ip)
{
	if (at >= LABEL_TARGETS_MAX)
		return;
	if (targets->count < LABEL_TARGETS_MAX)
		targets->count++;
	memmove(targets->items + at + 1, targets->items + at,
		(targets->count - 1 - at) * sizeof(*targets->items));
	targets->items[at] = ip;
}

/* Where the code that a label skips ends, others arrive, too: try the next such places. */
static void choose_ahead(const struct label_scan *scan, const struct insn *label,
			 struct label_targets *ret)
{
	unsigned most = ret->count + AHEAD_MAX;
	uint64_t last = insn_next(label);

	for (unsigned i = 0; i < scan->reached.count && ret->count < most; i++) {
		uint64_t ip = scan->reached.items[i];

		if (ip <= last || !is_in_reach(label, ip))
			continue;
		insert(ret, ret->count, ip);
		last = ip;
	}
}

static void choose(struct label_scan *scan, const struct insn *label, struct label_targets *ret)
{
	uint64_t next = insn_next(label);
	struct insn insn;

	if (read_insn(scan, next, &insn) && insn.class == INSN_JMP)
		scan->beyond = insn.target;
	else
		scan->beyond = 0;
	for (unsigned i = 0; i < scan->leaders.count; i++) {
		uint64_t ip = scan->leaders.items[i];
		enum way_back way;

		if (!is_in_reach(label, ip) || is_reached(scan, ip))
			continue;
		way = leads_back(scan, ip, next, true);
		insert(ret,
		       way == WAY_EXACT  ? ret->exact_count
		       : way == WAY_NEAR ? ret->back_count
					 : ret->count,
		       ip);
		ret->exact_count += way == WAY_EXACT;
		ret->back_count += way != WAY_NONE;
	}
	if (ret->back_count > LABEL_TARGETS_MAX)
		ret->back_count = LABEL_TARGETS_MAX;
	if (ret->exact_count > LABEL_TARGETS_MAX)
		ret->exact_count = LABEL_TARGETS_MAX;
	ret->dead_count = ret->count;
	choose_ahead(scan, label, ret);
}

static bool is_leader(const struct label_scan *scan, uint64_t ip)
{
	for (unsigned i = 0; i < scan->leaders.count; i++)
		if (scan->leaders.items[i] == ip)
			return true;
	return false;
}

/* Whether only one branch goes there. */
static bool is_reached_once(const struct label_scan *scan, uint64_t ip)
{
	unsigned count = 0;

	for (unsigned i = 0; i < scan->reached.count; i++)
		count += scan->reached.items[i] == ip;
	return count == 1;
}

/* Can a jump be a NOP? Then what follows it is reached by nothing else, or only from where it jumps
 * to, or the target is reached by nothing else. */
static void choose_next(struct label_scan *scan, const struct insn *label,
			struct label_targets *ret)
{
	uint64_t next = insn_next(label), target = label->target;
	bool is_apart = is_leader(scan, target);

	scan->beyond = 0;
	if (!is_leader(scan, next))
		return;
	if (!is_reached(scan, next) || (is_apart && is_reached_once(scan, target)) ||
	    leads_back(scan, target, next, is_apart))
		insert(ret, 0, next);
	ret->exact_count = ret->back_count = ret->dead_count = ret->count;
}

static void scan_function(struct label_scan *scan, uint64_t start, const char *name)
{
	scan->function = start;
	scan->name = name;
	scan->leaders.count = scan->reached.count = scan->looked_at = 0;
	scan->cold = 0;
	scan->most = SCAN_MAX;
	scan_part(scan, start, false);
	if (scan->cold)
		scan_part(scan, scan->cold, true);
	/* Not all was read: what nothing reaches is not known. */
	if (scan->looked_at == SCAN_MAX || scan->reached.count == LABEL_PLACES_MAX)
		scan->leaders.count = 0;
	sort_vec(&scan->reached, sort_numbers);
}

/* Have the function scanned that the label is in. False: there is none. */
static bool enter_function(struct label_scan *scan, const struct insn *label)
{
	struct symbol_view view;

	machine_symbol(scan->machine, -1, label->ip, scan->time_ns, &view);
	/* Where functions begin, ftrace's calls have the same form. */
	if (!view.name || ((!view.offset || view.offset == ENDBR_SIZE) && label->class != INSN_JMP))
		return false;
	scan->looked_at = 0;
	if (scan->function != label->ip - view.offset)
		scan_function(scan, label->ip - view.offset, view.name);
	return true;
}

/* What the kernel says itself. False: it says nothing about this code. */
static bool look_up(struct machine *machine, const struct insn *label, struct label_targets *ret)
{
	const struct label_table *table = machine_labels(machine);
	const struct label_entry *entry;

	if (!table || label->ip < table->from || label->ip >= table->to)
		return false;
	entry = label_table_find(table, label->ip);
	if (entry && label->class != INSN_JMP)
		insert(ret, 0, entry->target);
	else if (entry && label->target == entry->target)
		insert(ret, 0, insn_next(label));
	ret->exact_count = ret->back_count = ret->dead_count = ret->count;
	return true;
}

void label_scan_init(struct label_scan *scan, struct machine *machine, uint64_t time_ns)
{
	scan->machine = machine;
	scan->time_ns = time_ns;
	scan->function = 0;
}

void label_scan_find(struct label_scan *scan, const struct insn *label, struct label_targets *ret)
{
	*ret = (struct label_targets){ 0 };
	if (look_up(scan->machine, label, ret) || !enter_function(scan, label))
		return;
	scan->most = scan->looked_at + SCAN_MAX;
	if (label->class == INSN_JMP)
		choose_next(scan, label, ret);
	else
		choose(scan, label, ret);
	ret->looked_at = scan->looked_at;
}

void label_targets_find(struct machine *machine, const struct insn *label, uint64_t time_ns,
			struct label_targets *ret)
{
	struct label_scan scan;

	label_scan_init(&scan, machine, time_ns);
	label_scan_find(&scan, label, ret);
}
