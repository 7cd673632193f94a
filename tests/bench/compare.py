#!/usr/bin/env python3
"""ptvm script beside perf script: the same recording, the same question, output thrown away.

    tests/bench/compare.py PTVM [--rounds N] [--cpus LIST] [--recording DIR [--guest DIR]]

Runs alternate on one CPU, or those of --cpus (0,1: two threads); the figure is the median of the
ratios, pair by pair, and ptvm's greatest memory. Without --recording it is the sample recording, where
starting up is most of the time: take a long one for figures that mean something. --guest names the
folder with the guest's kallsyms and modules, where the recording needs it. In the last row ptvm
disassembles, and its peer is ptvm without that. How memory grows is for growth.py."""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
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


def once(command, cpus):
    """Seconds and peak MiB of one run on these CPUs."""
    start = time.monotonic()
    child = subprocess.Popen(["taskset", "-c", cpus, *command], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def race(what, mine, peer, args, name="perf"):
    once(mine, args.cpus)
    pairs = [(once(mine, args.cpus), once(peer, args.cpus)) for _ in range(args.rounds)]
    ratio = statistics.median(p[0] / m[0] for m, p in pairs)
    print(f"{what:24s} ptvm {statistics.median(m[0] for m, _ in pairs):8.3f} s   "
          f"{name} {statistics.median(p[0] for _, p in pairs):8.3f} s   ratio {ratio:6.1f}   "
          f"{max(m[1] for m, _ in pairs):5.0f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ptvm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recording", type=pathlib.Path, default=HERE / "../../examples/vm-small")
    parser.add_argument("--guest", type=pathlib.Path)
    parser.add_argument("--cpus", default="0")
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
            race(what, [args.ptvm, *ask, *options], ["perf", *ask, *options], args)
        else:
            race(what, [args.ptvm, *ask, "--insn-trace=raw"], ["perf", *ask, "--insn-trace"], args)
    race("with disassembly", [args.ptvm, *ask, "--insn-trace"], [args.ptvm, *ask, "--insn-trace=raw"], args, "raw ")


if __name__ == "__main__":
    main()
