#!/usr/bin/env python3
"""record.py PTVM RECORD_HERE: recordings of what this machine's kernel tells beside a trace; prints TAP.

Skips, with a word, where the kernel lets us record nothing, and where perf is absent."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tap

PTVM, RECORD = sys.argv[1:3]
LIMIT = 30


def record(where, *options, **more):
    return subprocess.run([RECORD, "-m", "64K,64K", "-o", where / "rec", *options], capture_output=True, text=True,
                          timeout=LIMIT, **more)


def switches(program, recording, *options):
    run = subprocess.run([program, "script", "-i", recording, "--show-switch-events", *options], capture_output=True,
                         text=True, timeout=LIMIT)
    return [line for line in run.stdout.splitlines() if "SWITCH" in line]


def perf_reads(recording, *options):
    return not shutil.which("perf") or switches("perf", recording, *options)


def started(where, *options, **more):
    """A recorder that is past all that it does before it traces."""
    recorder = subprocess.Popen([RECORD, "-m", "64K,64K", "-o", where / "rec", *options], text=True, **more)
    while not (where / "rec/data.ptvm.json").exists():
        assert recorder.poll() is None, "the recorder ended"
        time.sleep(0.01)
    return recorder


class Sleeper:
    """A process to record."""

    def __enter__(self):
        self.process = subprocess.Popen(["sleep", "100"])
        return str(self.process.pid)

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()


def test_a_command_is_recorded(where):
    with Sleeper() as tid:
        run = record(where, "-t", tid, "--", "sh", "-c", "sleep 0.2; exit 3")
    assert run.returncode == 3, run.stderr
    assert perf_reads(where / "rec") and switches(PTVM, where / "rec")
    assert json.loads((where / "rec/data.ptvm.json").read_text())["version"] == 1


def test_files_are_private(where):
    record(where, "-t", str(os.getpid()), "--duration", "50ms")
    assert (where / "rec").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (where / "rec").iterdir())


def test_an_older_recording_is_kept(where):
    for _ in range(3):
        assert record(where, "-t", str(os.getpid()), "--duration", "50ms").returncode == 0
    assert sorted(path.name for path in where.iterdir()) == ["rec", "rec.old"]


def test_a_recording_in_the_making_is_left_alone(where):
    with Sleeper() as tid:
        recorder = started(where, "-t", tid, stderr=subprocess.DEVNULL)
        second = record(where, "-t", tid, "--duration", "50ms")
        repair = subprocess.run([PTVM, "record", "--repair", where / "rec"], capture_output=True, text=True, timeout=LIMIT)
        recorder.terminate()
        assert recorder.wait(timeout=LIMIT) == 0
    assert second.returncode == 1 and "is in use by another ptvm record: give another name with -o" in second.stderr, second
    assert repair.returncode == 1 and "rec/data: another ptvm is at work" in repair.stderr, repair
    assert [path.name for path in where.iterdir()] == ["rec"]
    assert record(where, "-t", str(os.getpid()), "--duration", "50ms").returncode == 0


def test_what_is_mapped_on_other_cpus_may_run_here(where):
    if len(os.sched_getaffinity(0)) < 2:
        return
    cpu, other = map(str, sorted(os.sched_getaffinity(0))[:2])
    shutil.copy(shutil.which("sleep"), where / "nap")  # which nobody else runs
    for event, expected in [("intel_pt//", True), ("intel_pt//k", False)]:
        run = record(where, "-C", cpu, "-e", event, "--", "taskset", "-c", other, "sh", "-c", f"exec {where}/nap 0.2")
        assert run.returncode == 0, run.stderr
        for program in [PTVM, "perf"] if shutil.which("perf") else [PTVM]:
            shown = subprocess.run([program, "script", "-i", where / "rec", "--show-mmap-events", "--show-task-events"],
                                   capture_output=True, text=True, timeout=LIMIT).stdout
            assert ("/nap" in shown) == expected, f"{program} {event}: {shown}"


def test_refusals_leave_nothing_behind(where):
    with Sleeper() as tid:
        assert record(where, "-t", tid, "--", "no-such-command").returncode == 1
    assert record(where, "-t", "2147483647").returncode == 1
    assert record(where, "-t", str(os.getpid()), "-e", "intel_pt/nonsense/").returncode == 1
    assert not list(where.iterdir())


def test_it_ends_with_what_it_records(where):
    with Sleeper() as tid:
        recorder = started(where, "-t", tid, stderr=subprocess.PIPE)
    assert "have ended" in recorder.communicate(timeout=LIMIT)[1]
    assert recorder.returncode == 0


def test_it_ends_at_its_limit(where):
    run = record(where, "-a", "--max-size", "200K", "--duration", "20")
    assert run.returncode == 0
    assert "--max-size" in run.stderr or (where / "rec/data").stat().st_size < 200 << 10


def test_signals_end_it(where):
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        recorder = started(where, "-t", str(os.getpid()), stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        recorder.send_signal(number)
        assert recorder.wait(timeout=LIMIT) == 0
        assert perf_reads(where / "rec")
        shutil.rmtree(where / "rec")


def test_nohup_keeps_it_going(where):
    recorder = started(where, "-t", str(os.getpid()), stderr=subprocess.DEVNULL,
                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    time.sleep(0.3)
    recorder.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert recorder.poll() is None, "it has ended"
    recorder.terminate()
    assert recorder.wait(timeout=LIMIT) == 0


def test_what_is_left_of_a_killed_one_is_read_and_repaired(where):
    recorder = started(where, "-a", stderr=subprocess.DEVNULL)
    before = (where / "rec/data").stat().st_size
    while (where / "rec/data").stat().st_size < before + (100 << 10):
        time.sleep(0.05)
    recorder.kill()
    recorder.wait()
    before = switches(PTVM, where / "rec")
    assert before
    for _ in range(2):
        subprocess.run([PTVM, "record", "--repair", where / "rec"], check=True, timeout=LIMIT)
        assert perf_reads(where / "rec") and perf_reads(where / "rec", "-C", "0")
        assert switches(PTVM, where / "rec") == before
    assert not (where / "rec/data.ptvm-features").exists()


def test_samples_need_a_trace_to_lead_them(where):
    """Which the event that stands for it here is not: the kernel refuses."""
    run = record(where, "-t", str(os.getpid()), "--aux-sample", "--duration", "50ms")
    assert run.returncode == 1 and "samples of trace of thread" in run.stderr, run.stderr
    assert not list(where.iterdir())


def test_samples_that_cannot_be_are_refused(where):
    for options, word in [(["--aux-sample=61K"], "2K to 60K"), (["--aux-sample=1K"], "2K to 60K"),
                          (["--aux-sample=4Kx"], "2K to 60K"), (["--aux-sample", "-S"], "leave -S out"),
                          (["--aux-sample=8K", "-m", ",4K"], "does not fit")]:
        run = subprocess.run([PTVM, "record", "-t", "1", "-o", where / "rec", *options], capture_output=True, text=True)
        assert run.returncode == 2 and word in run.stderr, run.stderr


def test_commands_are_carried_out(where):
    fifos = [where / "control", where / "ack"]
    for fifo in fifos:
        os.mkfifo(fifo)
    recorder = subprocess.Popen([RECORD, "-m", "64K,64K", "-o", where / "rec", "-t", str(os.getpid()), "-S4K", "-D", "-1",
                                 "--control", f"fifo:{fifos[0]},{fifos[1]}"], stderr=subprocess.PIPE, text=True)
    control, ack = (os.open(fifo, os.O_RDWR) for fifo in fifos)
    for word in ["ping", "enable", "nonsense", "snapshot", "disable", "stop"]:
        os.write(control, f"{word}\n".encode())
        assert word == "nonsense" or os.read(ack, 64) == b"ack\n", word
    errors = recorder.communicate(timeout=LIMIT)[1]
    assert recorder.returncode == 0 and "no such command: 'nonsense'" in errors and "1 snapshot" in errors, errors


def main():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started us may ignore it
    with tempfile.TemporaryDirectory() as trees:
        # Where the recorders' made-up machines are, which those that are killed leave behind.
        os.environ["TMPDIR"] = trees
        with tempfile.TemporaryDirectory() as where:
            probe = record(pathlib.Path(where), "-t", str(os.getpid()), "--duration", "50ms")
        if probe.returncode:
            tap.skip_all(probe.stderr.strip())
        tap.run([(name, tap.in_a_directory(test)) for name, test in tap.tests_of(globals())])


if __name__ == "__main__":
    main()
