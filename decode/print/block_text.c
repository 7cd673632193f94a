#include "decode/print/block_text.h"

#include <Zydis/Zydis.h>

#include "decode/flow/code_pool.h"
#include "decode/print/fields.h"
#include "decode/print/sample_flags.h"

void symbol_text(struct text *text, const struct symbol_view *view, uint32_t fields)
{
	if (fields & FIELD_SYM) {
		text_putc(text, ' ');
		text_name(text, view->name ? view->name : "[unknown]");
		if (view->name && fields & FIELD_SYMOFF) {
			text_puts(text, "+0x");
			text_hex(text, view->offset, 0);
		}
	}
	if (fields & FIELD_DSO) {
		text_puts(text, " (");
		text_name(text, view->dso ? view->dso : "[unknown]");
		text_putc(text, ')');
	}
}

struct symbol_view address_symbol(const struct code_space *space, uint64_t ip, uint64_t time_ns)
{
	struct symbol_view view = { 0 };

	if (space && space->machine && ip)
		machine_symbol(space->machine, space->pid, ip, time_ns, &view);
	return view;
}

/* The size that AT&T syntax tells where no register does. Zydis has it with most instructions,
 * but not with these; nor has it their size in Intel syntax. */
static const char *lacking_suffix(const ZydisDecodedInstruction *insn,
				  const ZydisDecodedOperand *operands)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_NOP: break;
	default: return NULL;
	}
	if (!insn->operand_count_visible || operands[0].type != ZYDIS_OPERAND_TYPE_MEMORY)
		return NULL;
	switch (operands[0].size) {
	case 8: return "b";
	case 16: return "w";
	case 32: return "l";
	case 64: return "q";
	default: return NULL;
	}
}

/* A line with a suffix behind its mnemonic, if it lacks one. */
static void add_line(struct text *text, const char *line, const char *suffix,
		     ZydisMnemonic mnemonic)
{
	const char *name = ZydisMnemonicGetString(mnemonic);
	const char *at = suffix && name ? strstr(line, name) : NULL;
	size_t length = at ? (size_t)(at - line) + strlen(name) : 0;

	if (!at || line[length] != ' ') {
		text_puts(text, line);
		return;
	}
	text_add(text, line, length);
	text_puts(text, suffix);
	text_puts(text, line + length);
}

static void disassemble(struct text *text, const struct insn *insn, unsigned bits, bool intel)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	ZydisFormatter formatter;
	ZydisDecoder decoder;
	const char *suffix;
	char line[256];
	bool good;

	if (bits == 64)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	else if (bits == 32)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	else
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	ZydisFormatterInit(&formatter,
			   intel ? ZYDIS_FORMATTER_STYLE_INTEL : ZYDIS_FORMATTER_STYLE_ATT);
	/* as perf's manual has it: 0x9(%rcx), -0x11(%rbp), not padded with zeros */
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
	text_putc(text, ' ');
	good = ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, insn->bytes, insn->length, &decoded, operands));
	suffix = good ? lacking_suffix(&decoded, operands) : NULL;
	if (intel && suffix)
		ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_TRUE);
	good = good && ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
			       &formatter, &decoded, operands, decoded.operand_count_visible, line,
			       sizeof(line), insn->ip, NULL));
	if (good)
		add_line(text, line, intel ? NULL : suffix, decoded.mnemonic);
	else
		text_puts(text, "(bad)");
}

void insn_text(struct text *text, const struct insn *insn, const struct code_space *space,
	       const struct block_style *style)
{
	if (style->fields & FIELD_INSNLEN) {
		text_puts(text, " ilen: ");
		text_dec(text, insn->length, 0, ' ');
	}
	if (style->fields & FIELD_INSN) {
		text_puts(text, " insn:");
		for (unsigned i = 0; i < insn->length; i++) {
			text_putc(text, ' ');
			text_putc(text, "0123456789abcdef"[insn->bytes[i] >> 4]);
			text_putc(text, "0123456789abcdef"[insn->bytes[i] & 15]);
		}
	}
	if (style->fields & FIELD_DISASM)
		disassemble(text, insn, space->bits, style->intel);
}

/* All that comes before the instruction itself. */
static void head_text(struct text *text, const struct block *block, const struct insn *insn,
		      const struct block_style *style)
{
	struct symbol_view view;

	text_puts(text, style->lead);
	if (style->fields & FIELD_FLAGS)
		sample_flags_text(text, sample_flags_of(insn->class));
	if (style->fields & FIELD_IP) {
		text_putc(text, ' ');
		text_hex(text, insn->ip, 16);
		view = address_symbol(block->space, insn->ip, block->from_ns);
		symbol_text(text, &view, style->fields);
	}
}

static struct block_text *keep(const struct block *block, const struct text *text,
			       const uint32_t *offsets, const uint32_t *insns, struct code *code)
{
	size_t offsets_size = (block->count + 1u) * sizeof(*offsets);
	size_t insns_size = block->count * sizeof(*insns);
	struct block_text *result;
	uint8_t *parts;

	if (text->failed)
		return NULL;
	result = block_alloc(code, block, sizeof(*result) + offsets_size + insns_size + text->size);
	if (!result)
		return NULL;
	parts = (uint8_t *)(result + 1);
	result->offsets = memcpy(parts, offsets, offsets_size);
	result->insns = memcpy(parts + offsets_size, insns, insns_size);
	parts += offsets_size + insns_size;
	result->lines = text->size ? memcpy(parts, text->data, text->size) : (char *)parts;
	return result;
}

static struct block_text *make_lines(const struct block *block, const struct block_style *style,
				     struct code *code)
{
	uint32_t offsets[BLOCK_MAX_INSNS + 1], insns[BLOCK_MAX_INSNS];
	struct text text = { 0 };
	struct block_text *result;

	for (unsigned i = 0; i < block->count; i++) {
		const struct insn *insn = &block->insns[i];

		offsets[i] = (uint32_t)text.size;
		head_text(&text, block, insn, style);
		insns[i] = (uint32_t)text.size;
		insn_text(&text, insn, block->space, style);
		text_putc(&text, '\n');
	}
	offsets[block->count] = (uint32_t)text.size;
	result = keep(block, &text, offsets, insns, code);
	text_free(&text);
	return result;
}

const struct block_text *block_make_lines(struct block *block, const struct block_style *style,
					  struct code *code)
{
	struct pooled_block *pooled = block->pooled;

	if (pooled)
		block->lines = atomic_load_explicit(&pooled->lines, memory_order_acquire);
	if (block->lines)
		return block->lines;
	block->lines = make_lines(block, style, code);
	if (pooled)
		atomic_store_explicit(&pooled->lines, block->lines, memory_order_release);
	return block->lines;
}
