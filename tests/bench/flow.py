#!/usr/bin/env python3
"""ptvm's flow beside libipt's block decoder: every branch of a raw trace, nothing printed.

    tests/bench/flow.py PTVM TRACE ELF [--copies N] [--rounds N] [--peer NAME=COMMAND]

TRACE is what `script --pt` reads, of a program whose code at run time is in ELF. It is taken N times
over, so that starting up is no large part. Runs alternate on one CPU; the figure is the median of the
ratios, pair by pair. A COMMAND of yours runs too: {trace} and {elf} in it are replaced. Last come two
threads beside one, and two runs at once beside one after the other: no second thread is worth more on
this machine, whose CPUs may be two of one core. Needs libipt-dev and a C compiler."""
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


def seconds(*runs):
    """Until all of these runs, of CPUs and a command each, have ended."""
    start = time.monotonic()
    children = [subprocess.Popen(["taskset", "-c", cpus, *command], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for cpus, command in runs]
    errors = [child.communicate()[1] for child in children]
    took = time.monotonic() - start
    for child, error, (_, command) in zip(children, errors, runs):
        if child.returncode:
            sys.exit(f"{' '.join(command)}: exit status {child.returncode}\n{error}")
    return took


def race(what, mine, peer, rounds):
    """Functions that run, and return the seconds it took."""
    mine()
    pairs = [(mine(), peer()) for _ in range(rounds)]
    ratio = statistics.median(p / m for m, p in pairs)
    print(f"{what:24s} ptvm {statistics.median(m for m, _ in pairs):8.3f} s   "
          f"other {statistics.median(p for _, p in pairs):8.3f} s   ratio {ratio:6.2f}", flush=True)


def make_driver(folder):
    driver = folder / "libipt_flow"
    built = subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", driver, HERE / "libipt_flow.c",
                            "-lipt"], capture_output=True, text=True)
    if built.returncode:
        sys.exit(f"flow.py needs libipt (apt-get install libipt-dev):\n{built.stderr}")
    return str(driver)


def compare(args, folder):
    trace = folder / "trace"
    trace.write_bytes(args.trace.read_bytes() * args.copies)
    flow = [args.ptvm, "script", "--pt", str(trace), "--elf", str(args.elf), "--itrace=e"]
    one = [*flow, "-j", "1"]
    peers = {"libipt, blocks": [make_driver(folder), str(trace), str(args.elf)]}
    for peer in args.peer:
        name, command = peer.split("=", 1)
        peers[name] = [word.format(trace=trace, elf=args.elf) for word in command.split()]
    for name, command in peers.items():
        race(name, lambda: seconds(("0", one)), lambda: seconds(("0", command)), args.rounds)
    if len(os.sched_getaffinity(0)) > 1:
        race("two threads over one", lambda: seconds(("0,1", flow + ["-j", "2"])),
             lambda: seconds(("0,1", one)), args.rounds)
        race("two runs at once", lambda: seconds(("0", one), ("1", one)),
             lambda: seconds(("0", one)) + seconds(("1", one)), args.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ptvm")
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("elf", type=pathlib.Path)
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", action="append", default=[])
    args = parser.parse_args()
    if not shutil.which("taskset"):
        sys.exit("flow.py needs taskset (util-linux)")
    with tempfile.TemporaryDirectory() as folder:
        compare(args, pathlib.Path(folder))


if __name__ == "__main__":
    main()
