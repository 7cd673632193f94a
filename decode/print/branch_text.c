#include "decode/print/branch_text.h"

#include "decode/flow/code_pool.h"
#include "decode/print/print_line.h"
#include "decode/print/sample_flags.h"

static void make_lead(const struct print_config *config, struct branch_lead *lead, uint32_t flags)
{
	lead->flags = flags;
	lead->text.size = 0;
	print_add_event(config, &lead->text, "branches", 1);
	if (config->fields & FIELD_FLAGS)
		sample_flags_text(&lead->text, flags);
}

const struct text *branch_lead(struct printer *printer, uint32_t flags)
{
	struct branch_lead *lead = printer->leads;

	while (lead->flags != flags && lead->flags && lead < printer->leads + BRANCH_LEADS - 1)
		lead++;
	if (lead->flags != flags)
		make_lead(printer->config, lead, flags);
	return &lead->text;
}

void branch_add_place(struct text *text, uint64_t ip, const struct symbol_view *symbol,
		      uint32_t fields)
{
	text_hex(text, ip, 16);
	symbol_text(text, symbol, fields);
}

void branch_add_name(struct text *text, uint64_t ip, const struct symbol_view *symbol)
{
	if (symbol->name)
		text_name(text, symbol->name);
	else
		text_hex(text, ip, 16);
}

void branch_add_dso(struct text *text, const char *dso, unsigned width)
{
	size_t from = text->size;

	text_putc(text, '(');
	text_left(text, dso ? dso : "[unknown]", width);
	text_printable(text, from);
	text_puts(text, ")\t");
}

/* What is made of a block, and where. */
struct draft {
	struct printer *printer;
	const struct block *block;
	struct text text;
};

static struct symbol_view symbol_at(const struct draft *draft, unsigned index)
{
	return address_symbol(draft->block->space, draft->block->insns[index].ip,
			      draft->block->from_ns);
}

/* Where the text is that was added since it had `from` bytes. */
static struct text_range range_from(const struct draft *draft, size_t from)
{
	return (struct text_range){ (uint32_t)from, (uint32_t)draft->text.size };
}

static struct text_range add_place(struct draft *draft, unsigned index, bool is_wanted)
{
	size_t from = draft->text.size;
	struct symbol_view symbol;

	if (is_wanted) {
		symbol = symbol_at(draft, index);
		branch_add_place(&draft->text, draft->block->insns[index].ip, &symbol,
				 draft->printer->config->fields);
	}
	return range_from(draft, from);
}

static struct text_range add_name(struct draft *draft, unsigned index)
{
	size_t from = draft->text.size;
	struct symbol_view symbol = symbol_at(draft, index);

	branch_add_name(&draft->text, draft->block->insns[index].ip, &symbol);
	return range_from(draft, from);
}

static bool has_next(const struct draft *draft, const struct branch_parts *branch)
{
	return branch->index + 1 < draft->block->count;
}

static void add_line(struct draft *draft, struct branch_parts *branch)
{
	const struct insn *insn = &draft->block->insns[branch->index];
	const struct print_config *config = draft->printer->config;
	const struct text *lead;
	struct text *text = &draft->text;
	bool has_target = config->fields & FIELD_ADDR && has_next(draft, branch);

	branch->flags = sample_flags_of(insn->class);
	branch->line = (uint32_t)text->size;
	lead = branch_lead(draft->printer, branch->flags);
	text_add(text, lead->data, lead->size);
	if (config->fields & FIELD_IP)
		text_putc(text, ' ');
	branch->source.place = add_place(draft, branch->index, config->fields & FIELD_IP);
	if (config->fields & FIELD_ADDR)
		text_puts(text, " => ");
	branch->target.place = add_place(draft, branch->index + 1, has_target);
	branch->insn = (uint32_t)text->size;
	insn_text(text, insn, draft->block->space, &config->style);
	text_putc(text, '\n');
	branch->end = (uint32_t)text->size;
}

/* What is indented is no part of the lines: where it stands changes. */
static void add_names(struct draft *draft, struct branch_parts *branch)
{
	size_t from;

	branch->source.name = add_name(draft, branch->index);
	if (has_next(draft, branch))
		branch->target.name = add_name(draft, branch->index + 1);
	from = draft->text.size;
	branch_add_dso(&draft->text, symbol_at(draft, branch->index).dso,
		       draft->printer->config->dso_width);
	branch->dso = range_from(draft, from);
}

static unsigned count_branches(const struct block *block)
{
	unsigned count = 0;

	for (unsigned i = 0; i < block->count; i++)
		count += insn_is_branch(&block->insns[i]);
	return count;
}

/* The lines of all branches; there is room for them and their offsets. */
static void add_lines(struct draft *draft, struct branch_parts *branches, uint32_t *offsets)
{
	for (unsigned i = 0; i < draft->block->count; i++) {
		if (!insn_is_branch(&draft->block->insns[i]))
			continue;
		branches->index = i;
		add_line(draft, branches);
		*++offsets = branches++->end;
	}
}

static struct branch_end add_start(struct draft *draft)
{
	uint32_t fields = draft->printer->config->fields;
	struct branch_end start = { 0 };

	if (!draft->block->count)
		return start;
	start.place = add_place(draft, 0, fields & FIELD_ADDR);
	if (fields & FIELD_CALLINDENT)
		start.name = add_name(draft, 0);
	return start;
}

static const char *keep(const struct block *block, const struct text *text, struct code *code)
{
	char *lines = text->failed ? NULL : block_alloc(code, block, text->size + 1);

	if (lines && text->size)
		memcpy(lines, text->data, text->size);
	return lines;
}

static struct branch_text *make_text(struct printer *printer, const struct block *block)
{
	struct code *code = printer->where.code;
	unsigned count = count_branches(block);
	struct branch_text *result = block_alloc(code, block, sizeof(*result));
	struct branch_parts *branches = block_alloc(code, block, count * sizeof(*branches) + 1);
	uint32_t *offsets = block_alloc(code, block, (count + 1) * sizeof(*offsets));
	struct draft draft = { .printer = printer, .block = block };

	if (!result || !branches || !offsets)
		return NULL;
	add_lines(&draft, branches, offsets);
	if (printer->config->fields & FIELD_CALLINDENT)
		for (unsigned i = 0; i < count; i++)
			add_names(&draft, &branches[i]);
	*result = (struct branch_text){ .branches = branches, .offsets = offsets, .count = count };
	result->known = count && !has_next(&draft, &branches[count - 1]) ? count - 1 : count;
	result->start = add_start(&draft);
	result->lines = keep(block, &draft.text, code);
	text_free(&draft.text);
	return result->lines ? result : NULL;
}

const struct branch_text *branch_make_text(struct printer *printer, struct block *block)
{
	struct pooled_block *pooled = block->pooled;

	if (pooled)
		block->branches = atomic_load_explicit(&pooled->branches, memory_order_acquire);
	if (block->branches)
		return block->branches;
	block->branches = make_text(printer, block);
	if (pooled)
		atomic_store_explicit(&pooled->branches, block->branches, memory_order_release);
	return block->branches;
}
