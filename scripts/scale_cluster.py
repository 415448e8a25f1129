"""The cluster of scripts/scale.sh: its three processes, kahuna-bench on them, and what /proc and GET /status say."""

import calendar
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")
SCRIPTS = os.path.dirname(os.path.abspath(__file__))


class ScaleError(Exception):
    """The measurement cannot go on; the text says why."""


def say(text):
    print(f"scale.sh: {text}", file=sys.stderr, flush=True)


def wait_for(seconds, what, condition, pause=0.1):
    """The condition's first true value; ScaleError when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ScaleError(f"{what} after {seconds:g} s")
        time.sleep(pause)


class Node:
    """One server process, its directory and its log."""

    def __init__(self, number, port, directory):
        self.number = number
        self.port = port
        self.data = os.path.join(directory, f"node{number}")
        self.log = os.path.join(directory, "logs", f"node{number}.log")
        self._pid_file = os.path.join(directory, "pids", f"node{number}.pid")
        self._connection = None

    def fetch(self, path):
        """Status code and body, or (0, b"") when nobody answers. The connection is kept: a handshake costs more than the answer."""
        for _ in range(2):
            fresh = self._connection is None
            if fresh:
                context = ssl.create_default_context()
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
                self._connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
            try:
                self._connection.request("GET", path)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = None
                if fresh:
                    break
        return 0, b""

    def status(self):
        code, body = self.fetch("/status")
        return json.loads(body) if code == 200 else None

    def require_status(self):
        status = self.status()
        if status is None:
            raise ScaleError(f"node {self.number} does not answer; the end of its log:\n{self.log_end()}")
        return status

    def ready(self):
        return self.fetch("/readyz")[0] == 200

    def pid(self):
        """The process of the pid file that cluster.sh writes at a start and removes at an end; 0 without one."""
        try:
            with open(self._pid_file, encoding="utf-8") as file:
                return int(file.read() or 0)
        except OSError:
            return 0

    def alive(self):
        return self.pid() != 0 and os.path.exists(f"/proc/{self.pid()}")

    def processor_seconds(self):
        try:
            with open(f"/proc/{self.pid()}/stat", encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / TICKS
        except OSError:
            return 0.0

    def memory(self):
        """Bytes that are resident: all, the part without a file, and the most so far."""
        with open(f"/proc/{self.pid()}/status", encoding="utf-8") as file:
            rows = dict(line.split(":", 1) for line in file)
        return {name: int(rows[field].split()[0]) * 1024 for name, field in (("resident", "VmRSS"), ("anonymous", "RssAnon"), ("highest", "VmHWM"))}

    def disk(self):
        """Bytes allocated by the log and by everything else in the data directory."""
        used = {"log": 0, "state": 0}
        for folder, _, files in os.walk(self.data):
            inside = os.path.relpath(folder, self.data).split(os.sep)[0]
            for name in files:
                try:
                    used["log" if inside == "log" else "state"] += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except OSError:
                    continue  # cut or compacted meanwhile
        return used

    def log_position(self):
        return os.path.getsize(self.log)

    def log_since(self, position):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(position)
            return file.read()

    def log_end(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-20:])


class Cluster:
    """Three nodes that scripts/cluster.sh starts and stops. One user at a time."""

    def __init__(self, work, bench_dll, number=0):
        """Further clusters beside the first have their own number from 1 on."""
        self._work = work
        self._bench_dll = bench_dll
        self._directory = os.environ["KAHUNA_CLUSTER_DIR"] + (str(number) if number else "")
        ports = [int(port) + (10 * number) for port in os.environ["KAHUNA_CLUSTER_PORTS"].split()]
        self._environment = {**os.environ, "KAHUNA_CLUSTER_DIR": self._directory, "KAHUNA_CLUSTER_PORTS": " ".join(map(str, ports))}
        self.nodes = [Node(i + 1, port, self._directory) for i, port in enumerate(ports)]
        self._endpoints = ",".join(f"https://127.0.0.1:{port}" for port in ports)
        self._bench = None
        self.filled = 0

    # -- processes ---------------------------------------------------------

    def _script(self, *arguments):
        done = subprocess.run([os.path.join(SCRIPTS, "cluster.sh"), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment)
        if done.returncode != 0:
            raise ScaleError(f"cluster.sh {' '.join(arguments)} failed:\n{done.stderr.strip()}")

    def beside(self, number):
        """Another cluster, on other ports."""
        return Cluster(self._work, self._bench_dll, number)

    def clean(self):
        """Ends the nodes and removes what they hold."""
        self.stop_load()
        if os.path.isdir(self._directory):
            self._script("clean")

    def fresh(self, *options):
        """New nodes without a key."""
        if os.path.isdir(self._directory):
            self._script("clean")
        self.filled = 0
        self._script("up", *options)

    def restart(self, *options):
        """The same nodes on their data, with other options."""
        self._script("down")
        self._script("up", *options)

    def hold(self, keys):
        """A cluster with these keys and no other: the present one, when it has them."""
        if self.filled != keys:
            self.fresh()
            self.fill(keys)

    def kill(self, node):
        self._script("kill", str(node.number))

    def start(self, node, *options):
        """Starts a killed node and does not wait for it: the script would start curl ten times a second, beside the measurement."""
        script = subprocess.Popen([os.path.join(SCRIPTS, "cluster.sh"), "start", str(node.number), *options],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment)
        try:
            wait_for(30, f"node {node.number} was not started", lambda: node.alive() or script.poll() is not None, 0.005)
        finally:
            script.terminate()
            refusal = script.communicate()[1].strip()
        if not node.pid():
            raise ScaleError(f"node {node.number} was not started: {refusal}")

    def wait_for_node(self, node, seconds, condition):
        """Seconds until the condition of a started node is true."""
        begin = time.monotonic()

        def reached():
            if not node.alive():
                raise ScaleError(f"node {node.number} ended; the end of its log:\n{node.log_end()}")
            return condition()

        wait_for(seconds, f"node {node.number} is not back", reached, 0.05)
        return time.monotonic() - begin

    # -- what the nodes say ------------------------------------------------

    def leader(self):
        """The node that leads the first partition."""
        return wait_for(30, "there is no leader", self._leader)

    def _leader(self):
        for node in self.nodes:
            status = node.status()
            if status and status["partitions"][0]["role"] == "leader":
                return node
        return None

    def followers(self):
        leader = self.leader()
        return [node for node in self.nodes if node is not leader]

    def keys(self):
        return sum(p["keys"] for p in self.leader().require_status()["partitions"])

    def stored(self):
        """Per node, up to where its states are flushed; the sum over its partitions."""
        return [sum(p["storedIndex"] for p in node.require_status()["partitions"]) for node in self.nodes]

    def digests_equal(self):
        """Whether all nodes have the same digests, once they have applied the same entries. Without load only."""
        def applied_the_same():
            rows = [[(p["partition"], p["appliedIndex"], p["digest"], p["keys"]) for p in node.require_status()["partitions"]] for node in self.nodes]
            same = all([cell[:2] for cell in row] == [cell[:2] for cell in rows[0]] for row in rows)
            return rows if same else None

        rows = wait_for(120, "the nodes have not applied the same entries", applied_the_same, 0.2)
        return all(row == rows[0] for row in rows)

    # -- load --------------------------------------------------------------

    def load(self, workload, workers, seconds, **more):
        """
        Runs kahuna-bench and returns its report. more: keys (the key space), seed (how many of them are written first), warmup, tick (called every so often until the end),
        every (seconds), until (ends the load when it returns true; called once the measurement has begun).
        """
        report = os.path.join(self._work, "bench.json")
        errors = os.path.join(self._work, "bench.log")
        if os.path.exists(report):
            os.remove(report)
        command = ["dotnet", self._bench_dll, "-c", self._endpoints, "--workload", workload, "--concurrency", str(workers), "--duration", str(seconds),
                   "--warmup", str(more.get("warmup", 2)), "--key-space", str(more.get("keys") or self.filled), "--value-size", "128",
                   "--seed-keys", str(more.get("seed", 0)), "--format", "json", "--output", report]
        with open(errors, "w", encoding="utf-8") as log:
            self._bench = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            if "until" in more:
                wait_for(60, "the load does not begin", lambda: self._bench.poll() is not None or "Running measurement" in read_text(errors), 0.02)
            while self._bench.poll() is None:
                if "tick" in more:
                    more["tick"]()
                if "until" in more and more["until"]():
                    self._bench.send_signal(signal.SIGTERM)
                    self._bench.wait()
                    break
                time.sleep(more.get("every", 0.25))
        finally:
            self.stop_load()
        if not os.path.exists(report):
            raise ScaleError(f"kahuna-bench --workload {workload} --concurrency {workers} failed:\n{read_text(errors)}")
        with open(report, encoding="utf-8") as file:
            return json.load(file)

    def stop_load(self):
        if self._bench is not None and self._bench.poll() is None:
            self._bench.kill()
            self._bench.wait()

    def settle(self, seconds=300):
        """Waits until the nodes have done what load left behind, the storing of states above all: until they use less than a tenth of one processor."""
        before = [time.monotonic(), sum(node.processor_seconds() for node in self.nodes)]

        def idle():
            now = [time.monotonic(), sum(node.processor_seconds() for node in self.nodes)]
            used = (now[1] - before[1]) / (now[0] - before[0])
            before[:] = now
            return used < 0.1

        time.sleep(1)
        wait_for(seconds, "the nodes do not come to rest", idle, 1)

    def measure(self, workload, workers, seconds, **more):
        """A point: rate, latencies, and microseconds of processor time that the three nodes together spent on an operation."""
        samples = []
        report = self.load(workload, workers, seconds, tick=lambda: samples.append((time.time(), sum(n.processor_seconds() for n in self.nodes))), **more)
        row = report["aggregate"]
        begin = instant(report["mode"]["startedAt"])
        inside = [sample for sample in samples if begin <= sample[0] <= begin + report["elapsedSec"]]
        point = {name: row[name] for name in ("rps", "p50Ms", "p99Ms", "p999Ms", "maxMs")}
        point.update({"seconds": report["elapsedSec"], "faults": row["errors"] + row["timeouts"] + row["misses"], "processorUs": None})
        if len(inside) > 1 and row["rps"] > 0:
            (begin, before), (end, after) = inside[0], inside[-1]
            point["processorUs"] = (after - before) / (end - begin) / row["rps"] * 1e6
        return point

    def fill(self, keys):
        """Writes each key once."""
        say(f"filling {keys:,} keys")
        begin = time.monotonic()
        self.load("set", 64, 1, keys=keys, seed=keys, warmup=0)
        if self.keys() != keys:
            raise ScaleError(f"there are {self.keys():,} keys instead of {keys:,}; are the nodes' counts of keys right?")
        self.filled = keys
        return time.monotonic() - begin


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def instant(text):
    """Seconds since 1970 of an ISO time in UTC, whatever the number of its decimals."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + text[19:].rstrip("Z"))
