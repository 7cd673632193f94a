#include "decode/pt_dump.h"

enum { OUT_BYTES = 64 << 10, LINE_BYTES = 256 };

/* With its length: to copy 15 bytes always and count some of them is faster than strlen(). */
struct name {
	char text[15];
	uint8_t size;
};

#define NAME(kind, word) [kind] = { word, sizeof(word) - 1 }
static const struct name names[PT_PACKET_KINDS] = {
	NAME(PT_BAD, "Bad Packet!"),   NAME(PT_PAD, "PAD"),
	NAME(PT_TNT, "TNT"),           NAME(PT_TIP, "TIP"),
	NAME(PT_TIP_PGE, "TIP.PGE"),   NAME(PT_TIP_PGD, "TIP.PGD"),
	NAME(PT_FUP, "FUP"),           NAME(PT_MODE_EXEC, "MODE.Exec"),
	NAME(PT_MODE_TSX, "MODE.TSX"), NAME(PT_PIP, "PIP"),
	NAME(PT_VMCS, "VMCS"),         NAME(PT_TSC, "TSC"),
	NAME(PT_TMA, "TMA"),           NAME(PT_MTC, "MTC"),
	NAME(PT_CBR, "CBR"),           NAME(PT_CYC, "CYC"),
	NAME(PT_PSB, "PSB"),           NAME(PT_PSBEND, "PSBEND"),
	NAME(PT_OVF, "OVF"),           NAME(PT_TRACESTOP, "TraceSTOP"),
	NAME(PT_MNT, "MNT"),           NAME(PT_PTW, "PTWRITE"),
	NAME(PT_EXSTOP, "EXSTOP"),     NAME(PT_MWAIT, "MWAIT"),
	NAME(PT_PWRE, "PWRE"),         NAME(PT_PWRX, "PWRX"),
	NAME(PT_BBP, "BBP"),           NAME(PT_BIP, "BIP"),
	NAME(PT_BEP, "BEP"),           NAME(PT_CFE, "CFE"),
	NAME(PT_EVD, "EVD"),           NAME(PT_TRIG, "TRIG"),
};
#undef NAME

/* Inlined, so that the compiler knows the lengths of string literals. */
#define INLINE static inline __attribute__((always_inline))

INLINE void add_hex(struct text *text, const char *before, uint64_t value)
{
	text_puts(text, before);
	text_hex(text, value, 0);
}

INLINE void add_dec(struct text *text, const char *before, uint64_t value)
{
	text_puts(text, before);
	text_dec(text, value, 0, ' ');
}

static void add_tnt(struct text *text, const struct pt_packet *packet)
{
	unsigned count = packet->count;
	char *p = text_field(text, count + 1, 0, ' ');

	if (!p)
		return;
	*p++ = ' ';
	while (count--)
		*p++ = packet->payload >> count & 1 ? 'T' : 'N';
	add_dec(text, " (", packet->count);
	text_putc(text, ')');
}

static void add_mode(struct text *text, const struct pt_packet *packet)
{
	static const unsigned bits[] = { 16, 64, 32, 64 }; /* by CS.D, CS.L */

	add_dec(text, " IF:", packet->payload >> 2 & 1);
	add_dec(text, " ", bits[packet->payload & 3]);
}

static void add_id_hex(struct text *text, const char *before, uint64_t value)
{
	text_puts(text, before);
	text_puts(text, value < 16 ? "0" : "");
	text_hex(text, value, 0);
}

static void add_power(struct text *text, const struct pt_packet *packet)
{
	uint64_t payload = packet->payload;

	add_hex(text, " 0x", payload);
	if (packet->kind == PT_MWAIT) {
		add_hex(text, " Hints 0x", payload & 0xff);
		add_hex(text, " Extensions 0x", payload >> 32 & 3);
	} else if (packet->kind == PT_PWRE) {
		add_dec(text, " HW:", payload >> 7 & 1);
		add_dec(text, " CState:", payload >> 12 & 15);
		add_dec(text, " Sub-CState:", payload >> 8 & 15);
	} else {
		add_dec(text, " Last CState:", payload >> 4 & 15);
		add_dec(text, " Deepest CState:", payload & 15);
		add_hex(text, " Wake Reason 0x", payload >> 8 & 15);
	}
}

