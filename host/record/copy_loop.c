#include "host/record/copy_loop.h"

#include <stdio.h>

#include "decode/base/interrupt.h"
#include "decode/base/monotonic.h"
#include "decode/base/progress.h"
#include "guest/guest_copy.h"

double copy_loop_seconds(int64_t begin_ms)
{
	return (double)(monotonic_ms() - begin_ms) / MS_PER_S;
}

double copy_loop_mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void show_progress(const struct guest_copy *copy, int64_t begin_ms)
{
	char total[32] = "";

	if (copy->total)
		(void)snprintf(total, sizeof(total), " of %.1f", copy_loop_mib(copy->total));
	progress_show("%s: %.1f%s MiB, %.1f s ", copy->doing, copy_loop_mib(copy->done), total,
		      copy_loop_seconds(begin_ms));
}

int copy_loop_run(const struct guest_copy *copy,
		  int (*next)(void *context, struct ptvm_error *error), void *context,
		  struct ptvm_error *error)
{
	const int64_t begin_ms = monotonic_ms();
	int r;

	do {
		show_progress(copy, begin_ms);
		r = next(context, error);
		if (r >= 0 && interrupt_take())
			r = -PTVM_END;
	} while (r > 0);
	progress_clear();
	return r;
}

static int copy_by(const struct copy_ways *ways, const char *via,
		   int (*copy)(void *context, struct guest_way *way, struct ptvm_error *error),
		   void *context, struct ptvm_error *error)
{
	struct guest_way way;
	int r;

	r = guest_way_open(via, &ways->target, &way, error);
	if (way.has_asked_monitor && !ways->is_again)
		(void)fprintf(stderr,
			      "ptvm %s: this asked QEMU's monitor for registers and where memory "
			      "is; libvirt notes it and calls the domain tainted\n",
			      ways->verb);
	if (!r)
		r = copy(context, &way, error);
	guest_way_close(&way);
	return r;
}

int copy_loop_by_ways(const struct copy_ways *ways,
		      int (*copy)(void *context, struct guest_way *way, struct ptvm_error *error),
		      void *context, struct ptvm_error *error)
{
	const char *list = ways->list;
	char via[GUEST_WAY_BYTES];
	struct ptvm_error why;
	bool is_over;
	int r;

	do {
		guest_way_next(&list, via);
		why = (struct ptvm_error){ 0 };
		r = copy_by(ways, via, copy, context, &why);
		if (!r || r == -PTVM_END)
			return r;
		is_over = interrupt_take();
		if (list || is_over)
			(void)fprintf(stderr, "ptvm %s: by %s: %s\n", ways->verb, via,
				      ptvm_error_text(&why));
		if (is_over)
			return -PTVM_END;
	} while (list);
	return ptvm_fail_as(error, &why, r);
}
