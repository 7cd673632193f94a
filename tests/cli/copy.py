#!/usr/bin/env python3
"""copy.py PTVM COPY_RECORDING: a recording that our writer made decodes as the one it was made from; prints TAP.

One that tells of its guest does so without being told by options where the guest's code and symbols are."""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import questions
import tap

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECORDING = PROJECT / "examples/vm-small"
PTVM, COPY = sys.argv[1:3]
GUEST = RECORDING / "kcore_dir__106"
FILES = ["--guestkallsyms", GUEST / "kallsyms", "--guestmodules", GUEST / "modules"]
FIELDS = ["-F", "comm,tid,cpu,time,ip,sym,symoff,dso,addr,flags"]
VCPU = ["106", "113", "0"]
MODULES = 0xffffffffc0000000


def copied(where, how, *vcpu):
    """The sample recording, with `data` written anew; it has what is beside it, too."""
    copy = pathlib.Path(where) / how
    shutil.copytree(RECORDING, copy, ignore=lambda folder, names: {"data"} if folder == str(RECORDING) else set())
    subprocess.run([COPY, RECORDING, copy / "data", how, *vcpu], check=True)
    return copy


def join_kernel(kcore):
    """Make one segment, with holes, of those that the sample was cut to: perf looks at the first one only when a
    guest runs first."""
    elf = kcore.read_bytes()
    count = struct.unpack_from("<H", elf, 56)[0]
    loads = [list(struct.unpack_from("<IIQQQQQQ", elf, 64 + 56 * i)) for i in range(count)]
    kernel = [load for load in loads if load[3] < MODULES]
    start, end = kernel[0][3], kernel[-1][3] + kernel[-1][5]
    with open(kcore, "wb") as file:
        file.write(elf[:56] + struct.pack("<H", 1 + len(loads) - len(kernel)) + elf[58:64])
        at = 4096
        for _, flags, offset, address, _, size, _, align in [[1, 7, 0, start, 0, end - start, 0, 4096],
                                                             *loads[len(kernel):]]:
            file.write(struct.pack("<IIQQQQQQ", 1, flags, at, address, 0, size, size, align))
            header = file.tell()
            for _, _, offset, piece, _, size_of_piece, _, _ in loads:
                if address <= piece < address + size:
                    file.seek(at + piece - address)
                    file.write(elf[offset:offset + size_of_piece])
            at += size + 4095 & ~4095
            file.truncate(at)
            file.seek(header)


def same(program, copy, options=FILES, itrace="i1ibe"):
    tap.need(program)
    command = [program, "script", f"--itrace={itrace}", *FIELDS]
    ours = questions.lines([*command, *options, "-i", copy])
    theirs = questions.lines([*command, *FILES, "-i", RECORDING])
    assert len(theirs) > 1000, f"{len(theirs)} lines"
    assert any("[guest.kernel.kallsyms]" in line for line in theirs), "no guest"
    for at, (found, expected) in enumerate(zip(ours, theirs)):
        assert found == expected, f"line {at}: found {found!r}, expected {expected!r}"
    assert len(ours) == len(theirs), f"{len(ours)} lines, expected {len(theirs)}"


def perf_reads_the_build_id(copy):
    tap.need("perf")
    ids = questions.lines(["perf", "buildid-list", "-i", copy])
    assert f"{bytes(range(20)).hex()} [guest.kernel.kallsyms]" in ids, ids


def main():
    with tempfile.TemporaryDirectory() as where:
        finished, cut = copied(where, "finished"), copied(where, "cut")
        begun = copied(where, "begun", *VCPU)
        join_kernel(begun / "kcore_dir__106/kcore")
        tap.run([("ptvm_decodes_what_was_finished", lambda: same(PTVM, finished)),
                 ("ptvm_decodes_what_was_cut", lambda: same(PTVM, cut)),
                 ("perf_decodes_what_was_finished", lambda: same("perf", finished)),
                 ("ptvm_finds_the_guest_in_the_recording", lambda: same(PTVM, begun, [])),
                 ("perf_finds_the_guest_in_the_recording", lambda: same("perf", begun, [])),
                 ("perf_finds_it_for_instructions_alone", lambda: same("perf", begun, [], "i0ns")),
                 ("perf_reads_the_build_id_of_the_guest", lambda: perf_reads_the_build_id(begun))])


if __name__ == "__main__":
    main()
