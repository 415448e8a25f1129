#!/usr/bin/python3
"""Calls a Kahuna server with Google's gRPC for Python: another implementation of the protocol than ours.

Usage: foreign_client.py ADDRESS CA_FILE DESCRIPTOR_SET [--protocol-only]

ADDRESS is host:port, CA_FILE holds the trusted certificates in PEM, DESCRIPTOR_SET is a serialized
google.protobuf.FileDescriptorSet with the files of kahuna.v1, kahuna.test, health and reflection. Every check prints
one line; the exit code is 0 when all of them hold. The server may be any node of a cluster; keys are written under
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

sys.dont_write_bytecode = True
from lock_checks import PATIENCE, PERSISTENT, LockChecks
from service_checks import HEALTH, REFLECTION, ServiceChecks

MIB = 1 << 20
TEST = "kahuna.test"


class Stubs:
    """Methods and messages by name, from the descriptors alone: no generated code."""

    def __init__(self, channel, descriptor_set):
        self._channel = channel
        self._pool = descriptor_pool.DescriptorPool()
        with open(descriptor_set, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        self._files = {each.name: each for each in files.file}
        self._methods = {}
        self._answered = set()
        for each in files.file:
            self._pool.Add(each)
            for service in each.service:
                for method in service.method:
                    self._methods[f"/{each.package}.{service.name}/{method.name}"] = method

    def message(self, name, package="kahuna.v1"):
        return self._class_of(self._pool.FindMessageTypeByName(f"{package}.{name}"))

    def method(self, service, name, package="kahuna.v1"):
        path = f"/{package}.{service}/{name}"
        found = self._methods[path]
        kind = ("stream" if found.client_streaming else "unary") + "_" + ("stream" if found.server_streaming else "unary")
        reply = self._class_of(self._pool.FindMessageTypeByName(found.output_type.lstrip(".")))

        def read(message):
            self._answered.add(path)
            return reply.FromString(message)

        return getattr(self._channel, kind)(path, request_serializer=lambda message: message.SerializeToString(), response_deserializer=read)

    def methods_of(self, *packages):
        """Service and method of each method of the packages."""
        paths = [path[1:].split("/") for path in self._methods]
        return {(service, method) for service, method in paths if service.rpartition(".")[0] in packages}

    def answered(self):
        """As methods_of: those that have given a reply here."""
        return {tuple(path[1:].split("/")) for path in self._answered}

    def is_file(self, name, serialized):
        """The bytes are the description of this file."""
        return self._files[name] == descriptor_pb2.FileDescriptorProto.FromString(serialized)

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


class ProtocolChecks(Checks):
    """The kinds of streams that only a server for testing the protocol has."""

    def client_stream(self):
        echo = self.stubs.message("EchoMessage", TEST)
        total = self.stubs.method("Streams", "Sink", TEST)((echo(payload=b"x" * n) for n in range(1000)), timeout=PATIENCE)
        assert total.messages == 1000 and total.bytes == 499500, total

    def client_stream_without_messages(self):
        assert self.stubs.method("Streams", "Sink", TEST)(iter(()), timeout=PATIENCE).messages == 0

    def duplex_stream(self):
        echo = self.stubs.message("EchoMessage", TEST)
        answered = threading.Semaphore(1)

        def requests():
            for n in range(200):
                # The next message leaves after the answer to the last one: both directions are open at once.
                assert answered.acquire(timeout=PATIENCE)
                yield echo(payload=b"%d" % n)

        seen = 0
        for reply in self.stubs.method("Streams", "Echo", TEST)(requests(), timeout=PATIENCE):
            assert reply.payload == b"%d" % seen, reply
            seen += 1
            answered.release()
        assert seen == 200, seen

    def duplex_stream_of_large_messages(self):
        echo = self.stubs.message("EchoMessage", TEST)
        payload = os.urandom(MIB)
        replies = list(self.stubs.method("Streams", "Echo", TEST)((echo(payload=payload) for _ in range(8)), timeout=PATIENCE))
        assert len(replies) == 8 and all(reply.payload == payload for reply in replies)

    def deadline(self):
        echo = self.stubs.message("EchoMessage", TEST)
        began = time.monotonic()
        try:
            list(self.stubs.method("Streams", "Echo", TEST)(iter([echo(delay_ms=50_000)]), timeout=0.3))
            raise AssertionError("a call outlived its deadline")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        assert time.monotonic() - began < PATIENCE

    def error_status_in_a_stream(self):
        echo = self.stubs.message("EchoMessage", TEST)
        call = self.stubs.method("Streams", "Echo", TEST)(iter([echo(payload=b"a"), echo(delay_ms=60_001)]), timeout=PATIENCE)
        assert next(call).payload == b"a"
        try:
            next(call)
            raise AssertionError("a delay over the limit was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert "60000" in error.details().replace(",", ""), error.details()


class ProductChecks(LockChecks, ServiceChecks, Checks):
    """What only the product serves, and a server that tries the protocol alone does not."""

    def errors_of_messages_tell_the_outcome(self):
        # A key of two bytes that are no UTF-8, a message cut off, and a method that is not there.
        for method, body, code, words in [
                ("KeyValues/SetKeyValue", b"\x0a\x02\xff\xfe", grpc.StatusCode.INVALID_ARGUMENT, "key is not valid UTF-8"),
                ("KeyValues/SetKeyValue", b"\xff\xff\xff\xff", grpc.StatusCode.INTERNAL, "SetKeyValueRequest"),
                ("Cluster/Echo", b"", grpc.StatusCode.UNIMPLEMENTED, "no method"),
                ("Cluster/Sink", b"", grpc.StatusCode.UNIMPLEMENTED, "no method")]:
            call = self.stubs._channel.unary_unary("/kahuna.v1." + method)
            self._refused(code, words, lambda: call(body, timeout=PATIENCE))

    def repeated_calls_happen_once(self):
        session = str(int.from_bytes(os.urandom(7), "big") + 1)
        for number in ("1", "2", "2", "1", "3"):
            metadata = (("x-kahuna-session", session), ("x-kahuna-sequence", number))
            assert self._increment(self.key + "-once", metadata=metadata).value == int(number)
        by_key = (("x-kahuna-idempotency-key", self.key),)
        assert self._increment(self.key + "-once", metadata=by_key).value == 4
        assert self._increment(self.key + "-once", metadata=by_key).value == 4

    def numbers_that_are_none(self):
        for metadata, words in [
                ((("x-kahuna-session", "1"),), "x-kahuna-sequence is missing"),
                ((("x-kahuna-session", "a"), ("x-kahuna-sequence", "1")), "x-kahuna-session"),
                ((("x-kahuna-session", "1"), ("x-kahuna-sequence", "0")), "x-kahuna-sequence"),
                ((("x-kahuna-idempotency-key", "k" * 257),), "257 bytes")]:
            self._refused(grpc.StatusCode.INVALID_ARGUMENT, words, lambda: self._increment(self.key + "-none", metadata=metadata))

    def sequences(self):
        name = self.key + "-sequence"
        self._refused(grpc.StatusCode.NOT_FOUND, "create it first", lambda: self._sequence("NextSequenceValue", name=name))
        assert self._sequence("CreateSequence", name=name, max=5).created
        assert not self._sequence("CreateSequence", name=name).created
        assert self._sequence("NextSequenceValue", name=name).value == 1
        reserved = self._sequence("ReserveSequenceRange", name=name, count=3)
        assert (reserved.first, reserved.last) == (2, 4), reserved
        self._refused(grpc.StatusCode.OUT_OF_RANGE, "only 1 values", lambda: self._sequence("ReserveSequenceRange", name=name, count=2))
        assert self._sequence("GetSequence", name=name).sequence.latest == 4
        listed, token = [], None
        while token != "":
            page = self._sequence("ListSequences", prefix=name, page_token=token or "")
            listed += [each.name for each in page.sequences]
            token = page.next_page_token
        assert listed == [name], listed
        assert self._sequence("UpdateSequence", name=name, cycle=True).updated
        assert [self._sequence("NextSequenceValue", name=name).value for _ in range(3)] == [5, 1, 2]
        assert self._sequence("UpdateSequence", name=name, cycle=False, max=2**63 - 1).updated
        self._refused(grpc.StatusCode.OUT_OF_RANGE, "only 9,223,372,036,854,775,805 values", lambda: self._sequence("ReserveSequenceRange", name=name, count=2**63 - 1))
        self._refused(grpc.StatusCode.FAILED_PRECONDITION, "latest value, 2, outside", lambda: self._sequence("UpdateSequence", name=name, max=1))
        assert self._sequence("DeleteSequence", name=name).deleted
        assert not self._sequence("GetSequence", name=name).HasField("sequence")

    def sequences_that_cannot_be(self):
        name = self.key + "-bad"
        for method, fields, words in [
                ("CreateSequence", {"increment": 0}, "increment is 0"),
                ("CreateSequence", {"min": 2, "max": 1}, "min is 2"),
                ("CreateSequence", {"initial": 0}, "initial is 0"),
                ("CreateSequence", {"name": ""}, "name is empty"),
                ("CreateSequence", {"name": "n" * 1025}, "1,025 bytes"),
                ("CreateSequence", {"name": "__kahuna"}, "reserved"),
                ("ReserveSequenceRange", {"count": 0}, "count is 0"),
                ("ReserveSequenceRange", {"count": -5}, "count is -5"),
                ("UpdateSequence", {}, "nothing is changed"),
                ("ListSequences", {"prefix": "", "page_token": "?"}, "page_token")]:
            given = fields if "prefix" in fields or "name" in fields else {"name": name, **fields}
            self._refused(grpc.StatusCode.INVALID_ARGUMENT, words, lambda: self._sequence(method, **given))

    def every_method_has_answered(self):
        """The last of the checks."""
        methods = self.stubs.methods_of("kahuna.v1", REFLECTION) | {(HEALTH + ".Health", "Check"), (HEALTH + ".Health", "Watch")}
        services = {service for service, _ in methods}
        assert services >= {"kahuna.v1." + name for name in ("KeyValues", "Transactions", "Scripts", "Sequences", "Locks", "Cluster")}, services
        assert methods <= self.stubs.answered(), methods - self.stubs.answered()

    def _refused(self, code, words, call):
        try:
            call()
            raise AssertionError(f"what should end with {code} was taken")
        except grpc.RpcError as error:
            assert error.code() == code, error
            assert words in error.details(), error.details()
            assert ("kahuna-outcome", "did-not-happen") in [(key, value) for key, value in error.trailing_metadata()], error.trailing_metadata()

    def _sequence(self, method, **fields):
        request = self.stubs.message(method + "Request")(**fields)
        return self.stubs.method("Sequences", method)(request, timeout=PATIENCE)

    def _increment(self, key, **options):
        request = self.stubs.message("IncrementKeyValueRequest")(key=key, durability=PERSISTENT, amount=1)
        return self.stubs.method("KeyValues", "IncrementKeyValue")(request, timeout=PATIENCE, **options)


def main():
    arguments = [each for each in sys.argv[1:] if each != "--protocol-only"]
    if len(arguments) != 3:
        sys.exit(__doc__)
    address, ca_file, descriptor_set = arguments
    kinds = [Checks, ProtocolChecks] if "--protocol-only" in sys.argv else [Checks, LockChecks, ServiceChecks, ProductChecks]
    with open(ca_file, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    failed = 0
    with grpc.secure_channel(address, credentials, options=[("grpc.max_receive_message_length", 8 * MIB)]) as channel:
        checks = kinds[-1](Stubs(channel, descriptor_set))
        for name in [name for kind in kinds for name in vars(kind) if not name.startswith("_")]:
            try:
                getattr(checks, name)()
                print(f"ok      {name.replace('_', ' ')}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {name.replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
