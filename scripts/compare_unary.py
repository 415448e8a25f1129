"""Unary reads with Google's gRPC for Python, for scripts/compare.sh --against. Writes a report as kahuna-bench does, with what the comparison reads."""

import argparse
import json
import threading
import time

import grpc

METHOD = "/kahuna.v1.KeyValues/GetKeyValue"


def request(key):
    """A GetKeyValueRequest: the key, and the persistent durability."""
    name = key.encode()
    return b"\x0a" + bytes([len(name)]) + name + b"\x10\x01"


def call_until(call, message, end, latencies):
    while (begun := time.perf_counter()) < end:
        call(message)
        latencies.append(time.perf_counter() - begun)


def measure(call, callers, seconds):
    """Latencies in seconds, sorted, and how long it took."""
    begun = time.perf_counter()
    latencies = [[] for _ in range(callers)]
    threads = [threading.Thread(target=call_until, args=(call, request(f"bench:{i}"), begun + seconds, latencies[i])) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(each for caller in latencies for each in caller), time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint", required=True, help="host:port")
    parser.add_argument("--trusted", required=True, help="the authority's certificate, PEM")
    parser.add_argument("--callers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--warmup", type=float, required=True)
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    with open(arguments.trusted, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    with grpc.secure_channel(arguments.endpoint, credentials) as channel:
        call = channel.unary_unary(METHOD)
        measure(call, arguments.callers, arguments.warmup)
        latencies, took = measure(call, arguments.callers, arguments.seconds)
    aggregate = {"rps": len(latencies) / took, "p50Ms": latencies[len(latencies) // 2] * 1000, "p99Ms": latencies[len(latencies) * 99 // 100] * 1000}
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump({"aggregate": aggregate}, file)


main()
