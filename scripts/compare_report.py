"""Medians, spread and ratios of scripts/compare.sh from the JSON reports of kahuna-bench."""

import argparse
import json
import os
import statistics
import sys

from machine import machine, machine_line

# What Kahuna must reach against a peer on the same machine in the same run:
# (workload, workers, peer, field, at least or at most, factor).
FLOORS = [
    ("set", 64, "etcd", "rps", "at least", 6.0),
    ("set", 256, "etcd", "rps", "at least", 10.0),
    ("get", 64, "etcd", "rps", "at least", 12.0),
    ("get", 256, "etcd", "rps", "at least", 12.0),
    ("set", 256, "redis", "rps", "at least", 1.0),
    ("set", 64, "etcd", "p99Ms", "at most", 1.0),
    ("set", 1, "etcd", "p50Ms", "at most", 0.8),
]
SYSTEMS = ["kahuna", "kahuna_ephemeral", "kahuna_standalone", "etcd", "redis", "redis_pipelined"]

# Floors of ours: a point, what it is compared with (nothing: requests per second), the field, and
# by how much.
OWN_FLOORS = [
    (("set", 64, "kahuna_ephemeral"), ("set", 64, "kahuna"), "rps", "at least", 1.2),
    (("set", 256, "kahuna_ephemeral"), ("set", 256, "kahuna"), "rps", "at least", 1.0),
    (("sequence", 64, "kahuna"), ("set", 64, "kahuna"), "rps", "at least", 0.5),
    (("lock", 64, "kahuna"), ("set", 64, "kahuna"), "rps", "at least", 0.35),
    (("lock", 256, "kahuna"), ("set", 256, "kahuna"), "rps", "at least", 0.35),
    (("lock", 64, "kahuna_ephemeral"), ("set", 64, "kahuna_ephemeral"), "rps", "at least", 0.35),
    (("lock", 256, "kahuna_ephemeral"), ("set", 256, "kahuna_ephemeral"), "rps", "at least", 0.35),
    (("handover", 1000, "kahuna"), ("set", 1, "kahuna"), "p50Ms", "at most", 2.0),
    (("mixed", 64, "kahuna_standalone"), None, "rps", "at least", 248_010),
]


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["aggregate"]


def faults(row, workload):
    # A lock that somebody else has is no fault.
    return row["errors"] + row["timeouts"] + (row["misses"] if workload not in ("lock", "handover") else 0)


def print_one(path, round_number, system, workload, workers):
    row = read(path)
    note = f"  {faults(row, workload)} errors, timeouts or misses" if faults(row, workload) else ""
    print(f"{round_number:<6} {system:<15} {workload:<9} {workers:>8} {row['rps']:>12,.0f} {row['p99Ms']:>10.2f}{note}")


def collect(directory):
    """(workload, workers, system) -> the rows of all rounds."""
    points = {}
    for name in sorted(os.listdir(directory)):
        _, system, workload, workers = name.removesuffix(".json").split("-")
        points.setdefault((workload, int(workers), system), []).append(read(os.path.join(directory, name)))
    return points


def summarise(points):
    summary = {}
    for (workload, workers, system), rows in points.items():
        rates = [row["rps"] for row in rows]
        summary[(workload, workers, system)] = {
            "workload": workload,
            "workers": workers,
            "system": system,
            "rounds": len(rows),
            "rps": statistics.median(rates),
            "rpsMin": min(rates),
            "rpsMax": max(rates),
            "p50Ms": statistics.median(row["p50Ms"] for row in rows),
            "p99Ms": statistics.median(row["p99Ms"] for row in rows),
            "faults": sum(faults(row, workload) for row in rows),
        }
    order = {"set": 0, "get": 1, "mixed": 2, "sequence": 3, "lock": 4, "handover": 5}
    keys = sorted(summary, key=lambda k: (order.get(k[0], 9), k[1], SYSTEMS.index(k[2])))
    return {key: summary[key] for key in keys}


def ratios(summary):
    for (workload, workers, system), point in summary.items():
        ours = summary.get((workload, workers, "kahuna"))
        if not system.startswith("kahuna") and ours and point["rps"] > 0:
            yield {
                "workload": workload,
                "workers": workers,
                "peer": system,
                "rps": ours["rps"] / point["rps"],
                "p50Ms": ours["p50Ms"] / point["p50Ms"] if point["p50Ms"] else None,
                "p99Ms": ours["p99Ms"] / point["p99Ms"] if point["p99Ms"] else None,
            }


