#include "decode/perf/perf_pt_info.h"

#include <stdio.h>

/* The u64 words of AUXTRACE_INFO. */
enum {
	WORD_PMU_TYPE,
	WORD_TIME_SHIFT,
	WORD_TIME_MULT,
	WORD_TIME_ZERO,
	WORD_CAP_TIME_ZERO,
	WORD_TSC_BIT,
	WORD_NORETCOMP_BIT,
	WORD_HAVE_SCHED_SWITCH,
	WORD_SNAPSHOT,
	WORD_PER_CPU,
	WORD_MTC_BIT,
	WORD_MTC_PERIOD_BITS,
	WORD_CTC_N,
	WORD_CTC_D,
	WORD_CYC_BIT,
	WORD_MAX_NONTURBO,
	WORD_FILTER_LENGTH,
	WORD_FILTER,
};

enum { TYPE_INTEL_PT = 1 };

/* Bits of the event's config, as in IA32_RTIT_CTL, that no word tells. */
#define CONFIG_PT (1ull << 0) /* kernels that do not have it always trace branches */
#define CONFIG_BRANCH (1ull << 13)
#define CONFIG_CYC_THRESH 19 /* of 4 bits */
#define CONFIG_NOTNT (1ull << 55)

/* A word, 0 where the record ends before it. */
static uint64_t word(struct bytes info, unsigned index)
{
	return bytes_number(info, 8 + 8 * (uint64_t)index, 8);
}

static void read_clock(struct bytes info, struct pt_config *pt)
{
	uint64_t shift = word(info, WORD_TIME_SHIFT), mult = word(info, WORD_TIME_MULT);

	if (shift > 63 || !mult || mult > UINT32_MAX)
		return;
	pt->conv = (struct time_conv){
		.valid = word(info, WORD_CAP_TIME_ZERO),
		.shift = (uint16_t)shift,
		.mult = (uint32_t)mult,
		.zero = word(info, WORD_TIME_ZERO),
	};
	pt->nominal_hz = (uint64_t)((((unsigned __int128)1000000000 << shift) + mult / 2) / mult);
}

static void read_mtc(struct bytes info, uint64_t config, struct pt_config *pt)
{
	uint64_t bits = word(info, WORD_MTC_PERIOD_BITS);

	if (!(config & word(info, WORD_MTC_BIT)) || !bits)
		return;
	pt->mtc = true;
	pt->mtc_shift = (uint8_t)((config & bits) >> __builtin_ctzll(bits)) & 15;
}

/* The filter is padded to 8 and followed by one more word. */
static void read_filter(struct bytes info, struct pt_config *pt)
{
	uint64_t length = word(info, WORD_FILTER_LENGTH);
	uint64_t padded = length ? (length + 1 + 7) & ~(uint64_t)7 : 0;
	struct bytes text =
		bytes_slice(info, 8 + 8 * WORD_FILTER,
			    length < sizeof(pt->filter) ? length : sizeof(pt->filter) - 1);

	if (length > info.size)
		return;
	if (text.size)
		memcpy(pt->filter, text.data, text.size);
	pt->have_event_trace = word(info, WORD_FILTER + (unsigned)(padded / 8));
}

/* SDM "Cycle Count (CYC) Packet": a threshold of n is 2^(n-1) cycles. */
static uint32_t cycles_least(uint64_t config)
{
	return 1u << (config >> CONFIG_CYC_THRESH & 15) >> 1;
}

static void read_config(struct bytes info, uint64_t config, struct pt_config *pt)
{
	pt->no_branches = (config & (CONFIG_PT | CONFIG_BRANCH)) == CONFIG_PT;
	pt->no_tnt = config & CONFIG_NOTNT;
	pt->tsc = config & word(info, WORD_TSC_BIT);
	pt->cyc = config & word(info, WORD_CYC_BIT);
	pt->cyc_least = cycles_least(config);
	pt->noretcomp = config & word(info, WORD_NORETCOMP_BIT);
	read_mtc(info, config, pt);
}

static void read_cpuid(struct perf_data *data)
{
	struct pt_config *pt = &data->pt;
	const char *text = data->features.cpuid;

	if (text && sscanf(text, "GenuineIntel,%9u,%9u,%9u", &pt->cpu_family, &pt->cpu_model,
			   &pt->cpu_stepping) != 3)
		pt->cpu_family = pt->cpu_model = pt->cpu_stepping = 0;
}

/* As perf: one event without time makes all of the recording timeless. */
static bool is_timeless(const struct perf_data *data)
{
	for (size_t i = 0; i < data->events.count; i++)
		if (!(data->events.items[i].sample_type & PERF_SAMPLE_TIME))
			return true;
	return data->have_pt && (!data->pt.tsc || !data->pt.conv.valid);
}

/* The first PT event decides; all are marked. */
static void read_events(struct perf_data *data, struct bytes info)
{
	bool have_config = false;

	for (size_t i = 0; i < data->events.count; i++) {
		struct perf_event *event = &data->events.items[i];

		data->pt.snapshot |= (event->sample_type & PERF_SAMPLE_AUX) != 0;
		event->is_pt = event->type == word(info, WORD_PMU_TYPE);
		if (!event->is_pt)
			continue;
		if (!have_config)
			read_config(info, event->config, &data->pt);
		have_config = true;
		if (!*event->name)
			event->name = "intel_pt";
	}
}

void perf_pt_info_read(struct perf_data *data)
{
	struct bytes info = data->auxtrace_info;
	struct pt_config *pt = &data->pt;
	uint64_t type, ratio;

	data->have_pt = bytes_read(info, 0, 4, &type) && type == TYPE_INTEL_PT;
	data->is_timeless = is_timeless(data);
	if (!data->have_pt)
		return;
	read_clock(info, pt);
	pt->have_sched_switch = (uint8_t)word(info, WORD_HAVE_SCHED_SWITCH) & 3;
	pt->snapshot = word(info, WORD_SNAPSHOT);
	pt->per_cpu = word(info, WORD_PER_CPU);
	pt->ctc_n = (uint32_t)word(info, WORD_CTC_N);
	pt->ctc_d = (uint32_t)word(info, WORD_CTC_D);
	ratio = word(info, WORD_MAX_NONTURBO);
	pt->max_nonturbo = ratio && ratio < 256
				   ? (uint32_t)ratio
				   : (uint32_t)((pt->nominal_hz + 50000000) / 100000000);
	read_filter(info, pt);
	read_events(data, info);
	read_cpuid(data);
	data->is_timeless = is_timeless(data);
}
