"""Is an SBOM valid CycloneDX, and is everything in it that is in the program? sbom.py FILE CARGO_LOCK

Runs with the Python that has cyclonedx-python-lib (tests/lib.sh: need_venv sbom).
"""

import json
import pathlib
import sys
import tomllib

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# Things that every gatewren is made of, from both sides of the house; and one that only tests and builds use.
CONTAINED = {"gatewren", "tokio", "rustls", "ring", "rusqlite", "sqlite", "musl", "mimalloc", "rust-std"}
NOT_CONTAINED = {"cc", "serde_derive", "autocfg"}


def main(file, lock):
    text = pathlib.Path(file).read_text()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert error is None, error
    bom = json.loads(text)
    parts = [bom["metadata"]["component"], *bom["components"]]
    names = {part["name"] for part in parts}
    assert names >= CONTAINED, f"missing: {CONTAINED - names}"
    assert not names & NOT_CONTAINED, f"is not in the program: {names & NOT_CONTAINED}"
    locked = {(p["name"], p["version"]) for p in tomllib.loads(pathlib.Path(lock).read_text())["package"]}
    crates = {(p["name"], p["version"]) for p in parts if p["purl"].startswith("pkg:cargo/")}
    assert crates <= locked, f"not in Cargo.lock: {crates - locked}"
    unknown = [p["name"] for p in parts if not p.get("licenses")]
    assert not unknown, f"without a licence: {unknown}"
    reached, waiting = set(), [parts[0]["bom-ref"]]
    edges = {d["ref"]: d["dependsOn"] for d in bom["dependencies"]}
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += edges.get(ref, [])
    assert reached == {p["bom-ref"] for p in parts}, "the graph does not hold together"


if __name__ == "__main__":
    main(*sys.argv[1:])
