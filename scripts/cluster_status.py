"""Prints the table of scripts/cluster.sh status.

Standard input: one line per node with node, pid, process state and the JSON body of GET /status
(empty when the node did not answer), separated by tabs.
"""

import json
import sys


def summarise(partitions):
    """Role, term and commit index of a node over all its partitions."""
    roles = [p["role"] for p in partitions]
    leads = roles.count("leader")
    if leads == len(roles):
        role = "leader"
    elif leads > 0:
        role = f"leader {leads}/{len(roles)}"
    else:
        role = roles[0] if len(set(roles)) == 1 else "mixed"
    return role, max(p["term"] for p in partitions), sum(p["commitIndex"] for p in partitions)


def rows(lines, per_partition):
    for line in lines:
        node, pid, state, body = line.rstrip("\n").split("\t", 3)
        status = json.loads(body) if body else None
        partitions = status.get("partitions") if status else None
        if not partitions:
            yield [node, pid] + (["-"] if per_partition else []) + ["-", "-", "-", "no", state]
            continue
        ready = "yes" if status["ready"] else "no"
        if not per_partition:
            role, term, commit = summarise(partitions)
            yield [node, pid, role, term, commit, ready, state]
            continue
        for p in partitions:
            yield [node, pid, p["partition"], p["role"], p["term"], p["commitIndex"], ready, state]


def main():
    per_partition = "--partitions" in sys.argv[1:]
    header = ["NODE", "PID"] + (["PARTITION"] if per_partition else []) + ["ROLE", "TERM", "COMMIT", "READY", "STATE"]
    table = [header] + [[str(cell) for cell in row] for row in rows(sys.stdin, per_partition)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


main()
