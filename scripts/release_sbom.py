"""Completes a bill of materials of CycloneDX for scripts/release.sh: adds the runtimes that a self-contained program
contains, and sets the time, so that the same commit gives the same file."""

import argparse
import datetime
import json


def runtimes(deps):
    """The runtime packs of a program's deps.json, as components."""
    for name in sorted(deps["libraries"]):
        if name.startswith("runtimepack."):
            package, version = name.removeprefix("runtimepack.").split("/")
            purl = f"pkg:nuget/{package}@{version}"
            yield {
                "type": "framework",
                "bom-ref": purl,
                "name": package,
                "version": version,
                "scope": "required",
                "licenses": [{"license": {"id": "MIT"}}],
                "purl": purl,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bill")
    parser.add_argument("--deps", help="deps.json of a self-contained program")
    parser.add_argument("--epoch", type=int, required=True, help="seconds since 1970")
    options = parser.parse_args()
    with open(options.bill, encoding="utf-8") as file:
        bill = json.load(file)
    if options.deps:
        with open(options.deps, encoding="utf-8") as file:
            added = list(runtimes(json.load(file)))
        if not added:
            parser.exit(1, f"release_sbom.py: {options.deps} names no runtime\n")
        bill["components"] += added
        root = bill["metadata"]["component"]["bom-ref"]
        for entry in bill["dependencies"]:
            if entry["ref"] == root:
                entry["dependsOn"] = entry.get("dependsOn", []) + [part["bom-ref"] for part in added]
    time = datetime.datetime.fromtimestamp(options.epoch, datetime.timezone.utc)
    bill["metadata"]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    with open(options.bill, "w", encoding="utf-8") as file:
        json.dump(bill, file, indent=2)
        file.write("\n")


main()
