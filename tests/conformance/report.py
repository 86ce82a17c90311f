"""Turns the results of one run of the conformance suite into one line a scenario, and judges each of them.

Every scenario that the suite runs is required here, whether the suite scores it or not, and a warning counts as
a failure. Exit status 1 if a scenario fails without standing among the known failures, has no result, runs no
checks, or stands among the known failures and passes (then the entry is to be removed).
"""

import argparse
import json
import pathlib
import re
import sys

BAD = ("FAILURE", "WARNING")
# What the suite itself never runs to its end, against any server.
NEVER_RUN = {
    "tasks-status-notifications": "the suite skips it until it listens where the notifications arrive",
}
FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
ENTRY = re.compile(r"(?P<run>\S+)\s+(?P<entry>\S+)\s*#\s*(?P<why>.+)")
MAX_WHY = 160  # characters of an error message on a line; the whole stands in checks.json


def main():
    parser = argparse.ArgumentParser()
    for option in ("--way", "--run", "--suite-status"):
        parser.add_argument(option, required=True)
    for option in ("--results", "--listed", "--known-failures"):
        parser.add_argument(option, required=True, type=pathlib.Path)
    args = parser.parse_args()

    listed = listed_scenarios(args.listed.read_text())
    known = known_failures(args.known_failures.read_text(), args.run)
    results = dict(checks_by_scenario(args.results))
    lines = []
    for scenario in sorted(listed | results.keys()):
        verdict, why = judge(scenario, results.get(scenario), known)
        counted = [c for c in results.get(scenario, []) if c["status"] in ("SUCCESS", *BAD)]
        good = sum(c["status"] == "SUCCESS" for c in counted)
        name = f"{args.way} {args.run} {scenario} ({good}/{len(counted)} checks)"
        lines.append(f"{verdict} {name}" + (f": {why}" if why else ""))
    if not listed:
        lines.append(f"not ok {args.way} {args.run}: the suite lists no scenarios; see listed.txt")
    if args.suite_status != "0" and not any(c["status"] in BAD for checks in results.values() for c in checks):
        lines.append(f"not ok {args.way} {args.run}: exit status {args.suite_status}; see suite.log")
    print("\n".join(lines))
    return int(any(line.startswith("not ok") for line in lines))


def listed_scenarios(text):
    """The server's part of `conformance list`: those in its own section, and those marked further down."""
    _, _, rest = text.partition("Server scenarios")
    mine, _, further = rest.partition("\n\n")
    return {*re.findall(r"^\s+- (\S+)", mine, re.MULTILINE), *re.findall(r"- (\S+) \[server\]", further)}


def known_failures(text, run):
    """Entry (`scenario` or `scenario:check-id`) to the reason behind it, for one run."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    entries = [ENTRY.fullmatch(line.strip()) for line in lines]
    if not all(entries):
        sys.exit(f"not ok {run}: a line of known-failures.txt is no `run scenario  # why`")
    return {e["entry"]: e["why"] for e in entries if e["run"] == run}


def checks_by_scenario(folder):
    for file in folder.glob("*/checks.json"):
        if match := FOLDER.fullmatch(file.parent.name):
            yield match["scenario"], json.loads(file.read_text())


def judge(scenario, checks, known):
    """The verdict and, unless it is plainly good, why."""
    if not checks:
        return "not ok", "no result"
    bad = [c for c in checks if c["status"] in BAD]
    ran = any(c["status"] in ("SUCCESS", *BAD) for c in checks)
    if not ran and scenario in NEVER_RUN:
        return "skip", NEVER_RUN[scenario]
    failing = {scenario, *(f"{scenario}:{c['id']}" for c in bad)} if bad or not ran else set()
    entries = [e for e in known if e.partition(":")[0] == scenario]
    stale = [e for e in entries if e not in failing]
    if stale:
        return "not ok", f"passes now; remove {', '.join(stale)} from the known failures"
    if not failing:
        return "ok", ""
    if not ran:
        return ("skip", f"known: {known[scenario]}") if scenario in known else ("not ok", "the suite ran no checks")
    unknown = [c for c in bad if scenario not in known and f"{scenario}:{c['id']}" not in known]
    if not unknown:
        return "skip", f"known: {known[entries[0]]}"
    why = f"{unknown[0]['id']}: {unknown[0].get('errorMessage') or unknown[0]['status']}"
    return "not ok", " ".join(why.split())[:MAX_WHY]


if __name__ == "__main__":
    sys.exit(main())
