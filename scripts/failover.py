"""The measurement of scripts/failover.sh: a cluster in network namespaces, a caller, and a leader that fails.

Arguments: server DLL, bench DLL, directory, faults, rounds, durability, output file or an empty text.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

NODES = (1, 2, 3)
PORT = 8082
FAULT_SECONDS = 6
MEDIAN_MAX_MS = 1500
WORST_MAX_MS = 2500
TITLES = {
    "kill": "kill -9",
    "pause": "SIGSTOP",
    "peers": "cut off from the other nodes only",
    "isolated": "cut off from everybody",
}


class FailoverError(Exception):
    """The measurement cannot go on; the text says why."""


def say(text):
    print(f"failover.sh: {text}", file=sys.stderr, flush=True)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wait_for(seconds, what, condition):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise FailoverError(f"{what} after {seconds} s")
        time.sleep(0.1)


def address(node):
    return f"10.213.7.{node}"


class Network:
    """A namespace for each node and one for the caller, in which a bridge connects them. The machine's own network is left alone."""

    def __init__(self):
        self._name = f"kahuna{os.getpid()}"
        self._made = []

    def space(self, node):
        return f"{self._name}-{node or 'caller'}"

    def inside(self, node, *command):
        return ("ip", "netns", "exec", self.space(node)) + command

    def make(self):
        for node in (0,) + NODES:
            run("ip", "netns", "add", self.space(node))
            self._made.append(self.space(node))
            run("ip", "-n", self.space(node), "link", "set", "lo", "up")
        caller = self.space(0)
        run("ip", "-n", caller, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", caller, "addr", "add", f"{address(254)}/24", "dev", "bridge")
        run("ip", "-n", caller, "link", "set", "bridge", "up")
        for node in NODES:
            space = self.space(node)
            run("ip", "-n", caller, "link", "add", f"port{node}", "type", "veth", "peer", "name", "net", "netns", space)
            run("ip", "-n", caller, "link", "set", f"port{node}", "master", "bridge", "up")
            run("ip", "-n", space, "addr", "add", f"{address(node)}/24", "dev", "net")
            run("ip", "-n", space, "link", "set", "net", "up")

    def cut_peers(self, node, is_cut):
        """What the node and the others say to each other is lost, in both directions and without a word."""
        for other in NODES:
            if other != node:
                for here, there in ((node, other), (other, node)):
                    run("ip", "-n", self.space(here), "route", "add" if is_cut else "del", "blackhole", f"{address(there)}/32")

    def cut_all(self, node, is_cut):
        """The node's port at the bridge takes nothing in and lets nothing out."""
        run("ip", "-n", self.space(0), "link", "set", f"port{node}", "nomaster" if is_cut else "master", *([] if is_cut else ["bridge"]))

    def remove(self):
        for space in self._made:
            subprocess.run(("ip", "netns", "del", space), check=False, capture_output=True)


class Cluster:
    """Three server processes and what they say of themselves."""

    def __init__(self, network, server, directory, durability):
        self._network = network
        self._server = server
        self._directory = directory
        self._list = "partitions" if durability == "persistent" else "ephemeralPartitions"
        self._processes = {}

    def prepare(self):
        shutil.rmtree(self._directory, ignore_errors=True)
        os.makedirs(os.path.join(self._directory, "certificates"), mode=0o700)
        secret = os.open(self._path("secret"), os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(secret, os.urandom(32).hex().encode())
        os.close(secret)
        self.start(1)
        # The first node alone makes the development authority; the others find it.
        wait_for(60, "node 1 does not answer", lambda: self.fetch(1, "/healthz") is not None)
        for node in NODES[1:]:
            self.start(node)
        self.await_ready()

    def start(self, node):
        peers = ",".join(f"{other}=https://{address(other)}:{PORT}" for other in NODES)
        environment = dict(os.environ, KAHUNA_DEV_CERT_DIR=self._path("certificates"))
        with open(self._path(f"node{node}.log"), "ab") as log:
            self._processes[node] = subprocess.Popen(
                self._network.inside(
                    node, "dotnet", self._server, "--node-id", str(node), "--data", self._path(f"node{node}"),
                    "--listen", f"https://{address(node)}:{PORT}", "--peers", peers, "--cluster-secret-file", self._path("secret")),
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)

    def fetch(self, node, path):
        """The body of an answer with status 200; None otherwise."""
        found = subprocess.run(
            self._network.inside(0, "curl", "--silent", "--fail", "--insecure", "--max-time", "2", f"https://{address(node)}:{PORT}{path}"),
            capture_output=True, text=True, check=False)
        return found.stdout if found.returncode == 0 else None

    def await_ready(self):
        wait_for(120, "the nodes are not ready", lambda: all(self.fetch(node, "/readyz") is not None for node in NODES))

    def leader(self):
        """The node that leads the first partition of the level."""
        def find():
            for node in NODES:
                status = self.fetch(node, "/status")
                if status and json.loads(status)[self._list][0]["role"] == "leader":
                    return node
            return None
        return wait_for(60, "no node leads", find)

    def signal(self, node, number):
        # "ip netns exec" becomes the process that it starts.
        os.kill(self._processes[node].pid, number)

    def kill(self, node):
        self.signal(node, signal.SIGKILL)
        self._processes[node].wait()

    def stop(self):
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def _path(self, name):
        return os.path.join(self._directory, name)


def longest_call(network, cluster, bench, durability, fault):
    """Longest call of the caller in ms, and how many failed, while the leader fails and for a while afterwards."""
    nodes = ",".join(f"https://{address(node)}:{PORT}" for node in NODES)
    caller = subprocess.Popen(
        network.inside(
            0, "dotnet", bench, "-c", nodes, "--insecure", "--workload", "mixed", "--concurrency", "1", "--connections", "1", "--seed-keys", "100",
            "--key-space", "100", "--warmup", "2", "--duration", str(FAULT_SECONDS + 4), "--timeout", "10", "--durability", durability, "--format", "json"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(5)
    leader = cluster.leader()
    if fault == "kill":
        cluster.kill(leader)
    elif fault == "pause":
        cluster.signal(leader, signal.SIGSTOP)
    elif fault == "peers":
        network.cut_peers(leader, True)
    else:
        network.cut_all(leader, True)
    time.sleep(FAULT_SECONDS)
    if fault == "kill":
        cluster.start(leader)
    elif fault == "pause":
        cluster.signal(leader, signal.SIGCONT)
    elif fault == "peers":
        network.cut_peers(leader, False)
    else:
        network.cut_all(leader, False)
    output, errors = caller.communicate(timeout=120)
    if caller.returncode != 0 and not output:
        raise FailoverError(f"kahuna-bench ended with {caller.returncode}: {errors.strip()[-500:]}")
    rows = json.loads(output)["operations"]
    return max(row["maxMs"] for row in rows), sum(row["errors"] for row in rows)


def main():
    server, bench, directory, faults, rounds, durability, output = sys.argv[1:8]
    network = Network()
    cluster = Cluster(network, server, directory, durability)
    measured = {}
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        network.make()
        cluster.prepare()
        for fault in faults.split(","):
            measured[fault] = []
            for i in range(int(rounds)):
                longest, errors = longest_call(network, cluster, bench, durability, fault)
                cluster.await_ready()
                measured[fault].append(longest)
                failed += errors
                say(f"{fault} {i + 1} of {rounds}: longest call {longest:.0f} ms, {errors} failed")
    except FailoverError as error:
        say(str(error))
        sys.exit(1)
    finally:
        cluster.stop()
        network.remove()
        if sys.exc_info()[0] is None:
            shutil.rmtree(directory, ignore_errors=True)
    print(f"| the leader, {durability} | rounds | median | worst | floors |")
    print("|---|---|---|---|---|")
    for fault, calls in measured.items():
        median, worst = statistics.median(calls), max(calls)
        verdict = "ok" if median <= MEDIAN_MAX_MS and worst <= WORST_MAX_MS else "BELOW"
        print(f"| {TITLES[fault]} | {len(calls)} | {median / 1000:.2f} s | {worst / 1000:.2f} s | {verdict} |")
    if output:
        with open(output, "w", encoding="utf-8") as file:
            json.dump({"durability": durability, "longestMs": measured, "failed": failed}, file, indent=2)
    if failed:
        say(f"{failed} calls failed")
        sys.exit(1)


main()
