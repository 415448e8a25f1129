"""Tables, ratios and floors of scripts/scale.sh."""

import json
import statistics

from machine import machine, machine_line

VALUE_BYTES = 128

# What each section must reach: name -> at least or at most, limit.
FLOORS = {
    "cost": ("at most", 1.3),
    "memory": ("at most", 200),
    "restart": ("at most", 6.0),
    "flush": ("at least", 0.85),
    "snapshot rate": ("at least", 0.7),
    "snapshot p99.9": ("at most", 3.0),
    "long disk": ("at most", 3.0),
    "long memory": ("at most", 1.1),
    "long rate": ("at least", 0.9),
}

# A restart takes a second before it loads anything; below this many keys that second is all there is.
RESTART_FLOOR_KEYS = 1_000_000


def key_bytes(keys):
    """Mean length of the keys bench:0 to bench:(keys - 1)."""
    return sum(len(f"bench:{number}") for number in range(keys)) / keys


def ratio(value, base):
    return value / base if value is not None and base else None


def middle_ratio(values, bases):
    """The median of the ratios of what was measured in turn."""
    ratios = [one for one in map(ratio, values, bases) if one is not None]
    return statistics.median(ratios) if ratios else None


def cell(value, form):
    width = form.split(".")[0].rstrip(",")
    return f"{'-':>{width}}" if value is None else f"{value:>{form}}"


def table(title, columns, rows):
    """columns: (heading, format), a format such as 10,.0f or 8 for text."""
    print(f"\n{title}")
    widths = [int(form.split(".")[0].rstrip(",").lstrip("<")) for _, form in columns]
    head = "  ".join(f"{name:<{width}}" if form.startswith("<") else f"{name:>{width}}" for (name, form), width in zip(columns, widths))
    print(head)
    print("-" * len(head))
    for row in rows:
        print("  ".join(f"{value:{form}}" if form.startswith("<") else cell(value, form) for value, (_, form) in zip(row, columns)).rstrip())


