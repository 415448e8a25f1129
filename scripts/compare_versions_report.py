"""Ratios of scripts/compare.sh --against from the JSON reports of kahuna-bench: this version divided by the earlier one, round by round."""

import argparse
import json
import os
import statistics
import sys

from machine import machine, machine_line

# (workload, workers, field, at least or at most, factor). Latencies may be as much worse as rates may be lower.
FLOORS = [
    ("set", 64, "rps", "at least", 0.97),
    ("set", 256, "rps", "at least", 0.97),
    ("get", 64, "rps", "at least", 0.97),
    ("get", 256, "rps", "at least", 0.97),
    ("mixed", 64, "rps", "at least", 0.97),
    ("set", 1, "p50Ms", "at most", 1 / 0.97),
    ("set", 1, "p99Ms", "at most", 1 / 0.97),
    ("get", 1, "p50Ms", "at most", 1 / 0.97),
    ("get", 1, "p99Ms", "at most", 1 / 0.97),
    ("unary", 64, "rps", "at least", 0.9),
    ("node", 0, "readyMs", "at most", 1.05),
    ("node", 0, "memoryKb", "at most", 1.05),
]
FIELDS = ("rps", "p50Ms", "p99Ms")


def read(directory):
    """(workload, workers) -> round -> version -> row."""
    points = {}
    for name in sorted(os.listdir(directory)):
        parts = name.removesuffix(".json").split("-")
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            row = json.load(file)
        key = ("node", 0) if parts[2] == "node" else (parts[2], int(parts[3]))
        points.setdefault(key, {}).setdefault(int(parts[0]), {})[parts[1]] = row if parts[2] == "node" else row["aggregate"]
    return points


def ratio(rounds, field):
    """The median of the rounds: what is compared was measured one right after the other, and machines change their speed from one minute to the next."""
    return statistics.median(versions["now"][field] / versions["before"][field] for versions in rounds.values())


def median(rounds, version, field):
    return statistics.median(versions[version][field] for versions in rounds.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True)
    parser.add_argument("--against", required=True)
    parser.add_argument("--filesystem", default="")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--warmup", type=int)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    points = read(arguments.results)
    host = machine(arguments.filesystem)
    print(machine_line(host))
    print(f"this version divided by {arguments.against}: medians of {max(len(rounds) for rounds in points.values())} rounds, {arguments.seconds} s each after {arguments.warmup} s")
    print(f"\n{'workload':<9} {'workers':>7}  {'field':<9} {'before':>12} {'now':>12} {'ratio':>7}")
    rows = []
    for (workload, workers), rounds in sorted(points.items()):
        for field in ("readyMs", "memoryKb") if workload == "node" else FIELDS:
            row = {"workload": workload, "workers": workers, "field": field, "before": median(rounds, "before", field), "now": median(rounds, "now", field), "ratio": ratio(rounds, field)}
            rows.append(row)
            print(f"{workload:<9} {workers or '':>7}  {field:<9} {row['before']:>12,.3f} {row['now']:>12,.3f} {row['ratio']:>7.2f}")
    print("\nfloors")
    floors = []
    for workload, workers, field, direction, factor in FLOORS:
        found = next((row for row in rows if (row["workload"], row["workers"], row["field"]) == (workload, workers, field)), None)
        if found:
            reached = found["ratio"] >= factor if direction == "at least" else found["ratio"] <= factor
            floors.append({**found, "direction": direction, "factor": factor, "ok": reached})
            what = f"{field} of {workload}{f' at {workers}' if workers else ''}, {direction} {factor:.2f}"
            print(f"  {what:<40} {found['ratio']:>7.2f}  {'ok' if reached else 'below'}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": host, "against": arguments.against, "points": rows, "floors": floors}, file, indent=2)
            file.write("\n")
    return 0


sys.exit(main())
