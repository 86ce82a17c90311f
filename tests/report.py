#!/usr/bin/env python3
"""Reads the logs that tests/run leaves in target/test-results, and prints what came of the parts.

    report.py --part NAME RESULTS          one part that has ended: its counts, and what failed
    report.py --progress RESULTS           one line: what runs, and how far each part is
    report.py --summary RESULTS PART...    failures, skips, the slowest tests and the table; writes summary.json

A part's NAME.log has lines "ok ...", "not ok ..." and "skip ...", or those of a Rust test program. NAME.times has the
seconds before each such line, NAME.status the exit status and the seconds of the part. Exit status 1 if anything failed.
"""

import json
import pathlib
import re
import sys

SLOWEST = 10
LINES_OF_A_PANIC = 60  # of a part's log; the rest is in the log
RUST_RESULT = re.compile(r"^test result: [^.]*\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.M)
RUST_TEST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (\w+).*?<([\d.]+)s>$", re.M)
RUST_FAILURE = re.compile(r"^test \S+(?: - should panic)? \.\.\. FAILED.*$", re.M)
RUST_DONE = re.compile(r"^test \S+.* \.\.\. (?:ok|FAILED)", re.M)
RUST_SLOW = re.compile(r"^test (\S+) has been running for over", re.M)
PANIC = re.compile(r"^thread '.*panicked at (?:.*\n){1,6}", re.M)


class Part:
    """What the files of one part say."""

    def __init__(self, results, name):
        self.name = name
        self.log = results / f"{name}.log"
        self.text = self.log.read_text(errors="replace") if self.log.exists() else ""
        status = results / f"{name}.status"
        self.ended = status.exists()
        self.status, self.seconds = map(int, status.read_text().split()) if self.ended else (1, 0)
        lines = self.text.splitlines()
        self.failures = [line for line in lines if line.startswith("not ok ")]
        self.failures += [match.group() for match in RUST_FAILURE.finditer(self.text)]
        self.skips = [line for line in lines if line.startswith("skip ")]
        self.count(lines)
        self.times = [(float(seconds), f"{name}: {test}") for test, _, seconds in RUST_TEST.findall(self.text)]
        times = results / f"{name}.times"
        for line in times.read_text(errors="replace").splitlines() if times.exists() else []:
            seconds, what = line.split("\t", 1)
            self.times.append((float(seconds), f"{name}: {what.removeprefix('not ').removeprefix('ok ')}"))

    def count(self, lines):
        """A Rust test that skips itself is among the passed ones; its line `skip test ...` takes it out again. Tests
        that are ignored belong to another part."""
        rust = [tuple(map(int, found)) for found in RUST_RESULT.findall(self.text)]
        self_skipped = sum(line.startswith("skip test ") for line in lines)
        passed = sum(line.startswith("ok ") and not line.startswith("ok <") for line in lines)
        self.passed = passed + sum(found[0] for found in rust) - self_skipped
        self.failed = sum(line.startswith("not ok ") for line in lines) + sum(found[1] for found in rust)
        self.skipped = len(self.skips)
        nothing = self.passed + self.failed + self.skipped == 0
        # A part that ended badly without naming a failure, or that did nothing at all, has failed.
        if (self.status != 0 and self.failed == 0) or nothing:
            why = self.why_it_ended()
            self.failures.append(f"not ok {self.name}: {why}, {self.passed} passed; see {self.log}")
            self.failed += 1

    def why_it_ended(self):
        """With the Rust tests that had not ended when the part reached its limit."""
        if self.status not in (124, 137):
            return f"exit status {self.status}"
        done = {name for name, _, _ in RUST_TEST.findall(self.text)}
        left = [name for name in RUST_SLOW.findall(self.text) if name not in done]
        return "it reached its time limit" + (f" while {' and '.join(left)} ran" if left else "")

    def print_failures(self):
        for line in self.failures:
            print(line)
        if self.failures:
            panics = "".join(PANIC.findall(self.text)).splitlines()
            print("\n".join(panics[:LINES_OF_A_PANIC]))
            if not panics:
                print("\n".join(self.text.splitlines()[-15:]))

    def row(self):
        return f"{self.name:18} {self.passed:7} {self.failed:7} {self.skipped:8} {self.seconds:6} s"


def print_progress(results):
    running = []
    for file in sorted(results.glob("*.pid")):
        part = Part(results, file.stem)
        if not part.ended:
            done = len(RUST_DONE.findall(part.text)) or len(re.findall(r"^(?:not )?ok |^skip ", part.text, re.M))
            running.append(f"{part.name} ({done} done)")
    print(f"run: running: {', '.join(running)}", flush=True)


def print_summary(results, names):
    parts = [Part(results, name) for name in names]
    if any(part.failures for part in parts):
        print("\nFailed:\n")
    for part in parts:
        part.print_failures()
    if any(part.skips for part in parts):
        print("\nSkipped:\n")
    for part in parts:
        for line in part.skips:
            print(line)
    slowest = sorted((time for part in parts for time in part.times), reverse=True)[:SLOWEST]
    print(f"\nThe {len(slowest)} slowest tests:\n")
    for seconds, what in slowest:
        print(f"{seconds:7.1f} s  {what[:120]}")
    print(f"\n{'part':18} {'passed':>7} {'failed':>7} {'skipped':>8} {'time':>8}")
    for part in parts:
        print(part.row())
    passed, failed, skipped = (sum(getattr(part, key) for part in parts) for key in ("passed", "failed", "skipped"))
    table = [{key: getattr(part, key) for key in ("name", "passed", "failed", "skipped", "seconds", "failures", "skips")}
             for part in parts]
    tests = [{"test": what, "seconds": seconds} for part in parts for seconds, what in part.times]
    summary = {"passed": passed, "failed": failed, "skipped": skipped, "parts": table, "tests": tests}
    (results / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


def main():
    mode, *rest = sys.argv[1:]
    if mode == "--part":
        part = Part(pathlib.Path(rest[1]), rest[0])
        counts = f"{part.passed} passed, {part.failed} failed, {part.skipped} skipped, {part.seconds} s"
        print(f"== {part.name}: {counts}", flush=True)
        part.print_failures()
        return False
    if mode == "--progress":
        return print_progress(pathlib.Path(rest[0]))
    return print_summary(pathlib.Path(rest[0]), rest[1:])


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
