#include "decode/print/sample_origin.h"

static bool in_kernel(uint64_t ip)
{
	return ip >> 63;
}

static void add_u64(struct text *text, uint64_t value)
{
	text_add(text, (const char *)&value, sizeof(value));
}

/* How many of the calls there were when the sample was taken. Those above are of the kernel, which
 * has run since: they are left out down to the place of the sample, or to user code. */
static unsigned depth_at(const struct call_stack *stack, uint64_t ip)
{
	unsigned depth = stack->depth;

	while (depth && in_kernel(stack->frames[depth - 1].return_ip) &&
	       stack->frames[depth - 1].return_ip != ip)
		depth--;
	return depth;
}

/* perf counts each change between kernel and user code as an entry, too, except the first. */
static void add_calls(struct text *text, const struct call_stack *stack, uint64_t ip, unsigned most)
{
	unsigned left = most + 1;
	bool first = true, kernel = false;

	for (unsigned depth = depth_at(stack, ip); left && depth--; left--) {
		ip = stack->frames[depth].return_ip;
		if ((first || in_kernel(ip) != kernel) && left-- == 1)
			return;
		first = false;
		kernel = in_kernel(ip);
		add_u64(text, ip);
	}
}

static bool is_user(uint64_t ip)
{
	return ip && !in_kernel(ip);
}

/* Whether a sample at `ip` was taken after this branch, so that those before it led there: it ran
 * between this one and the next, or this one is of user code. */
static bool leads_to(uint64_t ip, const struct branch_entry *branch,
		     const struct branch_entry *next)
{
	if (is_user(branch->to))
		return true;
	return in_kernel(ip) &&
	       (!in_kernel(branch->from) || (next && ip >= branch->to && ip <= next->from));
}

static void add_branches(struct text *text, const struct last_branches *branches, uint64_t ip,
			 unsigned most)
{
	const struct branch_entry *branch, *next = NULL;
	unsigned back = 0;

	for (; back < branches->count; back++, next = branch) {
		branch = last_branch(branches, back);
		if (leads_to(ip, branch, next))
			break;
	}
	for (; back < branches->count && most; back++, most--) {
		branch = last_branch(branches, back);
		add_u64(text, branch->from);
		add_u64(text, branch->to);
		add_u64(text, branch->flags | (branch->from_guest ? ORIGIN_FROM_GUEST : 0) |
				      (branch->to_guest ? ORIGIN_TO_GUEST : 0));
	}
}

void sample_origin_add(struct text *text, const struct origin_limits *limits, uint64_t ip,
		       const struct call_stack *stack, const struct last_branches *branches)
{
	size_t start = text->size;
	uint64_t size;

	add_u64(text, 0); /* the size of the calls */
	if (limits->calls && stack)
		add_calls(text, stack, ip, limits->calls);
	size = text->size - start - 8;
	if (limits->branches && branches)
		add_branches(text, branches, ip, limits->branches);
	if (text->failed || text->size == start + 8) {
		text->size = start;
		return;
	}
	memcpy(text->data + start, &size, sizeof(size));
}

struct sample_origin sample_origin_read(struct bytes bytes)
{
	uint64_t size = bytes.size >= 8 ? load_le(bytes.data, 8) : 0;
	struct bytes rest = bytes_slice(bytes, 8, bytes.size);

	return (struct sample_origin){ bytes_slice(rest, 0, size),
				       bytes_slice(rest, size, rest.size) };
}
