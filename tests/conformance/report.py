"""Turns the results of one conformance run into one line a scenario, and judges them against the baseline.

Exit status 1 if a required scenario fails without standing in the baseline, has no result, or stands in the
baseline and passes (then the entry is to be removed).
"""

import argparse
import json
import pathlib
import re
import sys

BAD = ("FAILURE", "WARNING")  # the suite too is strict about warnings once a baseline is given
FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
ENTRY = re.compile(r"\s*- (?P<entry>[^\s#]+)\s*(?:#\s*(?P<reason>.*))?")
MAX_WHY = 160  # characters of an error message on a line; the whole stands in checks.json


def main():
    parser = argparse.ArgumentParser()
    for option in ("--way", "--revision", "--suite-status"):
        parser.add_argument(option, required=True)
    for option in ("--results", "--baseline"):
        parser.add_argument(option, required=True, type=pathlib.Path)
    args = parser.parse_args()

    required = required_scenarios(args.results / "required.txt")
    excused = baseline(args.baseline)
    results = dict(checks_by_scenario(args.results))
    lines = []
    for scenario in sorted(required | results.keys()):
        verdict, why = judge(scenario, results.get(scenario), scenario in required, excused)
        counted = [c for c in results.get(scenario, []) if c["status"] in ("SUCCESS", *BAD)]
        good = sum(c["status"] == "SUCCESS" for c in counted)
        name = f"{args.way} {args.revision} {scenario} ({good}/{len(counted)} checks)"
        lines.append(f"{verdict} {name}" + (f": {why}" if why else ""))
    failed = any(line.startswith("not ok") for line in lines)
    if args.suite_status != "0" and not failed:
        lines.append(f"not ok {args.way} {args.revision} suite: exit status {args.suite_status}, see suite.log")
        failed = True
    print("\n".join(lines))
    return int(failed)


def required_scenarios(file):
    """The server's part of `conformance list --requirements`."""
    _, _, rest = file.read_text().partition("Server scenarios")
    mine, _, _ = rest.partition("\n\n")
    return set(re.findall(r"^\s+- (\S+)", mine, re.MULTILINE))


def baseline(file):
    """Entry (`scenario` or `scenario:check-id`) to the reason in the comment behind it."""
    entries = filter(None, map(ENTRY.fullmatch, file.read_text().splitlines()))
    return {e["entry"]: e["reason"] or "no reason given" for e in entries}


def checks_by_scenario(folder):
    for file in folder.glob("*/checks.json"):
        if match := FOLDER.fullmatch(file.parent.name):
            yield match["scenario"], json.loads(file.read_text())


def judge(scenario, checks, is_required, excused):
    """The verdict and, unless it is plainly good, why."""
    if not checks:
        return "not ok", "no result"
    bad = [c for c in checks if c["status"] in BAD]
    listed = [e for e in excused if e == scenario or e.startswith(scenario + ":")]
    failing = {scenario, *(f"{scenario}:{c['id']}" for c in bad)} if bad else set()
    stale = [e for e in listed if e not in failing]
    if stale:
        return "not ok", f"passes now; remove {', '.join(stale)} from the baseline"
    if all(c["status"] not in ("SUCCESS", *BAD) for c in checks):
        return "skip", "the suite did not run its checks"
    if not bad:
        return "ok", ""
    unlisted = [c for c in bad if scenario not in listed and f"{scenario}:{c['id']}" not in listed]
    if not unlisted:
        return "skip", f"in the baseline: {excused[listed[0]]}"
    why = f"{unlisted[0]['id']}: {unlisted[0].get('errorMessage') or unlisted[0]['status']}"
    why = " ".join(why.split())[:MAX_WHY]
    return ("not ok", why) if is_required else ("skip", f"fails, but is not required; {why}")


if __name__ == "__main__":
    sys.exit(main())
