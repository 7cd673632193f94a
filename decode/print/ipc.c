#include "decode/print/ipc.h"

struct ipc_count ipc_take(const struct ipc *ipc, struct ipc_count *mark)
{
	struct ipc_count since = { ipc->total.insns - mark->insns,
				   ipc->total.cycles - mark->cycles };

	if (!ipc->in_line)
		return (struct ipc_count){ 0 };
	if (since.cycles)
		*mark = ipc->total;
	return since;
}

void ipc_text(struct text *text, const struct ipc_count *count)
{
	if (!count->insns || !count->cycles)
		return;
	text_puts(text, " \t IPC: ");
	text_dec(text, count->insns / count->cycles, 0, ' ');
	text_putc(text, '.');
	text_dec(text, count->insns * 100 / count->cycles % 100, 2, '0');
	text_puts(text, " (");
	text_dec(text, count->insns, 0, ' ');
	text_putc(text, '/');
	text_dec(text, count->cycles, 0, ' ');
	text_puts(text, ") ");
}
