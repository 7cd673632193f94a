/* compare_truth DIRECTORY VCPUS [DIFFERENCES] <TEXT: what `ptvm script --ns -F cpu,time,ip` found
 * in the recording of DIRECTORY, beside what its vCPUs executed. The third file gets a line for
 * each place where they differ. */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/vec.h"

enum {
	VCPUS = 8,
	SAME = 16,           /* instructions in a row that must be equal to be the same place */
	FIRST_WINDOW = 4096, /* instructions in which that is looked for, and more and more */
	WINDOW_FACTOR = 16,
	SLOTS_PER_PLACE = 2,
};

/* Instructions in order. */
struct ips {
	uint64_t *items;
	size_t count, room;
	struct {
		struct piece {
			uint64_t time; /* ns; the trace tells time now and then only */
			size_t from;   /* its first instruction */
		} * items;
		size_t count, room;
	} pieces;
};

/* Where in the truth a run of SAME instructions begins first, by hash. */
struct places {
	size_t *slots; /* position + 1 */
	size_t mask;
};

static uint64_t hash(const uint64_t *ips)
{
	uint64_t value = 0;

	for (size_t i = 0; i < SAME; i++)
		value = (value ^ ips[i]) * 0x9e3779b97f4a7c15;
	return value ^ value >> 32;
}

static bool is_same(const uint64_t *a, const uint64_t *b)
{
	return !memcmp(a, b, SAME * sizeof(*a));
}

static size_t *slot_of(const struct places *places, const struct ips *truth, const uint64_t *ips)
{
	size_t at = hash(ips) & places->mask;

	while (places->slots[at] && !is_same(&truth->items[places->slots[at] - 1], ips))
		at = (at + 1) & places->mask;
	return &places->slots[at];
}

static void places_init(struct places *places, const struct ips *truth, size_t from, size_t to)
{
	size_t size = 1;

	while (size < SLOTS_PER_PLACE * (to - from) + 1)
		size *= 2;
	places->mask = size - 1;
	places->slots = calloc(size, sizeof(*places->slots));
	if (!places->slots)
		abort();
	for (size_t i = from; i < to; i++) {
		size_t *slot = slot_of(places, truth, &truth->items[i]);

		if (!*slot)
			*slot = i + 1;
	}
}

static size_t ends_of_runs(const struct ips *ips, size_t from, size_t window)
{
	size_t last = ips->count < SAME ? 0 : ips->count - SAME + 1;

	if (last < from)
		return from;
	return last - from < window ? last : from + window;
}

/* Find the nearest place where both go on alike, within `window` of each: code runs in loops. */
static bool meet_within(const struct ips *truth, const struct ips *found, size_t window, size_t *i,
			size_t *j)
{
	size_t truth_to = ends_of_runs(truth, *i, window);
	size_t found_to = ends_of_runs(found, *j, window);
	size_t best = SIZE_MAX, best_i = 0, best_j = 0;
	struct places places;

	places_init(&places, truth, *i, truth_to);
	for (size_t k = *j; k < found_to && k - *j < best; k++) {
		size_t at = *slot_of(&places, truth, &found->items[k]);

		if (!at || at - 1 - *i + k - *j >= best)
			continue;
		best_i = at - 1;
		best_j = k;
		best = best_i - *i + best_j - *j;
	}
	free(places.slots);
	if (best == SIZE_MAX)
		return false;
	*i = best_i;
	*j = best_j;
	return true;
}

static void meet(const struct ips *truth, const struct ips *found, size_t *i, size_t *j)
{
	size_t most = truth->count + found->count;

	for (size_t window = FIRST_WINDOW; window / WINDOW_FACTOR < most; window *= WINDOW_FACTOR)
		if (meet_within(truth, found, window, i, j))
			return;
	*i = truth->count;
	*j = found->count;
}

struct comparison {
	unsigned vcpu;
	FILE *differences;
	size_t instructions, missing, extra;
};

static void note(struct comparison *comparison, uint64_t time, uint64_t last, size_t missing,
		 size_t extra)
{
	comparison->missing += missing;
	comparison->extra += extra;
	if (comparison->differences)
		(void)fprintf(comparison->differences,
			      "[%03u] %" PRIu64 " missing %zu extra %zu from %" PRIx64 "\n",
			      comparison->vcpu, time, missing, extra, last);
}

