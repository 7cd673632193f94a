#!/usr/bin/env python3
"""copy.py PTVM COPY_RECORDING: a recording that our writer made decodes as the one it was made from; prints TAP."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import questions

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECORDING = PROJECT / "examples/vm-small"
PTVM, COPY = sys.argv[1:3]
GUEST = RECORDING / "kcore_dir__106"
DECODE = ["--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules",
          "--itrace=i1ibe", "-F", "comm,tid,cpu,time,ip,sym,symoff,addr,flags"]


def copied(where, how):
    """The sample recording, with `data` written anew; it has what is beside it, too."""
    copy = pathlib.Path(where) / how
    shutil.copytree(RECORDING, copy, ignore=lambda folder, names: {"data"} if folder == str(RECORDING) else set())
    subprocess.run([COPY, RECORDING, copy / "data", how], check=True)
    return copy


def same(program, copy):
    command = [*program, "script", *DECODE]
    ours, theirs = (questions.lines([*command, "-i", path]) for path in (copy, RECORDING))
    assert len(theirs) > 1000, f"{len(theirs)} lines"
    for at, (found, expected) in enumerate(zip(ours, theirs)):
        assert found == expected, f"line {at}: found {found!r}, expected {expected!r}"
    assert len(ours) == len(theirs), f"{len(ours)} lines, expected {len(theirs)}"


def test(number, name, program, copy):
    if not shutil.which(program[0]):
        print(f"ok {number} - {name} # SKIP no {program[0]}")
        return True
    try:
        same(program, copy)
        print(f"ok {number} - {name}")
        return True
    except (AssertionError, subprocess.SubprocessError) as reason:
        print(f"not ok {number} - {name}")
        print(f"{name}: {reason}", file=sys.stderr)
        return False


def main():
    print("1..3")
    with tempfile.TemporaryDirectory() as where:
        finished, cut = copied(where, "finished"), copied(where, "cut")
        good = [test(1, "ptvm_decodes_what_was_finished", [PTVM], finished),
                test(2, "ptvm_decodes_what_was_cut", [PTVM], cut),
                test(3, "perf_decodes_what_was_finished", ["perf"], finished)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
