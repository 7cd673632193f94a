#!/usr/bin/env python3
"""check_includes.py: do includes go one way?

A folder includes only itself and folders before it; no file includes itself, over whatever detours; a source file includes
its own header first, so that every header is known to stand by itself."""
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[1]
LAYERS = [["decode/base"], ["decode/pt"], ["decode/perf"], ["decode/code"], ["decode/flow"], ["decode/print"], ["decode"],
          ["correlate", "guest"], ["host/machine"], ["host/vm"], ["host/record"], ["host"],
          ["tests"], ["tests/fuzz", "tests/kernels", "tests/unit"]]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def folder(path):
    return str(pathlib.PurePath(path).parent)


def includes():
    """Every file of ours and what it includes of ours, in order."""
    for name in RANK:
        for path in sorted((PROJECT / name).glob("*.[ch]")):
            found = re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', path.read_text(), re.M)
            yield str(path.relative_to(PROJECT)), found


def one_way(path, included):
    if included not in FILES:
        return
    here, there = folder(path), folder(included)
    if here != there and RANK[there] >= RANK[here]:
        yield f"{path} includes {included}: {here} must not know {there}"


def own_first(path, found):
    own = path[:-1] + "h"
    if path.endswith(".c") and own in FILES and found[:1] != [own]:
        yield f"{path} does not include {own} first"


def cycles():
    """Depth first; what is on the way and met again closes a cycle."""
    done = set()

    def visit(path, way):
        if path in way:
            yield "cycle: " + " > ".join([*way[way.index(path):], path])
        elif path not in done:
            for included in FILES[path]:
                if included in FILES:
                    yield from visit(included, [*way, path])
            done.add(path)

    for path in FILES:
        yield from visit(path, [])


FILES = dict(includes())


def main():
    wrong = [text for path, found in FILES.items() for included in found for text in one_way(path, included)]
    wrong += [text for path, found in FILES.items() for text in own_first(path, found)]
    wrong += cycles()
    print("\n".join(wrong) or f"{len(FILES)} files include each other one way")
    sys.exit(1 if wrong or not FILES else 0)


if __name__ == "__main__":
    main()
