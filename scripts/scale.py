"""The sections of scripts/scale.sh: fills, loads, kills and restarts a cluster, and hands the figures to scale_report.py."""

import argparse
import re
import signal
import statistics
import sys
import time

import scale_report
from scale_cluster import Cluster, ScaleError, say

LONG_KEYS = 10_000
LOG_KEEP_DEFAULT = 512_000_000
SAMPLE_SECONDS = 10
BACK_SECONDS = 1800

# What is kept of the log decides when states are flushed: each time a quarter of it has gathered.
NEVER = "never"
FLUSH_VARIANTS = {NEVER: ("--log-keep", "8GB", "--log-limit", "16GB"), "default": (), "64 MB": ("--log-keep", "64MB")}


def heat(cluster, seconds=5):
    """A fresh process compiles its code while it serves its first seconds; that is no operation's cost."""
    cluster.load("set", 256, seconds, warmup=0)
    cluster.load("get", 256, max(1, seconds // 2), warmup=0)


def progress_lines(text):
    """What a node said about its partitions while it started."""
    found = (re.search(r"(Partition \d+: .*|.*[Ss]napshot.*)", line) for line in text.splitlines())
    return [match.group(1).strip() for match in found if match]


def highest(rows):
    return {name: max(row[name] for row in rows) for name in rows[0]}


# -- keys ---------------------------------------------------------------------


KEYS_POINTS = (("set", 256), ("get", 256), ("set", 64), ("get", 64))


def middle(points):
    """One point of several: the median of each figure, all faults."""
    figures = {name: [p[name] for p in points if p[name] is not None] for name in points[0]}
    return {name: sum(values) if name == "faults" else statistics.median(values) if values else None for name, values in figures.items()}


def size_result(cluster, keys, fill_seconds, points):
    equal = cluster.digests_equal()
    statuses = [node.require_status() for node in cluster.nodes]
    memory = [{**node.memory(), "heap": status["gc"]["heapBytes"]} for node, status in zip(cluster.nodes, statuses)]
    return {
        "keys": keys,
        "keyBytes": scale_report.key_bytes(keys),
        "fillSeconds": fill_seconds,
        "points": [
            {"workload": workload, "workers": workers, "keys": keys, **middle(points[workload, workers]), "rates": [p["rps"] for p in points[workload, workers]]}
            for workload, workers in KEYS_POINTS
        ],
        "stateStore": statuses[0]["storage"]["stateStore"],
        "memory": memory,
        "memoryHighest": highest(memory),
        "diskHighest": highest([node.disk() for node in cluster.nodes]),
        "restart": restart_follower(cluster),
        "digestsEqual": equal and cluster.digests_equal(),
    }


def restart_follower(cluster):
    node = cluster.followers()[0]
    position = node.log_position()
    cluster.kill(node)
    begin = time.monotonic()
    cluster.start(node)
    cluster.wait_for_node(node, BACK_SECONDS, node.ready)
    seconds = time.monotonic() - begin
    say(f"node {node.number} was ready {seconds:.1f} s after its start")
    return {"seconds": seconds, "lines": progress_lines(node.log_since(position))}


def section_keys(cluster, arguments):
    """
    The sizes have a cluster each, side by side, and are measured in turn, while all others are at rest: a machine that is slow for a minute is slow for all.
    """
    sizes = sorted(set(int(text) for text in arguments.keys.split(",")))
    clusters = [cluster.beside(i) if i else cluster for i in range(len(sizes))]
    points = [{point: [] for point in KEYS_POINTS} for _ in sizes]
    fill_seconds = []
    try:
        for one, keys in zip(clusters, sizes):
            one.fresh()
            fill_seconds.append(one.fill(keys))
            heat(one)
        for turn in range(arguments.rounds):
            for workload, workers in KEYS_POINTS:
                order = list(range(len(sizes)))
                for i in order if turn % 2 == 0 else reversed(order):
                    for one in clusters:
                        one.settle()
                    point = clusters[i].measure(workload, workers, arguments.seconds or 10)
                    points[i][workload, workers].append(point)
                    say(f"{sizes[i]:,} keys: {workload} at {workers} workers {point['rps']:,.0f}/s")
        return {"rounds": arguments.rounds, "sizes": [size_result(*row) for row in zip(clusters, sizes, fill_seconds, points)]}
    finally:
        for one in clusters[1:]:
            one.clean()


# -- flush --------------------------------------------------------------------


def measure_variant(cluster, variant, seconds):
    cluster.restart(*FLUSH_VARIANTS[variant])
    heat(cluster)
    before = cluster.stored()
    point = cluster.measure("set", 256, seconds)
    moved = [after > earlier for earlier, after in zip(before, cluster.stored())]
    say(f"flush {variant}: {point['rps']:,.0f}/s, p99.9 {point['p999Ms']:.1f} ms, {sum(moved)} of 3 nodes flushed")
    return {**point, "flushed": sum(moved)}


def section_flush(cluster, arguments):
    """
    All variants run on the same keys, each in new processes on the data that the one before left: what a node has to load, and what it
    knows of its states, is the same for all.
    """
    cluster.hold(arguments.stored)
    variants = list(FLUSH_VARIANTS)
    rounds = {variant: [] for variant in variants}
    for number in range(arguments.rounds):
        for turn in range(len(variants)):
            # Each round begins with another variant, so that none always runs first.
            variant = variants[(turn + number) % len(variants)]
            rounds[variant].append(measure_variant(cluster, variant, arguments.seconds or 30))
    cluster.restart()
    return {"keys": arguments.stored, "rounds": rounds, "digestsEqual": cluster.digests_equal()}


# -- snapshot -----------------------------------------------------------------


class Rebuild:
    """
    A follower that starts without data beside a load: when it answers, has as many keys as there are, may vote, and is back, which is when
    it also has applied what the leader had committed a moment ago. Seconds since its start.
    """

    def __init__(self, cluster, node):
        self._cluster = cluster
        self._node = node
        self._leader = cluster.leader()
        self._begin = None
        self._wanted = None
        self.seconds = {}
        self.timeline = []

    def step(self):
        """Starts the node at the first call; true once it is back."""
        if self._begin is None:
            self._begin = time.monotonic()
            self._cluster.start(self._node, "--rebuild", "--yes")
            return False
        if not self._node.alive():
            raise ScaleError(f"node {self._node.number} ended; the end of its log:\n{self._node.log_end()}")
        status = self._node.status()
        if status:
            self._reach("answers")
            if position(status, "keys") >= self._cluster.filled:
                self._reach("filled")
            if all(p["mayVote"] for p in status["partitions"]):
                self._reach("votes")
                if self._wanted is not None and position(status, "appliedIndex") >= self._wanted:
                    self._reach("back")
        self._wanted = position(self._leader.require_status(), "commitIndex")
        self.timeline.append({"seconds": round(time.monotonic() - self._begin, 2), "committed": self._wanted,
                              "applied": position(status, "appliedIndex") if status else None, "keys": position(status, "keys") if status else None})
        return "back" in self.seconds

    def _reach(self, point):
        self.seconds.setdefault(point, time.monotonic() - self._begin)


def position(status, field):
    return sum(partition[field] for partition in status["partitions"])


def measure_rebuild(cluster, node, seconds):
    without = cluster.measure("set", 64, seconds)
    offset = node.log_position()
    cluster.kill(node)
    rebuild = Rebuild(cluster, node)
    during = cluster.measure("set", 64, BACK_SECONDS, until=rebuild.step)
    if "back" not in rebuild.seconds:
        raise ScaleError(f"node {node.number} is not back after {BACK_SECONDS} s; the end of its log:\n{node.log_end()}")
    equal = cluster.digests_equal()
    say(f"node {node.number} was back after {rebuild.seconds['back']:.1f} s; {without['rps']:,.0f}/s without, {during['rps']:,.0f}/s meanwhile")
    return {"node": node.number, "without": without, "during": during, "seconds": rebuild.seconds, "digestsEqual": equal,
            "stateBytes": node.disk()["state"], "lines": progress_lines(node.log_since(offset)), "timeline": rebuild.timeline}


def section_snapshot(cluster, arguments):
    cluster.hold(arguments.stored)
    cluster.restart()
    heat(cluster)
    # A follower whose log is still whole everywhere would get that instead.
    while min(partition["logStart"] for node in cluster.nodes for partition in node.require_status()["partitions"]) == 0:
        cluster.load("set", 256, 10, warmup=0)
    rounds = [measure_rebuild(cluster, cluster.followers()[number % 2], arguments.seconds or 10) for number in range(arguments.rounds)]
    return {"keys": arguments.stored, "keyBytes": scale_report.key_bytes(arguments.stored), "rounds": rounds}


# -- long ---------------------------------------------------------------------


class Sampler:
    """Disk, log and memory of all nodes every ten seconds, in the midst of a load."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._begin = time.monotonic()
        self._next = 0.0
        self.samples = []

    def step(self):
        elapsed = time.monotonic() - self._begin
        if elapsed < self._next:
            return
        self._next += SAMPLE_SECONDS
        sample = {"seconds": round(elapsed, 1), "nodes": []}
        for node in self._cluster.nodes:
            status = node.require_status()
            sample["nodes"].append({"disk": sum(node.disk().values()), "logBytes": status["storage"]["logBytes"], "resident": node.memory()["resident"]})
        self.samples.append(sample)


def section_long(cluster, arguments):
    cluster.fresh()
    cluster.fill(LONG_KEYS)
    heat(cluster)
    minutes = []
    begin = time.monotonic()
    sampler = Sampler(cluster)
    for minute in range(1, arguments.minutes + 1):
        # A new generator each minute; what its start and end take is left out of the measured time.
        seconds = max(1, int(begin + 60 * minute - time.monotonic() - 3))
        taken = len(sampler.samples)
        report = cluster.load("set", 256, seconds, warmup=1, tick=sampler.step)["aggregate"]
        rows = [row for sample in sampler.samples[taken:] for row in sample["nodes"]]
        minutes.append({
            "minute": minute,
            "rps": report["rps"],
            "p99Ms": report["p99Ms"],
            "faults": report["errors"] + report["timeouts"],
            "diskHighest": max(row["disk"] for row in rows),
            "logHighest": max(row["logBytes"] for row in rows),
            "resident": statistics.mean(row["resident"] for row in rows),
        })
        last = minutes[-1]
        say(f"minute {minute}: {last['rps']:,.0f}/s, disk {last['diskHighest'] / 1e6:,.0f} MB, memory {last['resident'] / 1e6:,.0f} MB per node")
    return {"keys": LONG_KEYS, "logKeep": LOG_KEEP_DEFAULT, "minutes": minutes, "samples": sampler.samples, "digestsEqual": cluster.digests_equal()}


SECTIONS = {"keys": section_keys, "flush": section_flush, "snapshot": section_snapshot, "long": section_long}


def stop(number, _frame):
    raise SystemExit(128 + number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--work", "--bench", "--filesystem", "--sections", "--keys", "--output"):
        parser.add_argument(name)
    for name in ("--stored", "--seconds", "--rounds", "--minutes"):
        parser.add_argument(name, type=int)
    arguments = parser.parse_args()
    # Also against Ctrl+C: a child of a shell that runs it in the background would ignore that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    cluster = Cluster(arguments.work, arguments.bench)
    report = scale_report.Report(arguments)
    report.print_machine()
    try:
        for name in dict.fromkeys(arguments.sections.split(",")):
            say(f"section {name}")
            report.add(name, SECTIONS[name](cluster, arguments))
    except ScaleError as failure:
        say(str(failure))
        return 1
    finally:
        cluster.stop_load()
    return 0


sys.exit(main())
