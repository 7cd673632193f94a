#!/usr/bin/env python3
"""same_code.py A B: has one copy of a kernel's code all that the other one has, and the same?

Copies from memory leave out pages that are not code: they are zero there. A kernel that runs patches its text now and then,
by a few bytes, and may make a few pages of code."""
import struct
import sys

PAGE, MOST, MOST_PAGES = 4096, 1000, 16


def pages(path):
    """Address -> page, of those that are not zero."""
    elf = open(path, "rb").read()
    at, = struct.unpack_from("<Q", elf, 32)
    count, = struct.unpack_from("<H", elf, 56)
    for i in range(count):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", elf, at + 56 * i)
        for part in range(0, size if kind == 1 else 0, PAGE):
            page = elf[offset + part:offset + part + PAGE]
            if any(page):
                yield address + part, page


def main():
    a, b = (dict(pages(path)) for path in sys.argv[1:])
    both = a.keys() & b.keys()
    differ = sum(x != y for address in both for x, y in zip(a[address], b[address]) if a[address] != b[address])
    print(f"{len(a)} and {len(b)} pages, {len(both)} in both; {differ} bytes differ")
    sys.exit(len(b) - len(both) > MOST_PAGES or differ >= MOST)


if __name__ == "__main__":
    main()