static void compare_piece(struct comparison *comparison, uint64_t time, const struct ips *truth,
			  const struct ips *found)
{
	for (size_t i = 0, j = 0; i < truth->count || j < found->count; i++, j++) {
		size_t was_i = i, was_j = j;

		if (i < truth->count && j < found->count && truth->items[i] == found->items[j])
			continue;
		meet(truth, found, &i, &j);
		note(comparison, time, was_i ? truth->items[was_i - 1] : 0, i - was_i, j - was_j);
		if (i == truth->count && j == found->count)
			break;
	}
}

/* The instructions of pieces [from, to). */
static struct ips pieces_at(const struct ips *ips, size_t from, size_t to)
{
	size_t begin = from < ips->pieces.count ? ips->pieces.items[from].from : ips->count;
	size_t end = to < ips->pieces.count ? ips->pieces.items[to].from : ips->count;

	return (struct ips){ .items = ips->items + begin, .count = end - begin };
}

/* What was found is told apart by the times at which pieces of the truth begin. */
static void compare(struct comparison *comparison, const struct ips *truth, const struct ips *found)
{
	size_t from = 0, to = 0;

	comparison->instructions += truth->count;
	for (size_t i = 0; i < truth->pieces.count; i++, from = to) {
		bool is_last = i + 1 == truth->pieces.count;
		struct ips executed = pieces_at(truth, i, i + 1), seen;

		while (to < found->pieces.count &&
		       (is_last || found->pieces.items[to].time < truth->pieces.items[i + 1].time))
			to++;
		seen = pieces_at(found, from, to);
		compare_piece(comparison, truth->pieces.items[i].time, &executed, &seen);
	}
}

static void push(struct ips *ips, uint64_t time, uint64_t ip)
{
	struct piece piece = { time, ips->count };

	if (!ips->pieces.count || ips->pieces.items[ips->pieces.count - 1].time != time)
		if (!vec_push(&ips->pieces, piece))
			abort();
	if (!vec_push(ips, ip))
		abort();
}

/* Addresses of the kernel, and times. */
static void read_truth(const char *directory, unsigned vcpu, struct ips *ret)
{
	char name[PATH_MAX];
	uint64_t value, time = 0;
	FILE *file;

	(void)snprintf(name, sizeof(name), "%s/truth.%u", directory, vcpu);
	file = fopen(name, "rb");
	if (!file) {
		perror(name);
		exit(1);
	}
	while (fread(&value, sizeof(value), 1, file) == 1)
		if (value >> 63)
			push(ret, time, value);
		else
			time = value;
	(void)fclose(file);
}

/* Lines are "[CPU] SECONDS.NANOSECONDS: IP". */
static void read_found(struct ips *found)
{
	enum { NS_PER_S = 1000000000 };
	unsigned long long s, ns;
	char line[256], *end;
	unsigned long cpu;

	while (fgets(line, sizeof(line), stdin)) {
		const char *at = strchr(line, '[');

		if (!at)
			continue;
		cpu = strtoul(at + 1, &end, 10);
		s = *end == ']' ? strtoull(end + 1, &end, 10) : 0;
		ns = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
		if (*end == ':' && cpu < VCPUS)
			push(&found[cpu], s * NS_PER_S + ns, strtoull(end + 1, NULL, 16));
	}
}

static void ips_free(struct ips *ips)
{
	vec_free(&ips->pieces);
	vec_free(ips);
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

int main(int argc, char **argv)
{
	struct comparison comparison = { 0 };
	struct ips found[VCPUS] = { 0 };

	if (argc != 3 && argc != 4)
		return 2;
	comparison.differences = argc == 4 ? fopen(argv[3], "w") : NULL;
	read_found(found);
	for (unsigned i = 0; i < strtoul(argv[2], NULL, 10) && i < VCPUS; i++) {
		struct ips truth = { 0 };

		comparison.vcpu = i;
		read_truth(argv[1], i, &truth);
		compare(&comparison, &truth, &found[i]);
		ips_free(&truth);
		ips_free(&found[i]);
	}
	if (comparison.differences && fclose(comparison.differences))
		return 1;
	(void)printf("%zu instructions, %.4f %% missing, %.4f %% extra\n", comparison.instructions,
		     percent(comparison.missing, comparison.instructions),
		     percent(comparison.extra, comparison.instructions));
	return !comparison.instructions;
}
