#include "tests/gap_fixture.h"

#include <string.h>

#include "decode/flow/flow_packet.h"

void gap_fixture_init(struct gap_fixture *fixture)
{
	struct flow_fixture *f = &fixture->f;
	uint8_t code[0x50];

	memset(code, 0xcc, sizeof(code));
	memcpy(code, "\xe8\xfb\x7f\0\0\xff\xd0\x75\xfc\xff\xe0", 11);
	memcpy(code + 0x10, "\xe8\xeb\x7f\0\0\xe8\x26\0\0\0\x75\x03\xeb\x02", 14);
	memcpy(code + 0x20, "\xe8\x1b\0\0\0\xeb\xf9", 7);
	memcpy(code + 0x30, "\xe8\x0b\0\0\0\xc3", 6);
	code[0x40] = 0xc3;
	*fixture = (struct gap_fixture){ 0 };
	flow_fixture_init(f);
	flow_fixture_code(f, 0x1000, code, sizeof(code));
	patch_inference_init(&fixture->inference, &f->config, &f->machines, &fixture->offsets);
}

void gap_fixture_tip(struct gap_fixture *fixture, uint64_t ip)
{
	pt_put_ip(&fixture->f.trace, PT_TIP, ip, PT_IP_AUTO);
}

void gap_fixture_tnt(struct gap_fixture *fixture, unsigned bits, unsigned count)
{
	pt_put(&fixture->f.trace,
	       &(struct pt_packet){ .kind = PT_TNT, .payload = bits, .count = (uint16_t)count });
}

void gap_fixture_return(struct gap_fixture *fixture, unsigned count)
{
	while (count--)
		gap_fixture_tnt(fixture, 1, 1);
}

void gap_fixture_go_round(struct gap_fixture *fixture)
{
	for (unsigned i = 0; i < GAP_ROUNDS; i++) {
		gap_fixture_tip(fixture, 0x1040);
		gap_fixture_tnt(fixture, 3, 2);
	}
	gap_fixture_tip(fixture, 0x1040);
}

void gap_fixture_follow(struct gap_fixture *fixture, uint64_t ip)
{
	struct flow_fixture *f = &fixture->f;

	flow_fixture_begin(f, ip, false);
	f->flow.where.inference = &fixture->inference;
	while (!flow_next(&f->run))
		;
	patch_inference_free(&fixture->inference);
}

unsigned gap_fixture_count(const struct gap_fixture *fixture, enum flow_kind kind, uint64_t value)
{
	const struct flow_batch *batch = &fixture->f.batch;
	unsigned ret = 0;

	for (uint32_t i = 0; i < batch->count; i++)
		ret += batch->items[i].kind == kind && batch->items[i].value == value;
	return ret;
}
