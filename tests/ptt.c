#include "tests/ptt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cleanup.h"
#include "decode/base/vec.h"
#include "decode/pt_dump.h"

enum section { SETTINGS, CODE, PACKETS, DUMP, FLOW };

struct parser {
	struct ptt *ptt;
	enum section section;
	unsigned machine; /* of the code */
	unsigned line;
	enum pt_block_context block;
};

static _Noreturn void fail(const struct parser *parser, const char *what, const char *text)
{
	(void)fprintf(stderr, "%s:%u: %s '%s'\n", parser->ptt->path, parser->line, what, text);
	exit(1);
}

static uint64_t number(const struct parser *parser, const char *text, int base, char **end)
{
	char *rest;
	uint64_t value = strtoull(text, &rest, base);

	if (rest == text || (!end && *rest))
		fail(parser, "no number", text);
	if (end)
		*end = rest;
	return value;
}

static void read_setting(struct parser *parser, const char *line)
{
	struct pt_config *config = &parser->ptt->config;
	const char *value = strchr(line, ' ');
	char *end = NULL;

	value = value ? value + 1 : "";
	if (!strncmp(line, "cpu ", 4)) {
		config->cpu_family = (uint32_t)number(parser, value, 0, &end);
		config->cpu_model = (uint32_t)number(parser, end + 1, 0, NULL);
	} else if (!strncmp(line, "mtc-shift ", 10)) {
		config->mtc_shift = (uint8_t)number(parser, value, 0, NULL);
	} else if (!strncmp(line, "ctc-ratio ", 10)) {
		config->ctc_n = (uint32_t)number(parser, value, 0, &end);
		config->ctc_d = (uint32_t)number(parser, end + 1, 0, NULL);
	} else if (!strncmp(line, "nonturbo ", 9)) {
		config->max_nonturbo = (uint32_t)number(parser, value, 0, NULL);
	} else if (!strncmp(line, "offset ", 7)) {
		uint64_t vmcs = number(parser, value, 0, &end);

		pt_offsets_set(&parser->ptt->offsets, vmcs, number(parser, end, 0, NULL));
	} else if (!strcmp(line, "no-tsc")) {
		config->tsc = config->mtc = config->cyc = false;
	} else if (!strcmp(line, "noretcomp")) {
		config->noretcomp = true;
	} else if (!strcmp(line, "no-branches")) {
		config->no_branches = true;
	} else if (!strcmp(line, "event-trace")) {
		config->have_event_trace = true;
	} else {
		fail(parser, "unknown setting", line);
	}
}

/* Adjacent lines are one piece of code, so that blocks do not end with a line. */
static struct ptt_code *piece_at(struct parser *parser, uint64_t address)
{
	struct ptt *ptt = parser->ptt;
	size_t count = ptt->code[parser->machine].count;
	struct ptt_code *last = count ? &ptt->code[parser->machine].items[count - 1] : NULL;

	if (last && last->address + last->size == address)
		return last;
	if (!vec_push(&ptt->code[parser->machine], ((struct ptt_code){ .address = address })))
		abort();
	return &ptt->code[parser->machine].items[count];
}

static void read_code(struct parser *parser, const char *line)
{
	char *p;
	struct ptt_code *piece = piece_at(parser, number(parser, line, 16, &p));

	if (*p++ != ':')
		fail(parser, "no ADDRESS:", line);
	while (*p) {
		if (!vec_grow((void **)&piece->bytes, &piece->room, piece->size, 1))
			abort();
		piece->bytes[piece->size++] = (uint8_t)number(parser, p, 16, &p);
	}
}

static enum pt_packet_kind kind_of(const struct parser *parser, const char *line)
{
	size_t length = strcspn(line, " ");
	enum pt_packet_kind found = PT_BAD;

