"""The checks of foreign_client.py that are about single keys, the framed stream, health and reflection."""
import struct

import grpc

from lock_checks import PATIENCE, PERSISTENT

EPHEMERAL = 2
HEALTH, REFLECTION = "grpc.health.v1", "grpc.reflection.v1"
SERVING, SERVICE_UNKNOWN = 1, 3

# Of docs/wire-format.md.
WIRE_VERSION = 3
HELLO, REQUESTS, REPLIES, MAP = 1, 2, 3, 4
GET, FOUND, FORWARD = 0x80, 2, 1 << 31
HEADER = struct.Struct("<BBHI")
REQUEST, COMMAND = struct.Struct("<III"), struct.Struct("<BBHHHI")
REPLY, OUTCOME = struct.Struct("<II"), struct.Struct("<BBHIqq")
SLOT_MAP_VERSION = struct.Struct("<Q")


class ServiceChecks:
    """A part of ProductChecks, which has the stubs and the key."""

    def exists_tells_revision_and_life_without_the_value(self):
        key = self.key + "-exists"
        assert not self._key("ExistsKeyValue", key=key, durability=PERSISTENT).found
        written = self._key("SetKeyValue", key=key, value=self._value(b"v"), durability=PERSISTENT, ttl_ms=600_000)
        found = self._key("ExistsKeyValue", key=key, durability=PERSISTENT)
        assert found.found and found.revision == written.revision and 0 < found.remaining_ttl_ms <= 600_000, found
        assert self._key("ExistsKeyValue", key=key, durability=PERSISTENT, at_revision=written.revision).found
        assert not self._key("ExistsKeyValue", key=key, durability=EPHEMERAL).found

    def extend_changes_the_life_of_a_key_and_not_its_revision(self):
        key = self.key + "-extend"
        absent = self._key("ExtendKeyValue", key=key, durability=EPHEMERAL, ttl_ms=1)
        assert not absent.extended and not absent.found, absent
        revision = self._key("SetKeyValue", key=key, value=self._value(b"v"), durability=EPHEMERAL).revision
        extended = self._key("ExtendKeyValue", key=key, durability=EPHEMERAL, ttl_ms=600_000)
        assert extended.extended and extended.found and extended.revision == revision, extended
        assert 0 < self._key("GetKeyValue", key=key, durability=EPHEMERAL).remaining_ttl_ms <= 600_000
        other = self.stubs.message("Conditions")(if_revision=revision + 1)
        kept = self._key("ExtendKeyValue", key=key, durability=EPHEMERAL, ttl_ms=0, conditions=other)
        assert not kept.extended and kept.found, kept
        assert self._key("ExtendKeyValue", key=key, durability=EPHEMERAL, ttl_ms=0).extended
        assert not self._key("GetKeyValue", key=key, durability=EPHEMERAL).HasField("remaining_ttl_ms")

    def delete_gives_what_was_there(self):
        key = self.key + "-delete"
        first = self._key("SetKeyValue", key=key, value=self._value(b"a"), durability=PERSISTENT).revision
        condition = self.stubs.message("Conditions")(if_value=self._value(b"b"))
        kept = self._key("DeleteKeyValue", key=key, durability=PERSISTENT, conditions=condition)
        assert not kept.deleted and kept.found and kept.revision == first, kept
        gone = self._key("DeleteKeyValue", key=key, durability=PERSISTENT, return_previous=True)
        assert gone.deleted and gone.previous.data == b"a" and gone.previous_revision == first < gone.revision, gone
        assert not self._key("DeleteKeyValue", key=key, durability=PERSISTENT).found
        assert self._key("GetKeyValue", key=key, durability=PERSISTENT, at_revision=first).value.data == b"a"

    def scan_reads_pages_in_order(self):
        prefix = self.key + "-scan/"
        for name in ("c", "a", "b"):
            self._key("SetKeyValue", key=prefix + name, value=self._value(name.encode()), durability=PERSISTENT)
        first = self._key("ScanKeyValues", prefix=prefix, durability=PERSISTENT, limit=2)
        assert [(each.key, each.value.data) for each in first.entries] == [(prefix + "a", b"a"), (prefix + "b", b"b")], first
        second = self._key("ScanKeyValues", prefix=prefix, durability=PERSISTENT, limit=2, page_token=first.next_page_token)
        assert [each.key for each in second.entries] == [prefix + "c"] and not second.next_page_token, second
        back = self._key("ScanKeyValues", prefix=prefix, durability=PERSISTENT, descending=True, keys_only=True)
        assert [each.key for each in back.entries] == [prefix + name for name in "cba"], back
        assert self._key("CountKeyValues", prefix=prefix, durability=PERSISTENT).count == 3

    def batches_have_an_outcome_for_each_item(self):
        prefix = self.key + "-batch/"
        item = self.stubs.message("SetKeyValueRequest")
        items = [item(key=prefix + name, value=self._value(name.encode()), durability=PERSISTENT) for name in "abc"]
        for atomic in (False, True):
            done = self._key("SetManyKeyValues", items=items, atomic=atomic)
            assert [each.result.set for each in done.outcomes] == [True] * 3, done
        items[1].conditions.if_absent = True
        mixed = self._key("SetManyKeyValues", items=items)
        assert [each.result.set for each in mixed.outcomes] == [True, False, True], mixed
        none = self._key("SetManyKeyValues", items=items, atomic=True)
        assert [(each.result.set, each.result.revision) for each in none.outcomes] == [(False, 3), (False, 2), (False, 3)], none
        reads = [self.stubs.message("GetKeyValueRequest")(key=prefix + name, durability=PERSISTENT) for name in "az"]
        for atomic in (False, True):
            got = self._key("GetManyKeyValues", items=reads, atomic=atomic).outcomes
            assert [(each.result.found, each.result.value.data) for each in got] == [(True, b"a"), (False, b"")], got
        looks = [self.stubs.message("ExistsKeyValueRequest")(key=prefix + name, durability=PERSISTENT) for name in "az"]
        assert [each.result.found for each in self._key("ExistsManyKeyValues", items=looks).outcomes] == [True, False]
        gone = [self.stubs.message("DeleteKeyValueRequest")(key=prefix + name, durability=PERSISTENT) for name in "az"]
        assert [each.result.deleted for each in self._key("DeleteManyKeyValues", items=gone).outcomes] == [True, False]
        first = self._key("DeleteKeyValueRange", prefix=prefix, durability=PERSISTENT, limit=1)
        assert first.deleted == 1 and first.next_page_token, first
        rest = self._key("DeleteKeyValueRange", prefix=prefix, durability=PERSISTENT, page_token=first.next_page_token)
        assert rest.deleted == 1 and not rest.next_page_token, rest

    def transactions_take_one_list_or_the_other(self):
        prefix = self.key + "-transaction/"
        execute = self.stubs.method("Transactions", "ExecuteTransaction")
        request = self.stubs.message("ExecuteTransactionRequest")
        absent = dict(key=prefix + "a", absent=True)
        then = [dict(set=dict(key=prefix + "a", value=dict(data=b"1"))), dict(increment=dict(key=prefix + "n", amount=2))]
        otherwise = [dict(get=dict(key=prefix + "a")), dict(delete=dict(key=prefix + "n", return_previous=True))]
        for held in (True, False):
            done = execute(request(durability=PERSISTENT, conditions=[absent], then=then, otherwise=otherwise), timeout=PATIENCE)
            assert done.succeeded == held and [each.held for each in done.conditions] == [held], done
        assert done.results[0].get.value.data == b"1" and done.results[1].delete.previous.data == b"2", done
        for words, bad in [("has no operations", {}), ("named twice", dict(then=then + then)), ("durability", dict(then=then, durability=0))]:
            try:
                execute(request(**{"durability": PERSISTENT, **bad}), timeout=PATIENCE)
                raise AssertionError("a bad transaction was carried out")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and words in error.details(), error

    def scripts_run_as_one_change(self):
        run = self.stubs.method("Scripts", "RunScript")
        request = self.stubs.message("RunScriptRequest")
        value = self.stubs.message("ScriptValue")
        key = self.key + "-script/a"
        done = run(request(script="set @k @v\nlet x = get @k\nreturn x", parameters={"k": value(text=key), "v": value(integer=7)}), timeout=PATIENCE)
        assert done.writes == 1 and done.result.entry.key == key and done.result.entry.value.text == "7", done
        for words, code, script in [("line 1, column", grpc.StatusCode.INVALID_ARGUMENT, "set"), ("enough", grpc.StatusCode.FAILED_PRECONDITION, "set @k 1\nthrow 'enough'")]:
            try:
                run(request(script=script, parameters={"k": value(text=key)}), timeout=PATIENCE)
                raise AssertionError("a bad script was carried out")
            except grpc.RpcError as error:
                assert error.code() == code and words in error.details(), error
        assert run(request(script="get @k", parameters={"k": value(text=key)}), timeout=PATIENCE).result.entry.value.text == "7"

    def stream_sends_all_keys_in_order(self):
        prefix = self.key + "-stream/"
        names = [f"{prefix}{number:03}" for number in range(100)]
        for name in names:
            self._key("SetKeyValue", key=name, value=self._value(b"v" * 2_000), durability=PERSISTENT)
        stream = self.stubs.method("KeyValues", "StreamKeyValues")
        request = self.stubs.message("StreamKeyValuesRequest")
        messages = list(stream(request(prefix=prefix, durability=PERSISTENT), timeout=PATIENCE))
        assert [each.key for message in messages for each in message.entries] == names and len(messages) > 2, messages
        rest = stream(request(prefix=prefix, durability=PERSISTENT, page_token=messages[0].next_page_token), timeout=PATIENCE)
        assert [each.key for message in rest for each in message.entries] == names[len(messages[0].entries):]
        back = stream(request(prefix=prefix, durability=PERSISTENT, descending=True, keys_only=True, limit=3), timeout=PATIENCE)
        assert [each.key for message in back for each in message.entries] == names[:-4:-1]
        try:
            list(stream(request(prefix=prefix), timeout=PATIENCE))
            raise AssertionError("a stream without a durability was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert ("kahuna-outcome", "did-not-happen") in error.trailing_metadata(), error

    def watch_tells_state_and_changes(self):
        prefix = self.key + "-watch/"
        self._key("SetKeyValue", key=prefix + "a", value=self._value(b"1"), durability=PERSISTENT)
        watch = self.stubs.method("KeyValues", "WatchKeyValues")
        request = self.stubs.message("WatchKeyValuesRequest")
        call = watch(request(prefix=prefix, durability=PERSISTENT, with_state=True, previous_values=True), timeout=PATIENCE)
        entries = next(call).state
        assert [(each.key, each.value.data) for each in entries] == [(prefix + "a", b"1")], entries
        complete = next(call)
        assert complete.state_complete, complete
        self._key("SetKeyValue", key=prefix + "a", value=self._value(b"2"), durability=PERSISTENT)
        self._key("DeleteKeyValue", key=prefix + "a", durability=PERSISTENT)
        def events(messages):
            return (each for message in messages for each in message.events)
        told = events(call)
        written, deleted = next(told), next(told)
        assert (written.kind, written.value.data, written.previous.data) == (1, b"2", b"1"), written
        assert (deleted.kind, deleted.previous.data) == (2, b"2"), deleted
        call.cancel()
        again = watch(request(key=prefix + "a", durability=PERSISTENT, from_position=complete.position), timeout=PATIENCE)
        told = events(again)
        assert [next(told).kind, next(told).kind] == [1, 2]
        again.cancel()
        try:
            next(watch(request(key="a", durability=PERSISTENT, from_position=b"no position"), timeout=PATIENCE))
            raise AssertionError("a position that is none was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            assert ("kahuna-outcome", "did-not-happen") in error.trailing_metadata(), error

    def watch_stream_greets_and_begins_a_watch(self):
        frame = self.stubs.message("Frame")
        key = self.key.encode()
        begin = struct.pack("<IBBBBIHH", 12 + len(key), 1, PERSISTENT, 1, 1, 9, 0, len(key)) + key
        replies = self.stubs.method("Cluster", "Watch")(iter([
            frame(payload=HEADER.pack(HELLO, 0, WIRE_VERSION, 0)),
            frame(payload=HEADER.pack(6, 0, 0, 1) + begin)]), timeout=PATIENCE)
        assert next(replies).payload == HEADER.pack(HELLO, 0, WIRE_VERSION, 1) + SLOT_MAP_VERSION.pack(1)
        for _ in replies:
            pass
        assert replies.code() == grpc.StatusCode.OK, replies.code()

    def exchange_greets_and_answers_a_frame(self):
        self._key("SetKeyValue", key=self.key, value=self._value(b"framed"), durability=PERSISTENT)
        key = self.key.encode()
        command = COMMAND.pack(GET, PERSISTENT, 0, len(key), 0, 0) + key
        frame = self.stubs.message("Frame")
        replies = self.stubs.method("Cluster", "Exchange")(iter([
            frame(payload=HEADER.pack(HELLO, 0, WIRE_VERSION, 0)),
            frame(payload=HEADER.pack(REQUESTS, 0, 0, 1) + REQUEST.pack(7, FORWARD, len(command)) + command)]), timeout=PATIENCE)
        assert next(replies).payload == HEADER.pack(HELLO, 0, WIRE_VERSION, 1) + SLOT_MAP_VERSION.pack(1)
        leaders = next(replies).payload
        assert HEADER.unpack_from(leaders) == (MAP, 0, 0, 1), leaders
        assert self.stubs.message("DescribeClusterResponse").FromString(leaders[HEADER.size:]).cluster_id
        # A change of a leader may send the map again.
        answer = next(each.payload for each in replies if each.payload[0] != MAP)
        assert HEADER.unpack_from(answer) == (REPLIES, 0, 0, 1), answer
        assert REPLY.unpack_from(answer, HEADER.size)[0] == 7, answer
        status, _, _, length, revision, _ = OUTCOME.unpack_from(answer, HEADER.size + REPLY.size)
        assert (status, length) == (FOUND, len(b"framed")) and answer.endswith(b"framed") and revision > 0, answer
        for _ in replies:
            pass
        assert replies.code() == grpc.StatusCode.OK, replies.code()

    def exchange_refuses_another_version(self):
        hello = self.stubs.message("Frame")(payload=HEADER.pack(HELLO, 0, 999, 0))
        try:
            list(self.stubs.method("Cluster", "Exchange")(iter([hello]), timeout=PATIENCE))
            raise AssertionError("a version that nobody speaks was taken")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.FAILED_PRECONDITION and "999" in error.details(), error

    def health(self):
        check = self.stubs.method("Health", "Check", HEALTH)
        request = self.stubs.message("HealthCheckRequest", HEALTH)
        for service in "", "kahuna.v1.KeyValues", "kahuna.v1.Sequences", "kahuna.v1.Locks", "kahuna.v1.Transactions", "kahuna.v1.Scripts", "kahuna.v1.Cluster":
            assert check(request(service=service), timeout=PATIENCE).status == SERVING, service
        try:
            check(request(service="no.such.Service"), timeout=PATIENCE)
            raise AssertionError("a service that is not there has a health")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error

    def health_is_watched(self):
        watch = self.stubs.method("Health", "Watch", HEALTH)
        request = self.stubs.message("HealthCheckRequest", HEALTH)
        for service, status in ("kahuna.v1.KeyValues", SERVING), ("no.such.Service", SERVICE_UNKNOWN):
            call = watch(request(service=service), timeout=PATIENCE)
            assert next(call).status == status, service
            call.cancel()

    def reflection_gives_the_services_and_their_files(self):
        ask = self.stubs.message("ServerReflectionRequest", REFLECTION)
        replies = list(self.stubs.method("ServerReflection", "ServerReflectionInfo", REFLECTION)(iter([
            ask(list_services=""),
            ask(file_containing_symbol="kahuna.v1.Locks.AcquireLock"),
            ask(file_by_filename="kahuna/v1/cluster_messages.proto"),
            ask(file_by_filename="no.proto")]), timeout=PATIENCE))
        listed = {each.name for each in replies[0].list_services_response.service}
        assert listed >= {service for service, _ in self.stubs.methods_of("kahuna.v1")}, listed
        for reply, name in (replies[1], "kahuna/v1/locks.proto"), (replies[2], "kahuna/v1/cluster_messages.proto"):
            assert any(self.stubs.is_file(name, each) for each in reply.file_descriptor_response.file_descriptor_proto), name
        assert replies[3].error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0], replies[3]

    def _key(self, method, **fields):
        request = self.stubs.message(method + "Request")(**fields)
        return self.stubs.method("KeyValues", method)(request, timeout=PATIENCE)

    def _value(self, data):
        return self.stubs.message("Value")(data=data)