def check_floors(ratio_rows):
    by_key = {(row["workload"], row["workers"], row["peer"]): row for row in ratio_rows}
    for workload, workers, peer, field, direction, factor in FLOORS:
        row = by_key.get((workload, workers, peer))
        if row is None or row[field] is None:
            continue
        reached = row[field] >= factor if direction == "at least" else row[field] <= factor
        yield {
            "workload": workload,
            "workers": workers,
            "peer": peer,
            "field": field,
            "direction": direction,
            "factor": factor,
            "ratio": row[field],
            "ok": reached,
        }


def check_own_floors(points):
    """The median of the rounds' ratios: what is compared was measured one right after the other, and machines change their speed from one minute to the next."""
    for key, other, field, direction, factor in OWN_FLOORS:
        rows = points.get(key, [])
        bases = points.get(other, []) if other else [{"rps": 1}] * len(rows)
        ratios_of_rounds = [row[field] / base[field] for row, base in zip(rows, bases) if base[field]]
        if not ratios_of_rounds:
            continue
        ratio = statistics.median(ratios_of_rounds)
        workload, workers, system = key
        yield {
            "workload": workload,
            "workers": workers,
            "peer": f"{other[0]} of {other[2]} at {other[1]}" if other else "req/s",
            "system": system,
            "field": field,
            "direction": direction,
            "factor": factor,
            "ratio": ratio,
            "ok": ratio >= factor if direction == "at least" else ratio <= factor,
        }


def print_report(report):
    host = report["machine"]
    print(machine_line(host))
    print(f"points : median of the rounds, {report['seconds']} s each after {report['warmup']} s; 128-byte values, 10,000 keys")
    print()
    header = f"{'workload':<9} {'workers':>7}  {'system':<15} {'req/s':>10} {'lowest':>10} {'highest':>10} {'p50 ms':>8} {'p99 ms':>8}  errors"
    print(header)
    print("-" * len(header))
    for p in report["points"]:
        print(
            f"{p['workload']:<9} {p['workers']:>7}  {p['system']:<15} {p['rps']:>10,.0f} {p['rpsMin']:>10,.0f} "
            f"{p['rpsMax']:>10,.0f} {p['p50Ms']:>8.3f} {p['p99Ms']:>8.3f}  {p['faults']}"
        )
    if report["ratios"]:
        print("\nKahuna divided by its peer (req/s: more is better; latency: less is better)")
        print(f"{'workload':<9} {'workers':>7}  {'peer':<15} {'req/s':>8} {'p50':>8} {'p99':>8}")
        for r in report["ratios"]:
            cells = " ".join("       -" if r[f] is None else f"{r[f]:>8.2f}" for f in ("rps", "p50Ms", "p99Ms"))
            print(f"{r['workload']:<9} {r['workers']:>7}  {r['peer']:<15} {cells}")
    if report["floors"]:
        print("\nfloors")
        for f in report["floors"]:
            system = f" ({f['system']})" if "system" in f else ""
            what = f"{f['field']} of {f['workload']}{system} at {f['workers']}, {f['direction']} {f['factor']:,} x {f['peer']}"
            print(f"  {what:<82} {f['ratio']:>10,.2f}  {'ok' if f['ok'] else 'below'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=5, metavar=("FILE", "ROUND", "SYSTEM", "WORKLOAD", "WORKERS"))
    parser.add_argument("--results")
    parser.add_argument("--filesystem", default="")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--warmup", type=int)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.one:
        print_one(*arguments.one)
        return 0
    points = collect(arguments.results)
    summary = summarise(points)
    ratio_rows = list(ratios(summary))
    report = {
        "machine": machine(arguments.filesystem),
        "seconds": arguments.seconds,
        "warmup": arguments.warmup,
        "points": list(summary.values()),
        "ratios": ratio_rows,
        "floors": [*check_floors(ratio_rows), *check_own_floors(points)],
    }
    print_report(report)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
    return 0


sys.exit(main())