	for (int kind = PT_PAD; kind < PT_PACKET_KINDS; kind++) {
		struct pt_packet packet = { .kind = (enum pt_packet_kind)kind };
		struct text text = { 0 };

		pt_packet_text(&text, &packet);
		text_putc(&text, 0);
		if (strcspn(text.data, " ") == length && !strncmp(text.data, line, length))
			found = packet.kind;
		text_free(&text);
	}
	if (found == PT_BAD)
		fail(parser, "unknown packet", line);
	return found;
}

/* The number behind a word of the line; 0 where the line does not have it. */
static uint64_t after(const struct parser *parser, const char *line, const char *word)
{
	const char *p = strstr(line, word);
	char *end;

	return p ? number(parser, p + strlen(word), 0, &end) : 0;
}

static void read_tnt(const char *line, struct pt_packet *packet)
{
	for (line += 4; *line == 'T' || *line == 'N'; line++, packet->count++)
		packet->payload = packet->payload << 1 | (*line == 'T');
}

static uint64_t mode_bits(const char *line)
{
	const uint64_t interrupts = strstr(line, "IF:1") ? 4 : 0;

	return interrupts | (strstr(line, " 64") ? 1 : strstr(line, " 32") ? 2 : 0);
}

/* Fills the fields that a packet of this kind has from the line. */
static void fill(const struct parser *parser, const char *line, struct pt_packet *packet)
{
	char *end;

	packet->flag = strstr(line, "IP:1") || strstr(line, "NR=1");
	if (strstr(line, "0x"))
		packet->payload = number(parser, strstr(line, "0x"), 16, &end);
	switch (packet->kind) {
	case PT_MODE_EXEC: packet->payload = mode_bits(line); break;
	case PT_MODE_TSX:
		packet->payload =
			after(parser, line, "TXAbort:") << 1 | after(parser, line, "InTX:");
		break;
	case PT_PIP: packet->payload <<= 5; break;
	case PT_TMA:
		packet->payload = after(parser, line, "CTC ");
		packet->count = (uint16_t)after(parser, line, "FC ");
		break;
	case PT_PTW: packet->count = packet->payload >> 32 ? 8 : 4; break;
	case PT_BBP:
		packet->count = (uint16_t)after(parser, line, "SZ ");
		packet->payload = after(parser, line, "Type ");
		break;
	case PT_BIP:
		packet->count = (uint16_t)after(parser, line, "ID ");
		packet->size = parser->block == PT_BLOCK_8 ? 9 : 5;
		packet->payload = after(parser, line, "Value ");
		break;
	case PT_CFE:
		packet->payload = after(parser, line, "Type ");
		packet->count = (uint16_t)after(parser, line, "Vector ");
		break;
	case PT_EVD:
		packet->count = (uint16_t)after(parser, line, "Type ");
		packet->payload = after(parser, line, "Payload ");
		break;
	default: break;
	}
}

/* "FUP 3:0x401000" or "FUP no ip". -D does not show IPBytes: they are cut from the line, which is
 * then compared with the dump. */
static void put_ip(struct parser *parser, char *line, enum pt_packet_kind kind)
{
	struct pt_packet packet = { .kind = kind };
	char *form = strchr(line, ' ') + 1, *value;

	if (strcmp(form, "no ip") != 0) {
		packet.count = (uint16_t)number(parser, form, 10, &value);
		if (*value != ':' || !packet.count)
			fail(parser, "no IPBYTES:IP", line);
		packet.payload = number(parser, value + 1, 16, NULL);
		memmove(form, value + 1, strlen(value));
	}
	pt_put(&parser->ptt->trace, &packet);
}

static void put_raw(struct parser *parser, const char *line)
{
	char *p = strchr(line, ' ');

	while (p && *p) {
		uint8_t byte = (uint8_t)number(parser, p, 16, &p);

		pt_put_bytes(&parser->ptt->trace, &byte, 1);
	}
}

