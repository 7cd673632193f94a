#include "decode/print/time_column.h"

void time_column_text(struct text *text, uint64_t time_ns, bool nanoseconds)
{
	enum { DIGITS = 9 };
	unsigned count = nanoseconds ? DIGITS : DIGITS - 3;
	uint32_t part = (uint32_t)(time_ns % 1000000000);
	char *p;

	text_dec(text, time_ns / 1000000000, 5, ' ');
	p = text_field(text, count + 3, 0, ' ');
	if (!p)
		return;
	*p++ = '.';
	text_digits(p, nanoseconds ? part : part / 1000, count);
	memcpy(p + count, ": ", 2);
}

static uint64_t shown(struct time_column *column, uint64_t time_ns)
{
	uint64_t previous = column->previous;

	if (!column->first)
		column->first = previous = time_ns;
	column->previous = time_ns;
	return time_ns - (column->relative ? column->first : previous);
}

static void fill_line(struct time_column *column, const char *line, size_t size, uint64_t time_ns)
{
	const char *mark = memchr(line, TIME_COLUMN_MARK, size);

	if (!mark) {
		text_add(&column->text, line, size);
		return;
	}
	text_add(&column->text, line, (size_t)(mark - line));
	time_column_text(&column->text, shown(column, time_ns), column->nanoseconds);
	text_add(&column->text, mark + 1, size - (size_t)(mark - line) - 1);
}

void time_column_fill(struct time_column *column, const char *lines, size_t size, uint64_t time_ns)
{
	column->text.size = 0;
	for (size_t length; size; size -= length) {
		const char *newline = memchr(lines, '\n', size);

		length = newline ? (size_t)(newline + 1 - lines) : size;
		fill_line(column, lines, length, time_ns);
		lines += length;
	}
}