static void add_event(struct text *text, const struct pt_packet *packet)
{
	switch (packet->kind) {
	case PT_BBP:
		text_puts(text, packet->count == PT_BLOCK_4 ? " SZ 4-byte" : " SZ 8-byte");
		add_hex(text, " Type 0x", packet->payload);
		break;
	case PT_BIP:
		add_id_hex(text, " ID 0x", packet->count);
		add_hex(text, " Value 0x", packet->payload);
		break;
	case PT_CFE:
		add_dec(text, " IP:", packet->flag);
		add_id_hex(text, " Type 0x", packet->payload);
		add_hex(text, " Vector 0x", packet->count);
		break;
	case PT_EVD:
		add_id_hex(text, " Type 0x", packet->count);
		add_hex(text, " Payload 0x", packet->payload);
		break;
	default: break;
	}
}

void pt_packet_text(struct text *text, const struct pt_packet *packet)
{
	const struct name *name = &names[packet->kind];

	if (!text_reserve(text, sizeof(name->text)))
		return;
	memcpy(text->data + text->size, name->text, sizeof(name->text));
	text->size += name->size;
	switch (packet->kind) {
	case PT_TNT: add_tnt(text, packet); break;
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD:
	case PT_FUP:
		if (packet->count)
			add_hex(text, " 0x", packet->payload);
		else
			text_puts(text, " no ip");
		break;
	case PT_CYC:
	case PT_VMCS:
	case PT_MTC:
	case PT_MNT:
	case PT_CBR:
	case PT_TRIG:
	case PT_TSC: add_hex(text, " 0x", packet->payload); break;
	case PT_TMA:
		add_hex(text, " CTC 0x", packet->payload);
		add_hex(text, " FC 0x", packet->count);
		break;
	case PT_MODE_EXEC: add_mode(text, packet); break;
	case PT_MODE_TSX:
		add_dec(text, " TXAbort:", packet->payload >> 1 & 1);
		add_dec(text, " InTX:", packet->payload & 1);
		break;
	case PT_PIP: /* perf shows CR3 without the low bits that the packet leaves out */
		add_hex(text, " 0x", packet->payload >> 5);
		add_dec(text, " (NR=", packet->flag);
		text_putc(text, ')');
		break;
	case PT_PTW:
		add_hex(text, " 0x", packet->payload);
		add_dec(text, " IP:", packet->flag);
		break;
	case PT_BEP:
	case PT_EXSTOP: add_dec(text, " IP:", packet->flag); break;
	case PT_MWAIT:
	case PT_PWRE:
	case PT_PWRX: add_power(text, packet); break;
	default: add_event(text, packet); break;
	}
}

/* ".  00000010:  19 20 3f ab ...  TSC 0x...": the bytes in sixteen columns. */
static void add_line(struct text *text, uint64_t offset, const uint8_t *data,
		     const struct pt_packet *packet)
{
	enum { HEAD = 13, COLUMNS = HEAD + 3 * PT_PACKET_MAX + 1 };
	static const char digits[] = "0123456789abcdef";
	uint64_t place = text_hex_digits((uint32_t)offset);
	char *p = text->data + text->size;

	memset(p, ' ', COLUMNS);
	p[0] = '.';
	memcpy(p + 3, &place, sizeof(place));
	p[11] = ':';
	for (unsigned i = 0; i < packet->size; i++) {
		p[HEAD + 1 + 3 * i] = digits[data[i] >> 4];
		p[HEAD + 2 + 3 * i] = digits[data[i] & 15];
	}
	text->size += COLUMNS;
	if (packet->kind == PT_BAD)
		text_puts(text, "Bad packet!");
	else
		pt_packet_text(text, packet);
	text_putc(text, '\n');
}

/* perf shows padding up to eight bytes as part of the packet before it. */
static void take_padding(struct pt_packet *packet, const uint8_t *data, uint64_t size)
{
	while (packet->size < 8 && packet->size < size && !data[packet->size])
		packet->size++;
}

void pt_dump(const uint8_t *data, uint64_t size, uint64_t from, struct page_trail *trail, FILE *out)
{
	enum pt_block_context block = PT_NO_BLOCK;
	struct text text = { 0 };

	if (!text_reserve(&text, OUT_BYTES))
		return;
	for (uint64_t offset = 0; offset < size;) {
		struct pt_packet packet;

		if (pt_packet_read(data + offset, size - offset, block, &packet))
			packet = (struct pt_packet){ .kind = PT_BAD, .size = 1 };
		else
			take_padding(&packet, data + offset, size - offset);
		block = pt_block_after(block, &packet);
		add_line(&text, from + offset, data + offset, &packet);
		offset += packet.size;
		if (text.size < OUT_BYTES - LINE_BYTES)
			continue;
		if (fwrite(text.data, 1, text.size, out) < text.size)
			break;
		text.size = 0;
		page_trail_step(trail, data + offset);
	}
	(void)fwrite(text.data, 1, text.size, out);
	text_free(&text);
}
