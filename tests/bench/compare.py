#!/usr/bin/env python3
"""ptvm script beside perf script: the same recording, the same question, output thrown away.

    tests/bench/compare.py PTVM [--rounds N] [--recording DIR [--guest DIR]]

Runs alternate on one CPU; the figure is the median of the ratios, pair by pair, and ptvm's greatest
memory. Without --recording it is the sample recording, where starting up is most of the time: take
a long one for figures that mean something. --guest names the folder with the guest's kallsyms and
modules, where the recording needs it. With --memory ptvm also decodes a trace and the same trace four
times over (as raw packets), to show that memory does not grow."""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FIELDS = ["-F", "ip,sym,symoff,dso"]
QUESTIONS = [
    ("instructions as text", ["--itrace=i1i", *FIELDS]),
    ("--insn-trace=raw", None),  # perf has no disassembler of its own: bytes for both
    ("branches as text", ["--itrace=b", "-F", "ip,sym,symoff,addr,flags"]),
    ("errors only", ["--itrace=e"]),
    ("packets", ["-D"]),
]


def once(command):
    """Seconds and peak MiB of one run on CPU 0."""
    start = time.monotonic()
    child = subprocess.Popen(["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def race(what, mine, peer, rounds):
    once(mine)
    pairs = [(once(mine), once(peer)) for _ in range(rounds)]
    ratio = statistics.median(p[0] / m[0] for m, p in pairs)
    print(f"{what:24s} ptvm {statistics.median(m[0] for m, _ in pairs):8.3f} s   "
          f"perf {statistics.median(p[0] for _, p in pairs):8.3f} s   ratio {ratio:6.1f}   "
          f"{max(m[1] for m, _ in pairs):5.0f} MiB", flush=True)


def raw_packets(recording, copies, out):
    """The largest AUX buffer of a recording, some times over."""
    data = (recording / "data").read_bytes() if recording.is_dir() else recording.read_bytes()
    best, at = (0, 0), data.find(b"\x47\x00\x00\x00")
    while at >= 0:  # PERF_RECORD_AUXTRACE, 48 bytes
        size = int.from_bytes(data[at + 8:at + 16], "little")
        if data[at + 6:at + 8] == b"\x30\x00" and at + 48 + size <= len(data):
            best = max(best, (size, at + 48))
        at = data.find(b"\x47\x00\x00\x00", at + 4)
    out.write_bytes(data[best[1]:best[1] + best[0]] * copies)


def memory(ptvm, recording):
    with tempfile.TemporaryDirectory() as folder:
        for copies in (1, 4, 16):
            trace = pathlib.Path(folder) / "trace"
            raw_packets(recording, copies, trace)
            _, mib = once([ptvm, "script", "-D", "--pt", str(trace)])
            _, walked = once([ptvm, "script", "--itrace=e", "--pt", str(trace)])
            print(f"{trace.stat().st_size >> 20:5d} MiB of trace: {mib:5.0f} MiB to dump, "
                  f"{walked:5.0f} MiB to decode")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ptvm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recording", type=pathlib.Path, default=HERE / "../../examples/vm-small")
    parser.add_argument("--guest", type=pathlib.Path)
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    if not shutil.which("perf"):
        sys.exit("compare.py needs perf (apt-get install linux-perf)")
    guest = args.guest or (HERE / "../../examples/vm-small/kcore_dir__106"
                           if "vm-small" in str(args.recording) else None)
    ask = ["script", "-i", str(args.recording)]
    if guest:
        ask += ["--guestkallsyms", str(guest / "kallsyms"), "--guestmodules", str(guest / "modules")]
    for what, options in QUESTIONS:
        if options:
            race(what, [args.ptvm, *ask, *options], ["perf", *ask, *options], args.rounds)
        else:
            race(what, [args.ptvm, *ask, "--insn-trace=raw"], ["perf", *ask, "--insn-trace"],
                 args.rounds)
    if args.memory:
        memory(args.ptvm, args.recording)


if __name__ == "__main__":
    main()
