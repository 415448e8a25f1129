"""Processor time per operation for scripts/cost.sh, from /proc and the nodes' GET /status."""

import argparse
import json
import os
import ssl
import sys
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")

# What a thread is called, by the beginning of its name, in the order of the way of a write.
KINDS = [
    ("client edge (sockets)", (".NET Sockets",)),
    ("client edge and turns (pool)", (".NET TP Worker", ".NET TP Gate")),
    ("links to peers", ("peer ",)),
    ("log", ("log",)),
    ("log: preparing segments", ("log-prepare",)),
    ("compiler", (".NET Tiered",)),
    ("rest", ("",)),
]


def status_of(endpoint):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(endpoint + "/status", context=context, timeout=5) as answer:
        return json.load(answer)


def kind_of(name):
    """The kind with the longest matching beginning: log-prepare is not log."""
    return max(((len(start), kind) for kind, starts in KINDS for start in starts if name.startswith(start)))[1]


def threads_of(pid):
    """kind -> [user ticks, system ticks, context switches]"""
    kinds = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as file:
                text = file.read()
            with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
                switches = sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        row = kinds.setdefault(kind_of(name), [0, 0, 0])
        row[0] += int(fields[11])
        row[1] += int(fields[12])
        row[2] += switches
    return kinds


def snapshot(nodes, bench):
    return {"time": time.time(), "entries": sum(p["commitIndex"] for p in status_of(nodes[0]["endpoint"])["partitions"]),
            "bench": threads_of(bench), "nodes": [threads_of(node["pid"]) for node in nodes]}


def difference(after, before):
    return {kind: [x - y for x, y in zip(row, before.get(kind, [0, 0, 0]))] for kind, row in after.items()}


def sample(arguments):
    nodes = []
    for endpoint in arguments.endpoints.split(","):
        status = status_of(endpoint)
        leads = sum(p["role"] == "leader" for p in status["partitions"])
        nodes.append({"endpoint": endpoint, "pid": status["processId"], "leads": leads})
    nodes.sort(key=lambda node: -node["leads"])
    before = snapshot(nodes, arguments.bench)
    time.sleep(arguments.seconds)
    after = snapshot(nodes, arguments.bench)
    result = {
        "seconds": after["time"] - before["time"],
        "entries": after["entries"] - before["entries"],
        "bench": difference(after["bench"], before["bench"]),
        "nodes": [difference(a, b) for a, b in zip(after["nodes"], before["nodes"])],
    }
    with open(arguments.sample, "w", encoding="utf-8") as file:
        json.dump(result, file)


def add(rows):
    total = {}
    for row in rows:
        for kind, values in row.items():
            total[kind] = [x + y for x, y in zip(values, total.get(kind, [0, 0, 0]))]
    return total


def show(arguments):
    with open(arguments.print, encoding="utf-8") as file:
        taken = json.load(file)
    with open(arguments.report, encoding="utf-8") as file:
        aggregate = json.load(file)["aggregate"]
    operations = aggregate["rps"] * taken["seconds"]
    processes = [("client", {"whole process": [sum(v[i] for v in taken["bench"].values()) for i in range(3)]}, 1),
                 ("leader", taken["nodes"][0], 1),
                 ("a follower", add(taken["nodes"][1:]), max(1, len(taken["nodes"]) - 1))]
    entries = f", {operations / taken['entries']:.1f} operations per log entry" if taken["entries"] > taken["seconds"] * 2 else ""
    print(f"{arguments.workload} at {arguments.workers} workers: {aggregate['rps']:,.0f}/s, p50 {aggregate['p50Ms']:.3f} ms, p99 {aggregate['p99Ms']:.3f} ms{entries}")
    print(f"  {'process':<11} {'threads':<29} {'user us/op':>10} {'system us/op':>12} {'switches/op':>11}")
    whole = 0.0
    order = [kind for kind, _ in KINDS]
    for process, kinds, count in processes:
        for kind in sorted(kinds, key=lambda k: order.index(k) if k in order else -1):
            user, system, switches = kinds[kind]
            whole += (user + system) / TICKS
            if user + system > 0:
                print(f"  {process:<11} {kind:<29} {cost(user, operations * count):>10} {cost(system, operations * count):>12} {switches / operations / count:>11.3f}")
    print(f"  all four processes: {whole / operations * 1e6:.2f} us/op, {100 * whole / taken['seconds'] / os.cpu_count():.0f} % of {os.cpu_count()} processors\n")


def cost(ticks, operations):
    return f"{ticks / TICKS / operations * 1e6:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--bench", type=int)
    parser.add_argument("--endpoints")
    parser.add_argument("--print")
    parser.add_argument("--report")
    parser.add_argument("--workload")
    parser.add_argument("--workers")
    arguments = parser.parse_args()
    if arguments.print:
        show(arguments)
    else:
        sample(arguments)
    return 0


sys.exit(main())
