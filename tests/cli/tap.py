"""Runs tests and prints how they went, as TAP."""
import shutil
import subprocess
import sys


def run(tests, *arguments):
    """Each is called with the arguments; one that is named after perf is skipped where that is not installed."""
    print(f"1..{len(tests)}")
    good = True
    for number, test in enumerate(tests, 1):
        name = test.__name__
        if name.startswith("test_perf_") and not shutil.which("perf"):
            print(f"ok {number} - {name} # SKIP no perf")
            continue
        try:
            test(*arguments)
            print(f"ok {number} - {name}")
        except (AssertionError, subprocess.SubprocessError) as reason:
            print(f"not ok {number} - {name}\n# {str(reason)[:900]}")
            good = False
    sys.exit(0 if good else 1)
