#include "correlate/offset_recorded.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/mapped_file.h"
#include "decode/base/printable.h"
#include "decode/base/vec.h"
#include "decode/pt/pt_offsets.h"

static int64_t integer(const json_t *object, const char *key, int64_t missing)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : missing;
}

static int32_t id(const json_t *object, const char *key)
{
	int64_t value = integer(object, key, -1);

	return value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

/* A multiplier with any number of fraction bits; 0 when it makes no sense. */
static uint64_t read_ratio(const json_t *sample)
{
	int64_t ratio = integer(sample, "ratio", (int64_t)TSC_RATIO_ONE);
	int64_t bits = integer(sample, "frac_bits", TSC_RATIO_BITS);

	if (ratio <= 0 || bits < 1 || bits > 62)
		return 0;
	while (bits > TSC_RATIO_BITS) {
		ratio >>= 1;
		bits--;
	}
	while (bits < TSC_RATIO_BITS && ratio < INT64_MAX / 2) {
		ratio <<= 1;
		bits++;
	}
	return bits == TSC_RATIO_BITS ? (uint64_t)ratio : 0;
}

static int read_vcpu(const json_t *vcpu, struct offset_recorded entry, struct offsets_recorded *ret)
{
	const json_t *samples = json_object_get(vcpu, "tsc");

	entry.tid = id(vcpu, "tid");
	entry.vcpu = integer(vcpu, "index", -1);
	if (!vec_push(&ret->entries, entry))
		return -PTVM_NO_MEMORY;
	for (size_t i = 0; i < json_array_size(samples); i++) {
		const json_t *sample = json_array_get(samples, i);

		entry.time_ns = (uint64_t)integer(sample, "time_ns", 0);
		entry.offset = (uint64_t)integer(sample, "offset", 0) & PT_TSC_MASK;
		entry.ratio = read_ratio(sample);
		entry.have_offset =
			entry.ratio && json_is_integer(json_object_get(sample, "offset"));
		if (entry.have_offset && !vec_push(&ret->entries, entry))
			return -PTVM_NO_MEMORY;
	}
	return 0;
}

static int read_machine(const json_t *machine, struct offsets_recorded *ret)
{
	const json_t *vcpus = json_object_get(machine, "vcpus");
	const char *name = json_string_value(json_object_get(machine, "name"));
	char *copy = arena_strndup(&ret->arena, name ? name : "", name ? strlen(name) : 0);
	struct offset_recorded entry = { .pid = id(machine, "pid"), .name = copy };
	int r = 0;

	if (!copy)
		return -PTVM_NO_MEMORY;
	printable(copy, strlen(copy));
	for (size_t i = 0; i < json_array_size(vcpus) && !r; i++)
		r = read_vcpu(json_array_get(vcpus, i), entry, ret);
	return r;
}

int offsets_recorded_parse(struct bytes text, struct offsets_recorded *ret,
			   struct ptvm_error *error)
{
	json_error_t where;
	/* an empty file is mapped nowhere */
	const char *start = text.size ? (const char *)text.data : "";
	const json_t *machines;
	json_t *root;
	int r = 0;

	/* in memory it is many times as large */
	if (text.size > OFFSETS_RECORDED_BYTES)
		return ptvm_fail(error, PTVM_BAD_INPUT, "more than %d MiB",
				 OFFSETS_RECORDED_BYTES >> 20);
	root = json_loadb(start, text.size, 0, &where);
	if (!root)
		return ptvm_fail(error, PTVM_BAD_INPUT, "line %d: %s", where.line, where.text);
	machines = json_object_get(root, "machines");
	for (size_t i = 0; i < json_array_size(machines) && !r; i++)
		r = read_machine(json_array_get(machines, i), ret);
	json_decref(root);
	return r;
}

int offsets_recorded_load(const char *path, struct offsets_recorded *ret, struct ptvm_error *error)
{
	struct ptvm_error why = { 0 };
	struct bytes text;
	int r;

	if (access(path, F_OK))
		return 0;
	r = mapped_file_open(path, &text, error);
	if (r)
		return r;
	r = offsets_recorded_parse(text, ret, &why);
	mapped_file_close(&text);
	return r == -PTVM_BAD_INPUT ? ptvm_fail(error, PTVM_BAD_INPUT, "%s: %s", path, why.message)
				    : r;
}

const struct offset_recorded *offsets_recorded_find(const struct offsets_recorded *recorded,
						    int32_t tid)
{
	for (size_t i = 0; i < recorded->entries.count && tid >= 0; i++)
		if (recorded->entries.items[i].tid == tid)
			return &recorded->entries.items[i];
	return NULL;
}

/* Whether what was recorded is what the packets show of a segment. How fast the TSC goes they show
 * only of a long one. */
static bool agrees(const struct offset_recorded *entry, const struct tsc_segment *segment,
		   int64_t tolerance)
{
	uint64_t recorded = tsc_scale(segment->host, entry->ratio) + entry->offset;
	uint64_t seen = tsc_scale(segment->host, segment->ratio) + segment->offset;
	int64_t apart = tsc_difference(recorded, seen);

	return apart <= tolerance && apart >= -tolerance;
}

/* Packets show nothing, or little: what was recorded first holds from the beginning. */
static int use_alone(const struct offset_recorded *entry, const struct time_conv *conv,
		     struct vmcs_offsets *guest)
{
	size_t count = guest->segments.count;
	struct tsc_segment *last = count ? &guest->segments.items[count - 1] : NULL;
	struct tsc_segment segment = { .to = UINT64_MAX,
				       .offset = entry->offset,
				       .ratio = entry->ratio,
				       .host = guest->first_host,
				       .source = TSC_RECORDED,
				       .confidence = TSC_MEDIUM };

	if (last && last->offset == entry->offset && last->ratio == entry->ratio)
		return 0;
	if (last && conv->valid && entry->time_ns) {
		segment.from = time_conv_tsc(conv, entry->time_ns);
		last->to = segment.from;
	}
	return vec_push(&guest->segments, segment) ? 0 : -PTVM_NO_MEMORY;
}

static bool use_exact(const struct offset_recorded *entry, int64_t tolerance,
		      struct vmcs_offsets *guest)
{
	bool used = false;

	for (size_t i = 0; i < guest->segments.count; i++) {
		struct tsc_segment *segment = &guest->segments.items[i];

		if (!agrees(entry, segment, tolerance))
			continue;
		segment->offset = entry->offset;
		segment->ratio = entry->ratio;
		segment->source = TSC_RECORDED;
		segment->confidence = TSC_HIGH;
		used = true;
	}
	return used;
}

/* Whether packets do not tell offsets for sure. */
static bool is_estimate(const struct vmcs_offsets *guest)
{
	for (size_t i = 0; i < guest->segments.count; i++)
		if (guest->segments.items[i].confidence != TSC_LOW)
			return false;
	return true;
}

/* When the guest ran in that queue stays known. */
static void drop_estimate(struct vmcs_offsets *guest)
{
	if (!guest->segments.count || guest->segments.items[0].source != TSC_INFERRED)
		return;
	guest->first_host = guest->segments.items[0].host;
	guest->segments.count = 0;
}

int offsets_recorded_use(const struct offsets_recorded *recorded, int32_t tid, bool is_only,
			 const struct time_conv *conv, int64_t tolerance,
			 struct vmcs_offsets *guest)
{
	bool is_unseen = !guest->segments.count;
	bool alone = is_only && is_estimate(guest);
	int r = 0;

	for (size_t i = 0; i < recorded->entries.count && tid >= 0 && !r; i++) {
		const struct offset_recorded *entry = &recorded->entries.items[i];

		if (entry->tid != tid || !entry->have_offset)
			continue;
		if (alone) {
			drop_estimate(guest);
			r = use_alone(entry, conv, guest);
		} else if (is_unseen) {
			guest->is_unclear = true;
		} else {
			guest->disagrees |= !use_exact(entry, tolerance, guest) && is_only;
		}
	}
	return r;
}

void offsets_recorded_free(struct offsets_recorded *recorded)
{
	vec_free(&recorded->entries);
	arena_free(&recorded->arena);
}
