#!/usr/bin/env python3
"""count.py TESTLOG.JSON: how many cases passed, failed and were skipped, as three numbers.

A program that speaks TAP counts by its cases, any other as one."""
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b[^#\n]*(# SKIP)?", re.M)


def count(test):
    """Of one program: (passed, failed, skipped)."""
    cases = CASE.findall(test.get("stdout") or "")
    if not cases:
        return {"OK": (1, 0, 0), "SKIP": (0, 0, 1)}.get(test["result"], (0, 1, 0))
    failed = sum(bool(bad) for bad, _ in cases)
    skipped = sum(bool(skip) for _, skip in cases)
    unseen = 1 if not failed and test["result"] not in ("OK", "SKIP") else 0
    return len(cases) - failed - skipped, failed + unseen, skipped


def main():
    with open(sys.argv[1], encoding="utf-8") as log:
        counts = [count(json.loads(line)) for line in log if line.strip()]
    print(*(sum(column) for column in zip(*counts)) if counts else (0, 1, 0))


if __name__ == "__main__":
    main()
