"""The measurement of scripts/failover.sh: a cluster in network namespaces, a caller, and a leader that fails.

Arguments: server DLL, bench DLL, directory, faults, rounds, durability, output file or an empty text.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

NODES = (1, 2, 3)
PORT = 8082
FAULT_SECONDS = 6
MEDIAN_MAX_MS = 1500
WORST_MAX_MS = 2500
# Nobody takes over earlier than the shortest election timeout: a round with a shorter longest call has measured nothing.
FAILED_MIN_MS = 500
LEADERSHIP = re.compile(r" leads |No leader is known|majority")
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
        with open(self._log(node), "ab") as log:
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

    def log_marks(self):
        return {node: os.path.getsize(self._log(node)) for node in NODES}

    def tell_leadership(self, marks):
        """What the nodes said of leadership since the marks were taken."""
        for node, mark in marks.items():
            with open(self._log(node), encoding="utf-8", errors="replace") as log:
                log.seek(mark)
                for line in log:
                    if LEADERSHIP.search(line):
                        say(f"node {node}: {line.strip()[:300]}")

    def stop(self):
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def _log(self, node):
        return self._path(f"node{node}.log")

    def _path(self, name):
        return os.path.join(self._directory, name)


class Caller:
    """A sequential caller: the benchmark with one worker, and what it writes on its error stream."""

    def __init__(self, network, bench, durability):
        nodes = ",".join(f"https://{address(node)}:{PORT}" for node in NODES)
        self._errors = []
        self._measures = threading.Event()
        self._process = subprocess.Popen(
            network.inside(
                0, "dotnet", bench, "-c", nodes, "--insecure", "--workload", "mixed", "--concurrency", "1", "--connections", "1", "--seed-keys", "100",
                "--key-space", "100", "--warmup", "2", "--duration", str(FAULT_SECONDS + 4), "--timeout", "10", "--durability", durability, "--format", "json"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stderr:
            self._errors.append(line)
            if line.startswith("Running measurement"):
                self._measures.set()
        self._measures.set()

    def await_measurement(self):
        if not self._measures.wait(60) or self._process.poll() is not None:
            raise FailoverError(f"kahuna-bench does not measure: {self._said()}")

    def end(self):
        """Longest call in ms, and how many calls did not succeed: errors, timeouts, and those without an answer at the end."""
        with self._process.stdout:
            output = self._process.stdout.read()
        self._process.wait(120)
        self._reader.join(10)
        if not output:
            raise FailoverError(f"kahuna-bench ended with {self._process.returncode}: {self._said()}")
        report = json.loads(output)
        rows = report["operations"]
        lost = sum(row["errors"] + row["timeouts"] for row in rows) + report["generator"]["backlog"]
        return max(row["maxMs"] for row in rows), lost

    def stop(self):
        if self._process.poll() is None:
            self._process.kill()

    def _said(self):
        return "".join(self._errors).strip()[-500:] or "it said nothing"


def fail(network, cluster, leader, fault):
    if fault == "kill":
        cluster.kill(leader)
    elif fault == "pause":
        cluster.signal(leader, signal.SIGSTOP)
    elif fault == "peers":
        network.cut_peers(leader, True)
    else:
        network.cut_all(leader, True)


def heal(network, cluster, leader, fault):
    if fault == "kill":
        cluster.start(leader)
    elif fault == "pause":
        cluster.signal(leader, signal.SIGCONT)
    elif fault == "peers":
        network.cut_peers(leader, False)
    else:
        network.cut_all(leader, False)


def longest_call(network, cluster, bench, durability, fault):
    """Longest call of the caller in ms, and how many did not succeed, while the leader fails and for a while afterwards."""
    caller = Caller(network, bench, durability)
    try:
        caller.await_measurement()
        time.sleep(1)
        leader = cluster.leader()
        marks = cluster.log_marks()
        fail(network, cluster, leader, fault)
        time.sleep(FAULT_SECONDS)
        heal(network, cluster, leader, fault)
        longest, lost = caller.end()
    finally:
        caller.stop()
    if longest < FAILED_MIN_MS:
        raise FailoverError(f"the longest call of {longest:.0f} ms says that the fault '{fault}' did not reach the leader, node {leader}")
    if longest > WORST_MAX_MS:
        cluster.tell_leadership(marks)
    return longest, lost


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
                longest, lost = longest_call(network, cluster, bench, durability, fault)
                cluster.await_ready()
                measured[fault].append(longest)
                failed += lost
                say(f"{fault} {i + 1} of {rounds}: longest call {longest:.0f} ms, {lost} without success")
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
        say(f"{failed} calls without success")
        sys.exit(1)


main()
