#!/usr/bin/env python3
"""threads.py PTVM SIM_RECORDING: recordings whose records lie in several files, as `perf record --threads` makes them; prints TAP.

perf makes none with trace, but reads one: the sample recording is split as its threads would have written it."""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import questions
import tap
from perf_file import AUXTRACE, DATA, DIR_FORMAT, FEATURES, FINISHED_ROUND, KERNEL_TYPES, PerfFile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECORDING = PROJECT / "examples/vm-small"
GUEST = RECORDING / "kcore_dir__106"
FILES = ["--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules"]
PTVM, SIM = sys.argv[1:3]
FIELDS = ["-F", "comm,tid,cpu,time,event,ip,sym,symoff,dso,addr,flags"]
QUESTIONS = [["--itrace=i1ibe", *FIELDS], ["--itrace=i1us", "--show-switch-events", *FIELDS]]


def place(kind, record, with_trace):
    """The file that a record goes to: that of the CPU, for what a kernel wrote; 2 for all that has none."""
    if kind == AUXTRACE and with_trace:
        return struct.unpack_from("<I", record, 40)[0] % 2
    if kind < KERNEL_TYPES and struct.unpack_from("<Q", record, len(record) - 24)[0]:
        return struct.unpack_from("<I", record, len(record) - 16)[0] % 2
    return 2


def split(copy, with_trace):
    """Replace the data of a recording by three files; 0 has later records before the earlier ones of 10."""
    file = PerfFile(copy / "data")
    parts = [[], [], []]
    for kind, record in file.records:
        if kind != FINISHED_ROUND:  # none in such recordings
            parts[place(kind, record, with_trace)].append((kind, record))
    file.records = parts[2]
    file.features[DIR_FORMAT] = struct.pack("<Q", 1)
    file.write(copy / "data")
    (copy / "data.0").write_bytes(b"".join(record for _, record in parts[0]))
    (copy / "data.1").write_bytes(b"")
    (copy / "data.10").write_bytes(b"".join(record for _, record in parts[1]))
    if with_trace:  # perf takes any name that begins so
        (copy / "data.ptvm-other").write_bytes(b"none of it")


def answers(program, recording, question):
    return questions.lines([program, "script", *FILES, "-i", recording, *question])


def same(ours, theirs):
    assert len(theirs) > 100, f"{len(theirs)} lines"
    for at, (found, expected) in enumerate(zip(ours, theirs)):
        assert found == expected, f"line {at}: found {found!r}, expected {expected!r}"
    assert len(ours) == len(theirs), f"{len(ours)} lines, expected {len(theirs)}"


def test_it_decodes_as_the_recording_in_one_file(where):
    for question in QUESTIONS:
        same(answers(PTVM, where / "split", question), answers(PTVM, RECORDING, question))


def test_trace_may_lie_in_any_file(where):
    for question in QUESTIONS:
        same(answers(PTVM, where / "trace", question), answers(PTVM, RECORDING, question))


def test_perf_reads_the_same(where):
    tap.need("perf")
    question = ["--itrace=b", "-F", "cpu,ip,sym,symoff,dso,addr,flags"]
    for cpu in ("0", "1"):
        ours, theirs = (answers(program, where / "split", ["-C", cpu, *question]) for program in (PTVM, "perf"))
        same(ours, theirs)


def test_perf_prints_the_same_dump(where):
    tap.need("perf")
    ours, theirs = ([line for line in questions.lines([program, "script", "-i", where / "split", "-D"])
                     if "event: " in line] for program in (PTVM, "perf"))
    same(ours, theirs)


def test_it_decodes_where_perf_was_killed(where):
    with open(where / "killed/data", "r+b") as file:
        file.seek(DATA + 8)
        file.write(bytes(8))
        file.seek(FEATURES)
        file.write(bytes(32))
    question = ["--itrace=b", "-F", "ip,addr,flags"]
    same(answers(PTVM, where / "killed", question), answers(PTVM, RECORDING, question))


def test_offsets_are_not_written_to_other_files(where):
    (where / "offset").mkdir()
    subprocess.run([SIM, where / "offset/data", "plain"], capture_output=True, check=True)
    split(where / "offset", True)
    run = subprocess.run([PTVM, "correlate", "-i", where / "offset"], capture_output=True, text=True, check=False)
    assert run.returncode == 1, run
    assert "trace that lies in another file cannot be changed" in run.stderr, run.stderr


def test_damage_is_told_of_the_file_that_has_it(where):
    shutil.copytree(where / "split", where / "damaged")
    size = (where / "damaged/data.10").stat().st_size
    with open(where / "damaged/data.10", "ab") as file:
        file.write(bytes(16))
    for verb in (["script"], ["correlate", "--dry-run"]):
        run = subprocess.run([PTVM, *verb, "-i", where / "damaged"], capture_output=True, text=True, check=False)
        assert f"{where}/damaged/data.10: " in run.stderr and f" at offset {size:#x} (16 bytes left out)\n" in run.stderr, run.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        where = pathlib.Path(folder)
        for copy, with_trace in (("split", False), ("trace", True), ("killed", False)):
            shutil.copytree(RECORDING, where / copy)
            split(where / copy, with_trace)
        tap.run(tap.tests_of(globals()), where)


if __name__ == "__main__":
    main()
