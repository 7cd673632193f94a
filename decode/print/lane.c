#include "decode/print/lane.h"

#include <stddef.h>

void lane_wait(struct lane *lane, struct job *job)
{
	struct job **link = &lane->waiting;

	if (lane->last_waiting && lane->last_waiting->segment.from < job->segment.from)
		link = &lane->last_waiting->next_waiting;
	while (*link && (*link)->segment.from < job->segment.from)
		link = &(*link)->next_waiting;
	job->next_waiting = *link;
	*link = job;
	if (!job->next_waiting)
		lane->last_waiting = job;
	lane->waiting_jobs++;
}

struct job *lane_take(struct lane *lane)
{
	struct job *job = lane->waiting;

	lane->waiting = job->next_waiting;
	if (!lane->waiting)
		lane->last_waiting = NULL;
	lane->waiting_jobs--;
	return job;
}

void lane_add(struct lane *lane, struct job *job)
{
	if (lane->last)
		lane->last->next = job;
	else
		lane->first = job;
	lane->last = job;
	lane->jobs++;
	lane_wait(lane, job);
}

void lane_drop_first(struct lane *lane)
{
	struct job *job = lane->first;

	lane->first = job->next;
	if (!lane->first)
		lane->last = NULL;
	lane->jobs--;
	job_free(job);
}
