#!/usr/bin/env python3
"""correlate.py PTVM SIM_RECORDING: `ptvm correlate` on recordings of simulated machines; prints TAP."""
import fcntl
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time

import tap

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PTVM, SIM = sys.argv[1:3]


def correlate(*args, **more):
    return subprocess.run([PTVM, "correlate", *args], capture_output=True, text=True, timeout=60, check=False, **more)


def equal(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def recording(where, kind="plain", name="data"):
    """A recording in a directory of its own: its data file and the true offsets."""
    data = where / name
    made = subprocess.run([SIM, data, kind], capture_output=True, text=True, check=True)
    return data, [int(line, 16) for line in made.stdout.split()]


def offsets(run):
    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("VMCS: ")]
    return [int(line[4], 16) for line in lines]


def near(found, expected):
    assert len(found) == len(expected), f"{found} offsets, expected {expected}"
    for one, other in zip(found, expected):
        assert abs(one - other) <= 2, f"offset {one:#x}, expected {other:#x}"


def test_a_dry_run_says_the_offset_and_changes_nothing(where):
    data, truth = recording(where)
    before = data.read_bytes()
    run = correlate("-i", where, "--dry-run")
    equal((run.returncode, run.stderr), (0, ""))
    near(offsets(run), truth)
    equal(data.read_bytes(), before)
    equal(os.listdir(where), ["data"])


def test_a_change_is_two_lines_in_order_of_time(where):
    data, truth = recording(where, "changed")
    near(offsets(correlate("-i", data, "--dry-run")), truth)


def test_json_says_the_same(where):
    _, truth = recording(where, "changed")
    run = correlate("-i", where, "--dry-run", "--json")
    found = json.loads(run.stdout)
    equal((run.returncode, found["complete"], found["nothing_to_do"], len(found["vmcs"])), (0, True, False, 1))
    segments = found["vmcs"][0]["segments"]
    near([int(segment["offset"], 16) for segment in segments], truth)
    equal(segments[0]["to_ns"], segments[1]["from_ns"])


def test_applied_then_nothing_to_do_then_undone(where):
    data, _ = recording(where)
    before = data.read_bytes()
    run = correlate("-i", where)
    equal(run.returncode, 0)
    after = data.read_bytes()
    assert after != before and len(after) == len(before)
    near(offsets(correlate("-i", where, "--dry-run")), [0])
    run = correlate("-i", where)
    equal((run.returncode, data.read_bytes()), (0, after))
    assert "nothing to do" in run.stderr, run.stderr
    run = correlate("-i", where, "--undo")
    equal((run.returncode, data.read_bytes(), os.listdir(where)), (0, before, ["data"]))
    equal(correlate("-i", where, "--undo").returncode, 1)


def test_undone_where_the_metadata_is_damaged(where):
    data, _ = recording(where)
    before = data.read_bytes()
    equal(correlate("-i", where).returncode, 0)
    pathlib.Path(f"{data}.ptvm.json").write_text('{"machines":[')
    equal(correlate("-i", where, "--dry-run").returncode, 1)
    run = correlate("-i", where, "--undo")
    equal((run.returncode, data.read_bytes()), (0, before))


