#!/usr/bin/env python3
"""How ptvm script does as recordings grow: the same recording so many times over.

    tests/bench/growth.py PTVM REPEAT --recording DIR [--guest DIR] [--large GB] [--folder DIR]

REPEAT is build/tests/repeat_recording. The first table has processor time and greatest memory for 1,
4, 16 and 64 copies: time should grow with the bytes, memory should not. With --large a recording of
so many GB is made in --folder (and removed again), and the second table says how long it takes to
the first line, from a file that is not in memory, and to a time near its start and near its end,
before and after there is an index."""
import argparse
import contextlib
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

COPIES = (1, 4, 16, 64)
THREADS = (1, 2, 8)
MIB = 1 << 20


def run(command, limit=None):
    """Seconds, processor seconds and MiB of one run, its output thrown away."""
    start = time.monotonic()
    child = subprocess.Popen([*command, *(["--max-lines", str(limit)] if limit else [])],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


@contextlib.contextmanager
def repeated(args, copies):
    """A recording of so many copies beside what the first one has: its folder, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="ptvm-growth-", dir=args.folder) as name:
        folder = pathlib.Path(name)
        for path in args.recording.iterdir():
            if path.name.startswith("kcore_dir"):
                (folder / path.name).symlink_to(path.resolve())
        subprocess.run([args.repeat, args.recording / "data", folder / "data", str(copies)], check=True)
        yield folder


def forget(path):
    """Take a file out of the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def growth(args, ask):
    print(f"{'copies':>6} {'MiB':>6} {'-j':>3} {'cpu s':>8} {'each':>8} {'memory':>8}")
    for copies in COPIES:
        with repeated(args, copies) as folder:
            size = (folder / "data").stat().st_size / MIB
            for threads in THREADS:
                _, cpu, memory = run([*ask(folder), "-j", str(threads)])
                print(f"{copies:6d} {size:6.0f} {threads:3d} {cpu:8.2f} {cpu / copies:8.3f} "
                      f"{memory:5.0f} MiB", flush=True)


def ends(args, folder):
    """When the recording begins and ends, in seconds. There are many lines, and a child's greatest memory is never told
    as less than ours: so none is kept."""
    first, last = math.inf, 0
    with subprocess.Popen([args.ptvm, "script", "-i", folder, "--show-switch-events", "--itrace=e", "-F", "time"],
                          stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            match = re.match(r"\s*([\d.]+):", line)
            at = float(match[1]) if match else 0
            first, last = min(first, at or math.inf), max(last, at)
    if child.returncode:
        sys.exit(f"{child.args[0]}: exit status {child.returncode}")
    return first, last


def large(args, ask):
    copies = max(1, round(args.large * 1e9 / (args.recording / "data").stat().st_size))
    with repeated(args, copies) as folder:
        print(f"\n{(folder / 'data').stat().st_size / 1e9:.1f} GB, to the first line")
        for what in ("not in memory", "in memory"):
            if what.startswith("not"):
                forget(folder / "data")
            seconds, _, memory = run(ask(folder), 1)
            print(f"{what:36s} {seconds:8.2f} s {memory:5.0f} MiB", flush=True)
        first, last = ends(args, folder)
        (folder / "data.ptvm-index").unlink(missing_ok=True)
        for what, at in (("near the start, no index", 0.01), ("near the end, no index", 0.99),
                         ("near the end, index", 0.99), ("near the start, index", 0.01)):
            when = first + (last - first) * at
            seconds, _, memory = run([*ask(folder), f"--time={when:.9f},"], 1)
            print(f"{what:36s} {seconds:8.2f} s {memory:5.0f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ptvm", type=pathlib.Path)
    parser.add_argument("repeat", type=pathlib.Path)
    parser.add_argument("--recording", type=pathlib.Path, required=True)
    parser.add_argument("--guest", type=pathlib.Path)
    parser.add_argument("--large", type=float, metavar="GB")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/var/tmp"))
    args = parser.parse_args()
    more = ["--itrace=i0nse", "-F", "ip,sym,symoff,dso,time"]
    if args.guest:
        more += [f"--guestkallsyms={args.guest / 'kallsyms'}",
                 f"--guestmodules={args.guest / 'modules'}"]

    def ask(folder):
        return [args.ptvm, "script", "-i", folder, *more]

    growth(args, ask)
    if args.large:
        large(args, ask)


if __name__ == "__main__":
    main()
