#include "correlate/tsc_chain.h"

#include "correlate/tsc_run.h"
#include "decode/pt/pt_clock.h"

void tsc_chain_step(struct tsc_chain *chain, const struct tsc_event *event)
{
	chain->lost |= event->lost;
	if (event->kind == TSC_BREAK)
		*chain = (struct tsc_chain){ 0 };
}

bool tsc_chain_expect(const struct tsc_chain *chain, const struct tsc_event *event,
		      const struct pt_config *config, uint64_t *ret)
{
	if (!chain->known || !event->have_count || !config->ctc_n || !config->ctc_d)
		return false;
	*ret = chain->tsc + pt_ctc_to_tsc(config, event->count - chain->count) + event->fast;
	return true;
}

void tsc_chain_anchor(struct tsc_chain *chain, const struct tsc_event *event, uint64_t tsc)
{
	if (!event->have_tma)
		return;
	*chain = (struct tsc_chain){
		.known = true, .vmcs = event->vmcs, .tsc = tsc - event->fast, .count = event->count
	};
}

uint64_t tsc_near(uint64_t tsc, uint64_t near)
{
	return near ? near + (uint64_t)tsc_difference(tsc, near) : tsc;
}

uint64_t tsc_chain_about(const struct tsc_chain *chain, const struct tsc_event *event,
			 const struct aux_queue *queue, const struct pt_config *config)
{
	const struct aux_span *span;
	uint64_t tsc;

	if (tsc_chain_expect(chain, event, config, &tsc))
		return tsc;
	span = pt_span_at(queue, event->position);
	return span ? span->reference : 0;
}