def refused_while_locked(where, data):
    with open(data, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for args in (["--dry-run"], ["-o", f"{where}-copy"], [], ["--undo"]):
            run = correlate("-i", where, *args)
            equal((run.returncode, run.stdout, run.stderr),
                  (1, "", f"ptvm correlate: {data}: another ptvm (pid {os.getpid()}) is at work\n"))


def test_a_run_beside_one_that_just_began_says_so(where):
    data, _ = recording(where)
    before = data.read_bytes()
    refused_while_locked(where, data)
    equal((data.read_bytes(), os.listdir(where)), (before, ["data"]))


def test_a_run_amidst_another_says_so(where):
    data, _ = recording(where)
    equal(correlate("-i", where).returncode, 0)
    journal = pathlib.Path(f"{data}.ptvm-undo")
    journal.write_bytes(journal.read_bytes()[:12] + b"\1" + journal.read_bytes()[13:])
    before = data.read_bytes()
    refused_while_locked(where, data)
    equal((data.read_bytes(), sorted(os.listdir(where))), (before, ["data", "data.ptvm-undo"]))
    run = correlate("-i", where, "--dry-run")
    equal((run.returncode, run.stderr), (1, f"ptvm correlate: {where}: an earlier run was interrupted (--undo it first)\n"))


def test_a_single_file_has_its_journal_beside_it(where):
    data, _ = recording(where, name="perf.data.kvm")
    before = data.read_bytes()
    equal(correlate("-i", data).returncode, 0)
    equal(sorted(os.listdir(where)), ["perf.data.kvm", "perf.data.kvm.ptvm-undo"])
    equal(correlate("-i", data, "--undo").returncode, 0)
    equal(data.read_bytes(), before)


def test_a_copy_is_corrected_instead(where):
    data, _ = recording(where)
    (where / "kcore_dir").mkdir()
    (where / "kcore_dir/modules").write_text("kvm 1 0 - Live 0x0\n")
    before = data.read_bytes()
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = pathlib.Path(elsewhere) / "copy"
        equal(correlate("-i", where, "-o", copy).returncode, 0)
        equal(data.read_bytes(), before)
        near(offsets(correlate("-i", copy, "--dry-run")), [0])
        equal((copy / "kcore_dir/modules").read_text(), "kvm 1 0 - Live 0x0\n")
        equal(correlate("-i", where, "-o", copy).returncode, 1)
        equal(correlate("-i", where).returncode, 0)
        equal(data.read_bytes(), (copy / "data").read_bytes())
        equal(correlate("-i", copy, "--undo").returncode, 0)
        equal((copy / "data").read_bytes(), before)


def test_where_the_copy_shall_be_is_looked_at_first(where):
    recording(where)
    run = correlate("-i", where, "-o", where)
    equal((run.returncode, run.stdout, run.stderr), (1, "", f"ptvm correlate: {where}: is there already\n"))
    run = correlate("-i", where, "-o", f"{where}/no/copy")
    equal((run.returncode, run.stdout, run.stderr),
          (1, "", f"ptvm correlate: {where}/no/copy: No such file or directory\n"))


def test_the_copy_of_a_file_has_what_lies_beside_it(where):
    data, _ = recording(where, name="perf.data.kvm")
    before = data.read_bytes()
    pathlib.Path(f"{data}.ptvm.json").write_text("{}")
    equal(correlate("-i", data).returncode, 0)
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = pathlib.Path(elsewhere) / "copy"
        equal(correlate("-i", data, "-o", copy).returncode, 0)
        equal(sorted(os.listdir(copy)), ["data", "data.ptvm-undo", "data.ptvm.json"])
        equal(correlate("-i", copy, "--undo").returncode, 0)
        equal((copy / "data").read_bytes(), before)


def test_a_copy_has_no_more_than_the_recording(where):
    recording(where)
    inside = where / "kcore_dir"
    inside.mkdir(mode=0o700)
    (inside / "kcore").symlink_to("../data")
    os.mkfifo(inside / "pipe")
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = pathlib.Path(elsewhere) / "copy"
        equal(correlate("-i", where, "-o", copy).returncode, 0)
        equal(os.listdir(copy / "kcore_dir"), ["kcore"])
        equal(stat.S_IMODE((copy / "kcore_dir").stat().st_mode), 0o700)
        (inside / "up").symlink_to("..")
        run = correlate("-i", where, "-o", f"{elsewhere}/other")
        equal((run.returncode, run.stderr), (1, "ptvm correlate: up: a link to a directory\n"))
        equal(os.listdir(elsewhere), ["copy"])


def test_a_pipe_that_does_not_end_can_be_interrupted(where):
    data, _ = recording(where)
    with subprocess.Popen([PTVM, "correlate", "-i", "-", "--dry-run"], stdin=subprocess.PIPE) as run:
        run.stdin.write(data.read_bytes() + bytes(1 << 20))  # more than a pipe holds: it reads by now
        run.stdin.flush()
        run.send_signal(signal.SIGINT)
        equal(run.wait(timeout=30), -signal.SIGINT)


def test_offset_zero_is_nothing_to_do(where):
    data, _ = recording(where, "none")
    before = data.read_bytes()
    run = correlate("-i", where)
    equal((run.returncode, data.read_bytes()), (0, before))
    near(offsets(run), [0])
    assert "nothing to do" in run.stderr, run.stderr


def test_no_guest_is_nothing_to_do(where):
    run = correlate("-i", PROJECT / "examples/vm-small", "--dry-run")
    equal((run.returncode, run.stdout), (0, ""))
    assert "no time stamp of a guest" in run.stderr, run.stderr


def test_without_evidence_the_status_is_3(where):
    data, truth = recording(where, "no-tma")
    run = correlate("-i", where, "--dry-run")
    equal((run.returncode, run.stdout), (3, ""))
    assert "no offset" in run.stderr, run.stderr
    vmcs = run.stderr.split("VMCS ")[1].split(":")[0]
    run = correlate("-i", where, f"--tsc-offset={truth[0]:#x}:{vmcs}", "--dry-run")
    equal((run.returncode, offsets(run)), (0, truth))


def test_what_is_given_is_used(where):
    _, truth = recording(where)
    run = correlate("-i", where, "--tsc-offset=7", "--dry-run")
    equal(offsets(run), [7])
    assert " given " in run.stdout, run.stdout
    run = correlate("-i", where, "--tsc-offset=7:0x99", "--dry-run")
    equal((run.returncode, run.stderr),
          (0, "ptvm correlate: VMCS 0x99: --tsc-offset names it, the trace has no time stamp of it\n"))


def test_a_broken_json_is_said(where):
    recording(where)
    (where / "data.ptvm.json").write_text("{")
    run = correlate("-i", where, "--dry-run")
    equal(run.returncode, 1)
    assert "data.ptvm.json" in run.stderr, run.stderr


def test_files_that_are_not_ours_to_change_stay(where):
    data, _ = recording(where)
    before = data.read_bytes()
    data.chmod(stat.S_IRUSR)
    run = correlate("-i", where)
    equal((run.returncode, data.read_bytes(), os.listdir(where)), (1, before, ["data"]))
    if os.geteuid():
        raise tap.Skip("not root: no other user")
    data.chmod(0o600)
    os.chown(data, 65534, 65534)
    run = correlate("-i", where)
    equal((run.returncode, data.read_bytes(), os.listdir(where)), (1, before, ["data"]))
    assert "not owned" in run.stderr, run.stderr


def test_a_pipe_with_a_name_is_not_changed(where):
    data, truth = recording(where)
    pipe = where / "pipe"
    os.mkfifo(pipe)
    for args, status in ((["--dry-run"], 0), ([], 1)):
        with subprocess.Popen(["cp", data, pipe]) as writer:
            run = correlate("-i", pipe, *args)
        equal((run.returncode, writer.returncode, sorted(os.listdir(where))), (status, 0, ["data", "pipe"]))
        near(offsets(run), truth)
    equal(run.stderr, f"ptvm correlate: {pipe}: no regular file, cannot be changed (use --dry-run)\n")


def test_a_foreign_journal_is_not_believed(where):
    data, _ = recording(where)
    before = data.read_bytes()
    (where / "data.ptvm-undo").write_bytes(b"x" * 100)
    for args in ([], ["--undo"]):
        equal((correlate("-i", where, *args).returncode, data.read_bytes()), (1, before))


def test_killed_at_any_time_the_next_run_completes(where):
    data, _ = recording(where)
    before = data.read_bytes()
    equal(correlate("-i", where).returncode, 0)
    after = data.read_bytes()
    equal(correlate("-i", where, "--undo").returncode, 0)
    for kind in (signal.SIGKILL, signal.SIGINT):
        for tick in range(12):
            with subprocess.Popen([PTVM, "correlate", "-i", where], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as run:
                time.sleep(tick / 2000)
                run.send_signal(kind)
            if kind == signal.SIGINT and run.returncode:
                equal((data.read_bytes(), os.listdir(where)), (before, ["data"]))
            equal((correlate("-i", where).returncode, data.read_bytes()), (0, after))
            equal((correlate("-i", where, "--undo").returncode, data.read_bytes()), (0, before))


def test_mistakes_get_one_sentence(where):
    for args, message in ((["--tsc-offset=x"], "--tsc-offset takes OFFSET[:VMCS,...], as 0xfffffff7e1d98d60:0x2664e, not 'x'"),
                          (["--undo", "--dry-run"], "--undo goes with -i and -f only"),
                          (["-i", "-"], "standard input cannot be corrected: only --dry-run reads it"),
                          (["--undo", "--json"], "--undo goes with -i and -f only"),
                          (["--dry-run", "-o", "x"], "--dry-run and -o exclude each other"),
                          (["file"], "unexpected argument: file; name a file with -i, or see 'ptvm correlate --help'")):
        run = correlate(*args)
        equal((run.returncode, run.stdout, run.stderr), (2, "", f"ptvm correlate: {message}\n"))


def test_stock_perf_takes_the_corrected_file(where):
    tap.need("perf")
    data, truth = recording(where)
    ask = ["perf", "inject", "-i", data, "--vm-time-correlation=dry-run"]
    run = subprocess.run(ask, capture_output=True, text=True, check=False)
    if "TSC Offset" not in run.stdout + run.stderr:
        raise tap.Skip("perf finds no offset here")
    equal(correlate("-i", data).returncode, 0)
    run = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert f"{truth[0] >> 16:x}" not in run.stdout + run.stderr, run.stdout


def main():
    tap.run([(name, tap.in_a_directory(test)) for name, test in tap.tests_of(globals())])


if __name__ == "__main__":
    main()
