#!/usr/bin/python3
"""Calls a Kahuna server with Google's gRPC for Python: another implementation of the protocol than ours.

Usage: foreign_client.py ADDRESS CA_FILE DESCRIPTOR_SET

ADDRESS is host:port, CA_FILE holds the trusted certificates in PEM, DESCRIPTOR_SET is a serialized
google.protobuf.FileDescriptorSet with the kahuna.v1 files. Every check prints one line; the exit
code is 0 when all of them hold. The server may be any node of a cluster; keys are written under
the bucket foreign-client/.
"""
import os
import sys
import threading
import time
import traceback

try:
    import grpc
except ImportError:
    sys.exit("The Debian package python3-grpcio is missing; apt-get install python3-grpcio brings it.")
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    sys.exit("The Debian package python3-protobuf is missing; apt-get install python3-protobuf brings it.")

PATIENCE = 30
PERSISTENT = 1
MIB = 1 << 20


class Stubs:
    """Methods and messages by name, from the descriptors alone: no generated code."""

    def __init__(self, channel, descriptor_set):
        self._channel = channel
        self._pool = descriptor_pool.DescriptorPool()
        with open(descriptor_set, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        self._methods = {}
        for each in files.file:
            self._pool.Add(each)
            for service in each.service:
                for method in service.method:
                    self._methods[f"/{each.package}.{service.name}/{method.name}"] = method

    def message(self, name):
        return self._class_of(self._pool.FindMessageTypeByName("kahuna.v1." + name))

    def method(self, service, name):
        path = f"/kahuna.v1.{service}/{name}"
        found = self._methods[path]
        kind = ("stream" if found.client_streaming else "unary") + "_" + ("stream" if found.server_streaming else "unary")
        reply = self._class_of(self._pool.FindMessageTypeByName(found.output_type.lstrip(".")))
        return getattr(self._channel, kind)(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=reply.FromString)

    def _class_of(self, descriptor):
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        # As it was called before protobuf 4.22.
        return message_factory.MessageFactory(self._pool).GetPrototype(descriptor)


class Checks:
    def __init__(self, stubs):
        self.stubs = stubs
        self.key = f"foreign-client/{os.getpid()}-{time.time_ns()}"

    def unary_describe(self):
        reply = self.stubs.method("Cluster", "DescribeCluster")(self.stubs.message("DescribeClusterRequest")(), timeout=PATIENCE)
        assert reply.cluster_id, reply
        assert reply.ready, reply

    def unary_set_and_get(self):
        set_reply = self._set(self.key, b"value")
        assert set_reply.set and set_reply.revision >= 1, set_reply
        get_reply = self._get(self.key)
        assert get_reply.found and get_reply.value.data == b"value", get_reply
        assert get_reply.revision == set_reply.revision, get_reply
        assert not self._get(self.key + "-absent").found

    def null_and_empty_values_differ(self):
        self._set(self.key + "-empty", b"")
        self._set(self.key + "-null", None)
        assert self._get(self.key + "-empty").value.HasField("data")
        assert not self._get(self.key + "-null").value.HasField("data")

    def value_of_a_mebibyte(self):
        value = os.urandom(MIB)
        self._set(self.key + "-large", value)
        assert self._get(self.key + "-large").value.data == value

    def value_of_a_mebibyte_compressed(self):
        value = b"0123456789abcdef" * (MIB // 16)
        self._set(self.key + "-packed", value, compression=grpc.Compression.Gzip)
        assert self._get(self.key + "-packed").value.data == value

    def server_stream(self):
        call = self.stubs.method("Cluster", "WatchCluster")(self.stubs.message("DescribeClusterRequest")(), timeout=PATIENCE)
        assert next(call).cluster_id
        call.cancel()
        try:
            for _ in call:
                pass
            raise AssertionError("the cancelled stream went on to an end")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.CANCELLED, error

    def client_stream(self):
        echo = self.stubs.message("EchoMessage")
        total = self.stubs.method("Cluster", "Sink")((echo(payload=b"x" * n) for n in range(1000)), timeout=PATIENCE)
        assert total.messages == 1000 and total.bytes == 499500, total

    def client_stream_without_messages(self):
        assert self.stubs.method("Cluster", "Sink")(iter(()), timeout=PATIENCE).messages == 0

    def duplex_stream(self):
        echo = self.stubs.message("EchoMessage")
        answered = threading.Semaphore(1)

        def requests():
            for n in range(200):
                # The next message leaves after the answer to the last one: both directions are open at once.
                assert answered.acquire(timeout=PATIENCE)
                yield echo(payload=b"%d" % n)

        seen = 0
        for reply in self.stubs.method("Cluster", "Echo")(requests(), timeout=PATIENCE):
            assert reply.payload == b"%d" % seen, reply
            seen += 1
            answered.release()
        assert seen == 200, seen

    def duplex_stream_of_large_messages(self):
        echo = self.stubs.message("EchoMessage")
        payload = os.urandom(MIB)
        replies = list(self.stubs.method("Cluster", "Echo")((echo(payload=payload) for _ in range(8)), timeout=PATIENCE))
        assert len(replies) == 8 and all(reply.payload == payload for reply in replies)

    def deadline(self):
        echo = self.stubs.message("EchoMessage")
        began = time.monotonic()
        try:
            list(self.stubs.method("Cluster", "Echo")(iter([echo(delay_ms=50_000)]), timeout=0.3))
            raise AssertionError("a call outlived its deadline")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        assert time.monotonic() - began < PATIENCE

    def metadata(self):
        metadata = (("x-text", "a value"), ("x-blob-bin", bytes(range(256))), ("x-blob-bin", b""))
        reply, call = self.stubs.method("Cluster", "DescribeCluster").with_call(
            self.stubs.message("DescribeClusterRequest")(), timeout=PATIENCE, metadata=metadata)
        assert reply.cluster_id
        assert call.code() == grpc.StatusCode.OK

    def error_status(self):
        request = self.stubs.message("SetKeyValueRequest")(key=self.key, value=self.stubs.message("Value")(data=b"x"))
        try:
            self.stubs.method("KeyValues", "SetKeyValue")(request, timeout=PATIENCE)
            raise AssertionError("a write without durability was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert "durability" in error.details(), error.details()
            assert ("kahuna-outcome", "did-not-happen") in [(key, value) for key, value in error.trailing_metadata()], error.trailing_metadata()

    def error_status_in_a_stream(self):
        echo = self.stubs.message("EchoMessage")
        call = self.stubs.method("Cluster", "Echo")(iter([echo(payload=b"a"), echo(delay_ms=60_001)]), timeout=PATIENCE)
        assert next(call).payload == b"a"
        try:
            next(call)
            raise AssertionError("a delay over the limit was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert "60000" in error.details().replace(",", ""), error.details()

    def unknown_method(self):
        call = self.stubs._channel.unary_unary("/kahuna.v1.KeyValues/NoSuchMethod")
        try:
            call(b"", timeout=PATIENCE)
            raise AssertionError("a method that is not there answered")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error

    def garbage(self):
        call = self.stubs._channel.unary_unary("/kahuna.v1.KeyValues/SetKeyValue")
        try:
            call(b"\xff\xff\xff\xff", timeout=PATIENCE)
            raise AssertionError("garbage was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INTERNAL, error

    def many_calls_at_once(self):
        get = self.stubs.method("KeyValues", "GetKeyValue")
        request = self.stubs.message("GetKeyValueRequest")(key=self.key, durability=PERSISTENT)
        calls = [get.future(request, timeout=PATIENCE) for _ in range(300)]
        for call in calls:
            call.result()

    def _set(self, key, data, **options):
        value = self.stubs.message("Value")()
        if data is not None:
            value.data = data
        request = self.stubs.message("SetKeyValueRequest")(key=key, value=value, durability=PERSISTENT)
        return self.stubs.method("KeyValues", "SetKeyValue")(request, timeout=PATIENCE, **options)

    def _get(self, key):
        request = self.stubs.message("GetKeyValueRequest")(key=key, durability=PERSISTENT)
        return self.stubs.method("KeyValues", "GetKeyValue")(request, timeout=PATIENCE)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    address, ca_file, descriptor_set = sys.argv[1:]
    with open(ca_file, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    failed = 0
    with grpc.secure_channel(address, credentials, options=[("grpc.max_receive_message_length", 8 * MIB)]) as channel:
        checks = Checks(Stubs(channel, descriptor_set))
        for name in [name for name in vars(Checks) if not name.startswith("_")]:
            try:
                getattr(checks, name)()
                print(f"ok      {name.replace('_', ' ')}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {name.replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
