"""The checks of foreign_client.py that are about locks."""
import time

import grpc

PATIENCE = 30
PERSISTENT = 1
EXCLUSIVE, SHARED, PERMIT = 1, 2, 3


class LockChecks:
    """A part of ProductChecks, which has the stubs and the key."""

    def locks(self):
        name = self.key + "-lock"
        ann = {"resource": name, "durability": PERSISTENT, "owner": "ann"}
        assert not self._lock("GetLock", resource=name, durability=PERSISTENT).HasField("lock")
        granted = self._acquire(**ann, lease_ms=20_000, note=b"a note")
        # The lease begins after the call, by as much as the call waited.
        assert granted.granted and granted.token > 0 and 0 < granted.remaining_lease_ms <= min(20_000, granted.lease_ms_from_call), granted
        busy = self._acquire(resource=name, owner="bob")
        assert not busy.granted and busy.holder_token == granted.token, busy
        assert self._acquire(**ann, lease_ms=20_000).token == granted.token
        found = self._lock("GetLock", resource=name, durability=PERSISTENT).lock
        assert [(each.owner, each.token, each.mode, each.note) for each in found.holders] == [("ann", granted.token, EXCLUSIVE, b"a note")], found
        assert self._lock("ExtendLock", **ann, token=granted.token, lease_ms=50_000).remaining_lease_ms > 30_000
        assert not self._lock("ExtendLock", **ann, token=granted.token + 1, lease_ms=50_000).extended
        assert not self._lock("ReleaseLock", **ann, token=granted.token + 1).released
        listed, token = [], None
        while token != "":
            page = self._lock("ListLocks", prefix=name, durability=PERSISTENT, page_token=token or "")
            listed += [each.resource for each in page.locks]
            token = page.next_page_token
        assert listed == [name], listed

        acquire = self.stubs.method("Locks", "AcquireLock")
        waiting = []
        for owner in ("bob", "cat"):
            waiting.append(acquire.future(self._claim(resource=name, owner=owner, wait_ms=25_000), timeout=PATIENCE))
            self._until_waiting(name, len(waiting))
        observed = self.stubs.method("Locks", "ObserveLock").future(
            self.stubs.message("ObserveLockRequest")(resource=name, durability=PERSISTENT, known_token=granted.token, hold_ms=20_000), timeout=PATIENCE)
        waiting[0].cancel()
        self._until_waiting(name, 1)
        assert self._lock("ReleaseLock", **ann, token=granted.token).released
        cat = waiting[1].result()
        assert cat.granted and cat.token > granted.token, cat
        assert observed.result().token == cat.token, observed.result()
        over = self._acquire(resource=name, owner="dan", wait_ms=200)
        assert not over.granted and over.holder_token == cat.token, over
        try:
            acquire(self._claim(resource=name, owner="eve", wait_ms=60_000), timeout=0.5)
            raise AssertionError("a call outlived its deadline")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        self._until_waiting(name, 0)

        key = {"key": name, "durability": PERSISTENT, "amount": 1}
        fence = self.stubs.message("Fence")
        increment = self.stubs.method("KeyValues", "IncrementKeyValue")
        request = self.stubs.message("IncrementKeyValueRequest")
        assert increment(request(**key, fence=fence(resource=name, token=cat.token)), timeout=PATIENCE).value == 1
        self._refused(grpc.StatusCode.FAILED_PRECONDITION, f"token {cat.token} does",
                      lambda: increment(request(**key, fence=fence(resource=name, token=granted.token)), timeout=PATIENCE))
        self._refused(grpc.StatusCode.INVALID_ARGUMENT, "another bucket",
                      lambda: increment(request(**key, fence=fence(resource="elsewhere/" + name, token=cat.token)), timeout=PATIENCE))
        self._refused(grpc.StatusCode.FAILED_PRECONDITION, "another mode", lambda: self._acquire(resource=name, owner="cat", mode=SHARED))
        assert self._lock("ReleaseLock", resource=name, durability=PERSISTENT, owner="cat", token=cat.token).released

    def locks_that_cannot_be(self):
        good = {"resource": self.key + "-bad", "durability": PERSISTENT, "owner": "ann", "lease_ms": 1000, "mode": EXCLUSIVE}
        for fields, words in [
                ({"lease_ms": 0}, "lease_ms is 0"),
                ({"lease_ms": -1}, "lease_ms is -1"),
                ({"lease_ms": 3_600_001}, "lease_ms is 3,600,001"),
                ({"wait_ms": 0}, "wait_ms is 0"),
                ({"wait_ms": -1}, "wait_ms is -1"),
                ({"wait_ms": 86_400_001}, "wait_ms is 86,400,001"),
                ({"owner": ""}, "owner is empty"),
                ({"owner": "o" * 257}, "owner is 257 bytes"),
                ({"mode": 0}, "mode is 0"),
                ({"mode": 4}, "mode is 4"),
                ({"durability": 0}, "durability is not set"),
                ({"durability": 3}, "durability is 3"),
                ({"mode": PERMIT}, "permits is 0"),
                ({"mode": PERMIT, "permits": 10_001}, "permits is 10,001"),
                ({"permits": 1}, "permits is not an option"),
                ({"resource": ""}, "resource is empty"),
                ({"resource": "n" * 1025}, "1,025 bytes"),
                ({"resource": "__kahuna"}, "reserved"),
                ({"note": b"n" * 1025}, "note is 1,025 bytes")]:
            request = self.stubs.message("AcquireLockRequest")(**{**good, **fields})
            self._refused(grpc.StatusCode.INVALID_ARGUMENT, words, lambda: self.stubs.method("Locks", "AcquireLock")(request, timeout=PATIENCE))
        for method, fields, words in [
                ("ExtendLock", {"owner": "ann", "token": 0, "lease_ms": 1000}, "token is 0"),
                ("ExtendLock", {"owner": "ann", "token": 1, "lease_ms": 0}, "lease_ms is 0"),
                ("ExtendLock", {"owner": "", "token": 1, "lease_ms": 1000}, "owner is empty"),
                ("ReleaseLock", {"owner": "ann", "token": -1}, "token is -1"),
                ("ReleaseLock", {"owner": "o" * 257, "token": 1}, "owner is 257 bytes"),
                ("GetLock", {"durability": 0}, "durability is not set"),
                ("ObserveLock", {"hold_ms": 30_001}, "hold_ms is 30,001"),
                ("ObserveLock", {"hold_ms": -1}, "hold_ms is -1")]:
            given = {"resource": self.key + "-bad", "durability": PERSISTENT, **fields}
            self._refused(grpc.StatusCode.INVALID_ARGUMENT, words, lambda: self._lock(method, **given))
        self._refused(grpc.StatusCode.INVALID_ARGUMENT, "page_token", lambda: self._lock("ListLocks", durability=PERSISTENT, page_token="?"))
        longest = "n" * (1024 - len(self.key)) + self.key
        token = self._acquire(resource=longest, owner="o" * 256).token
        other = self._acquire(resource=self.key + "-bad", owner="o" * 256).token
        assert self._lock("ReleaseLock", resource=longest, durability=PERSISTENT, owner="o" * 256, token=other).holder_token == token

    def _lock(self, method, **fields):
        request = self.stubs.message(method + "Request")(**fields)
        return self.stubs.method("Locks", method)(request, timeout=PATIENCE)

    def _claim(self, **fields):
        return self.stubs.message("AcquireLockRequest")(**{"durability": PERSISTENT, "lease_ms": 10_000, "mode": EXCLUSIVE, **fields})

    def _acquire(self, **fields):
        return self.stubs.method("Locks", "AcquireLock")(self._claim(**fields), timeout=PATIENCE)

    def _until_waiting(self, name, count):
        until = time.monotonic() + PATIENCE
        while self._lock("GetLock", resource=name, durability=PERSISTENT).lock.waiting != count:
            assert time.monotonic() < until, f"never {count} waited for {name}"
            time.sleep(0.02)