static void put_packet(struct parser *parser, char *line)
{
	struct pt_packet packet = { .kind = kind_of(parser, line) };

	switch (packet.kind) {
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD:
	case PT_FUP: put_ip(parser, line, packet.kind); break;
	case PT_TNT:
		read_tnt(line, &packet);
		pt_put(&parser->ptt->trace, &packet);
		break;
	default:
		fill(parser, line, &packet);
		pt_put(&parser->ptt->trace, &packet);
		parser->block = pt_block_after(parser->block, &packet);
	}
}

static void add_line(struct text *text, const char *line)
{
	text_puts(text, line);
	text_putc(text, '\n');
}

static void read_packet(struct parser *parser, char *line)
{
	struct ptt *ptt = parser->ptt;

	if (!strncmp(line, "bytes ", 6)) {
		put_raw(parser, line);
	} else if (!strcmp(line, "lost")) {
		if (ptt->lost_count == sizeof(ptt->lost) / sizeof(ptt->lost[0]))
			fail(parser, "too many", line);
		ptt->lost[ptt->lost_count++] = ptt->trace.size;
	} else {
		put_packet(parser, line);
		add_line(&ptt->dump, line);
	}
}

static void read_flow(struct parser *parser, char *line)
{
	char *rest = line;

	for (char *word; (word = strsep(&rest, " "));) {
		if (!*word)
			continue;
		text_puts(&parser->ptt->flow, word);
		text_putc(&parser->ptt->flow, ' ');
	}
}

static bool is_section(struct parser *parser, const char *line)
{
	if (!strcmp(line, "packets")) {
		parser->section = PACKETS;
	} else if (!strcmp(line, "flow")) {
		parser->section = FLOW;
	} else if (!strcmp(line, "dump")) {
		parser->section = DUMP;
		parser->ptt->dump.size = 0;
	} else if (!strcmp(line, "code host") || !strcmp(line, "code guest")) {
		parser->section = CODE;
		parser->machine = line[5] == 'g';
	} else {
		return false;
	}
	return true;
}

static void read_line(struct parser *parser, char *line)
{
	switch (parser->section) {
	case SETTINGS: read_setting(parser, line); break;
	case CODE: read_code(parser, line); break;
	case PACKETS: read_packet(parser, line); break;
	case DUMP: add_line(&parser->ptt->dump, line); break;
	case FLOW: read_flow(parser, line); break;
	}
}

/* A line without its comment and the blanks around it; "12x" in front of it is its repetition. */
static void read_text(struct parser *parser, char *line)
{
	unsigned long times = 1;
	char *end;

	line[strcspn(line, "#\n")] = 0;
	line += strspn(line, " \t");
	for (end = line + strlen(line); end > line && strchr(" \t", end[-1]);)
		*--end = 0;
	if (!*line || is_section(parser, line))
		return;
	times = strtoul(line, &end, 10);
	if (end > line && !strncmp(end, "x ", 2))
		line = end + 2;
	else
		times = 1;
	while (times--) {
		_cleanup_free_ char *copy = strdup(line);

		if (!copy)
			abort();
		read_line(parser, copy);
	}
}

void ptt_read(const char *path, struct ptt *ret)
{
	_cleanup_fclose_ FILE *file = fopen(path, "r");
	_cleanup_free_ char *line = NULL;
	struct parser parser = { .ptt = ret };
	size_t room = 0;

	*ret = (struct ptt){ .path = path };
	ret->config = (struct pt_config){ .tsc = true, .mtc = true, .cyc = true };
	if (!file)
		fail(&parser, "cannot open", path);
	for (parser.line = 1; getline(&line, &room, file) >= 0; parser.line++)
		read_text(&parser, line);
	text_putc(&ret->dump, 0);
	text_putc(&ret->flow, 0);
}

void ptt_free(struct ptt *ptt)
{
	for (unsigned machine = 0; machine < 2; machine++) {
		for (size_t i = 0; i < ptt->code[machine].count; i++)
			free(ptt->code[machine].items[i].bytes);
		vec_free(&ptt->code[machine]);
	}
	pt_bytes_free(&ptt->trace);
	text_free(&ptt->dump);
	text_free(&ptt->flow);
}