class Report:
    """Collects the sections, prints each when it is there, and keeps the JSON file up to date."""

    def __init__(self, arguments):
        self._output = arguments.output
        self._report = {
            "machine": machine(arguments.filesystem),
            "options": {"keys": arguments.keys, "stored": arguments.stored, "seconds": arguments.seconds or None,
                        "rounds": arguments.rounds, "minutes": arguments.minutes},
            "sections": {},
            "floors": [],
        }
        self._section = ""

    def print_machine(self):
        host = self._report["machine"]
        print(machine_line(host))
        print(f"date   : {host['date']}", flush=True)

    def add(self, section, figures):
        self._section = section
        self._report["sections"][section] = figures
        {"keys": self._keys, "flush": self._flush, "snapshot": self._snapshot, "long": self._long}[section](figures)
        print("", end="", flush=True)
        if self._output:
            with open(self._output, "w", encoding="utf-8") as file:
                json.dump(self._report, file, indent=2)
                file.write("\n")

    def _floor(self, what, value, name, offset=0.0, scale=1.0):
        """One line under a table. offset and scale turn the floor into the unit of the value."""
        direction, limit = FLOORS[name]
        limit = limit * scale + offset
        if value is None:
            print(f"  {what:<62} not measured")
            return
        reached = value >= limit if direction == "at least" else value <= limit
        self._report["floors"].append(
            {"section": self._section, "what": what, "value": value, "direction": direction, "limit": limit, "ok": reached})
        print(f"  {what:<62} {value:>8.2f}  {direction} {limit:>6.2f}  {'ok' if reached else 'BELOW'}")

    def _fact(self, what, holds):
        """A floor that holds or does not."""
        self._report["floors"].append({"section": self._section, "what": what, "ok": holds})
        print(f"  {what:<62} {'yes' if holds else 'no':>8}  {'':<15}  {'ok' if holds else 'BELOW'}")

    # -- keys --

    def _keys(self, figures):
        sizes = figures["sizes"]
        base = sizes[0]
        rows, costs = [], []
        for index, first in enumerate(base["points"]):
            for size in sizes:
                point = size["points"][index]
                # Of each round, since its two points follow one another; the middle of all would compare what the machine did minutes apart.
                cost = middle_ratio(first["rates"], point["rates"])
                processor = ratio(point["processorUs"], first["processorUs"])
                rows.append((point["workload"], point["workers"], size["keys"], point["rps"], point["p50Ms"], point["p99Ms"], point["p999Ms"],
                             point["processorUs"], cost, processor, point["faults"]))
                if size is not base:
                    costs.append((f"time per {point['workload']} at {point['workers']}, {size['keys']:,} keys / {base['keys']:,}", cost))
        table(f"keys: rate and cost, values of {VALUE_BYTES} bytes; processor time of the three nodes; ratios to {base['keys']:,} keys",
              [("workload", "<8"), ("workers", "7"), ("keys", "10,"), ("req/s", "9,.0f"), ("p50 ms", "7.2f"), ("p99 ms", "7.2f"), ("p99.9 ms", "8.2f"),
               ("cpu us/op", "9.2f"), ("time", "5.2f"), ("cpu", "5.2f"), ("errors", "6")], rows)
        table("keys: the node that needs the most",
              [("keys", "10,"), ("memory MB", "9,.1f"), ("anonymous", "9,.1f"), ("managed", "9,.1f"), ("highest", "9,.1f"), ("bytes/key", "9,.1f"),
               ("log MB", "8,.1f"), ("state MB", "8,.1f"), ("filled s", "8,.1f"), ("restart s", "9,.2f"), ("digests", "9")],
              [self._size_row(size, base) for size in sizes])
        for size in sizes:
            print(f"\nrestart after kill -9, {size['keys']:,} keys, states in {size['stateStore']}: {size['restart']['seconds']:.2f} s")
            for line in size["restart"]["lines"]:
                print(f"  {line}")
        print("\nfloors")
        for what, cost in costs:
            self._floor(what, cost, "cost")
        for size in sizes[1:]:
            self._floor(f"memory per key at {size['keys']:,} keys, bytes", bytes_per_key(size, base), "memory", offset=size["keyBytes"] + VALUE_BYTES)
        for size in sizes:
            if size["keys"] >= RESTART_FLOOR_KEYS:
                self._floor(f"restart with {size['keys']:,} keys, s", size["restart"]["seconds"], "restart", scale=size["keys"] / 1e6)
            self._fact(f"digests equal at {size['keys']:,} keys", size["digestsEqual"])

    @staticmethod
    def _size_row(size, base):
        memory, disk = size["memoryHighest"], size["diskHighest"]
        return (size["keys"], memory["resident"] / 1e6, memory["anonymous"] / 1e6, memory["heap"] / 1e6, memory["highest"] / 1e6,
                bytes_per_key(size, base), disk["log"] / 1e6, disk["state"] / 1e6, size["fillSeconds"], size["restart"]["seconds"],
                "equal" if size["digestsEqual"] else "DIFFERENT")

    # -- flush --

    def _flush(self, figures):
        rounds = figures["rounds"]
        medians = {variant: {field: statistics.median(row[field] for row in rows) for field in ("rps", "p99Ms", "p999Ms")} for variant, rows in rounds.items()}
        base = medians["never"]
        table(f"flush: sets at 256 workers, {figures['keys']:,} keys, medians; by how much log is kept; ratios to no flush at all",
              [("log kept", "<8"), ("req/s", "9,.0f"), ("lowest", "9,.0f"), ("highest", "9,.0f"), ("p99 ms", "7.2f"), ("p99.9 ms", "8.2f"),
               ("rate", "5.2f"), ("p99", "5.2f"), ("p99.9", "5.2f"), ("nodes that flushed", "18"), ("errors", "6")],
              [("8 GB" if variant == "never" else variant, median["rps"], min(row["rps"] for row in rounds[variant]), max(row["rps"] for row in rounds[variant]),
                median["p99Ms"], median["p999Ms"], ratio(median["rps"], base["rps"]), ratio(median["p99Ms"], base["p99Ms"]),
                ratio(median["p999Ms"], base["p999Ms"]), " ".join(str(row["flushed"]) for row in rounds[variant]), sum(row["faults"] for row in rounds[variant]))
               for variant, median in medians.items()])
        print("\nfloors")
        for variant, median in medians.items():
            if variant != "never":
                self._floor(f"rate with flush and cut, log kept {variant}", ratio(median["rps"], base["rps"]), "flush")
        self._fact("nothing was flushed in the runs without", all(row["flushed"] == 0 for row in rounds["never"]))
        self._fact("all nodes flushed in the runs with the smallest log", all(row["flushed"] == 3 for row in rounds["64 MB"]))
        self._fact("digests equal", figures["digestsEqual"])

    # -- snapshot --

    def _snapshot(self, figures):
        rounds = figures["rounds"]
        payload = figures["keys"] * (figures["keyBytes"] + VALUE_BYTES)
        table(f"snapshot: sets at 64 workers, {figures['keys']:,} keys, without and while a follower is filled",
              [("round", "5"), ("req/s without", "13,.0f"), ("meanwhile", "9,.0f"), ("rate", "5.2f"), ("p99.9 ms without", "16.2f"), ("meanwhile", "9.2f"),
               ("p99.9", "5.2f"), ("digests", "9"), ("errors", "6")],
              [(number, row["without"]["rps"], row["during"]["rps"], ratio(row["during"]["rps"], row["without"]["rps"]), row["without"]["p999Ms"],
                row["during"]["p999Ms"], ratio(row["during"]["p999Ms"], row["without"]["p999Ms"]),
                "equal" if row["digestsEqual"] else "DIFFERENT", row["without"]["faults"] + row["during"]["faults"])
               for number, row in enumerate(rounds, 1)])
        table("snapshot: seconds from the follower's start until it answers, has all keys, may vote, and keeps up; MB of keys and values per second until filled",
              [("round", "5"), ("answers s", "9.2f"), ("filled s", "9.2f"), ("votes s", "9.2f"), ("back s", "9.2f"), ("MB/s", "9.1f"), ("state MB", "9.1f")],
              [(number, row["seconds"].get("answers"), row["seconds"].get("filled"), row["seconds"]["votes"], row["seconds"]["back"],
                megabytes_per_second(payload, row["seconds"]), row["stateBytes"] / 1e6) for number, row in enumerate(rounds, 1)])
        print(f"\nnode {rounds[-1]['node']} in the last round")
        for line in rounds[-1]["lines"]:
            print(f"  {line}")
        print("\nfloors (medians)")
        for field, name in (("rps", "snapshot rate"), ("p999Ms", "snapshot p99.9")):
            without, during = (statistics.median(row[kind][field] for row in rounds) for kind in ("without", "during"))
            self._floor(f"{'rate' if field == 'rps' else 'p99.9'} meanwhile / without", ratio(during, without), name)
        self._fact("digests equal after each", all(row["digestsEqual"] for row in rounds))

    # -- long --

    def _long(self, figures):
        minutes = figures["minutes"]
        table(f"long: {figures['keys']:,} keys overwritten at 256 workers; disk and log of the node with the most, memory per node",
              [("minute", "6"), ("req/s", "9,.0f"), ("p99 ms", "7.2f"), ("disk MB", "9,.1f"), ("log MB", "9,.1f"), ("memory MB", "9,.1f"), ("errors", "6")],
              [(row["minute"], row["rps"], row["p99Ms"], row["diskHighest"] / 1e6, row["logHighest"] / 1e6, row["resident"] / 1e6, row["faults"]) for row in minutes])
        span = min(5, len(minutes) // 2)
        print("\nfloors")
        self._floor(f"most disk per node / log kept ({figures['logKeep'] / 1e6:,.0f} MB)", max(row["diskHighest"] for row in minutes) / figures["logKeep"], "long disk")
        if span > 0:
            first, second, last = minutes[:span], minutes[span:2 * span], minutes[-span:]
            self._floor(f"memory, last {span} min / second {span} min", mean(last, "resident") / mean(second, "resident"), "long memory")
            self._floor(f"rate, last {span} min / first {span} min", ratio(mean(last, "rps"), mean(first, "rps")), "long rate")
        self._fact("digests equal", figures["digestsEqual"])


def bytes_per_key(size, base):
    if size["keys"] == base["keys"]:
        return None
    return (size["memoryHighest"]["resident"] - base["memoryHighest"]["resident"]) / (size["keys"] - base["keys"])


def megabytes_per_second(payload, seconds):
    """None when the node answered only after it was filled."""
    between = seconds.get("filled", 0.0) - seconds.get("answers", 0.0)
    return payload / between / 1e6 if between > 0 else None


def mean(rows, field):
    return statistics.mean(row[field] for row in rows)
