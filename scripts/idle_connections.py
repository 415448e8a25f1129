"""Opens TLS connections to a node of this machine and leaves them idle: what each costs the node.

usage: idle_connections.py PORT CONNECTIONS PID    (PORT and PID of the node; `ulimit -n` above CONNECTIONS for both)
"""

import socket
import ssl
import sys
import time

# The preface of HTTP/2 and empty settings: the node has an HTTP/2 connection then, and no stream.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def connect(port, context):
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
    connection.sendall(GREETING)
    connection.recv(4096)
    return connection


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    port, count, pid = (int(argument) for argument in sys.argv[1:])
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    connect(port, context).close()
    time.sleep(2)
    before = resident_kb(pid)
    held = [connect(port, context) for _ in range(count)]
    time.sleep(5)
    after = resident_kb(pid)
    print(f"{count} connections: {before // 1024} MB before, {after // 1024} MB after, {(after - before) / count:.1f} KB each")
    for connection in held:
        connection.close()
    time.sleep(25)
    print(f"25 s after their end: {resident_kb(pid) // 1024} MB")


main()
