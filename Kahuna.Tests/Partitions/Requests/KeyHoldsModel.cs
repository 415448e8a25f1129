using System.Text;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// Transactions that hold random keys of two groups in random order and modes, one step at a time. Asserts that
/// somebody can always go on, that holders never conflict, and that queues are served in order. Used once.
/// </summary>
internal sealed class KeyHoldsModel(int seed)
{
    private const int StepsMax = 20_000;

    private readonly Random _random = new(seed);
    private readonly KeyHolds[] _groups = [new KeyHolds(static () => 0), new KeyHolds(static () => 0)];
    private readonly Dictionary<string, List<(Caller Caller, bool IsExclusive)>> _holders = [];
    private readonly Dictionary<string, List<(Caller Caller, bool IsExclusive)>> _queues = [];
    private readonly Dictionary<TransactionId, Caller> _byId = [];
    private readonly NodeTime _now = new(1);
    private ulong _ids;

    /// <summary>Runs all transactions to their ends.</summary>
    public void Run()
    {
        int keys = _random.Next(1, 6);
        Caller[] callers =
        [
            .. Enumerable.Range(0, _random.Next(2, 9)).Select(i => new Caller(
                _random.Next(4),
                [
                    .. Enumerable.Range(0, _random.Next(1, 6)).Select(_ =>
                        (FormattableString.Invariant($"{_random.Next(keys)}"), _random.Next(2) == 0)),
                ])),
        ];
        Array.ForEach(callers, Begin);
        for (int step = 0; callers.Any(static caller => !caller.IsDone); step++)
        {
            Assert.True(step < StepsMax, $"seed {seed}: the transactions do not end");
            Caller[] ready = [.. callers.Where(static caller => !caller.IsDone && !caller.Waits)];
            Assert.True(ready.Length > 0, $"seed {seed}: all that have not ended wait for each other");
            Step(ready[_random.Next(ready.Length)]);
            Array.ForEach(_groups, TakeGranted);
        }

        Assert.All(_groups, static group => Assert.Equal((0, 0, 0), (group.Count, group.Keys, group.Waiters.Count)));
    }

    private void Begin(Caller caller)
    {
        caller.Id = new TransactionId(0, (ulong)_random.Next(1_000) << 32 | ++_ids);
        caller.Next = 0;
        caller.Held.Clear();
        _byId.Add(caller.Id, caller);
    }

    private void Step(Caller caller)
    {
        if (caller.Next == caller.Wants.Length)
        {
            caller.IsDone = true;
            Release(caller, isApplied: true);
            return;
        }

        (string key, bool isExclusive) = caller.Wants[caller.Next];
        KeyHolds group = _groups[key[0] % 2];
        HoldBody asked = new(
            caller.Id,
            caller.Begun,
            60_000,
            isExclusive ? HoldMode.Exclusive : HoldMode.Shared,
            caller.Held.Count > 0 ? HoldFlags.HoldsOthers : HoldFlags.None);
        switch (group.Ask(in asked, Encoding.UTF8.GetBytes(key), _now, out _, out _))
        {
            case HoldVerdict.Granted:
                bool holds = Of(_holders, key).Exists(hold => hold.Caller == caller);
                Assert.True(holds || Of(_queues, key).Count == 0, $"seed {seed}: {key} is granted before its turn");
                Granted(caller, key, isExclusive);
                break;
            case HoldVerdict.Waits:
                caller.Waits = true;
                bool isUpgrade = Of(_holders, key).Exists(hold => hold.Caller == caller);
                Of(_queues, key).Insert(isUpgrade ? 0 : Of(_queues, key).Count, (caller, isExclusive));
                break;
            default:
                Release(caller, isApplied: false);
                Begin(caller);
                break;
        }
    }

    private void TakeGranted(KeyHolds group)
    {
        while (group.TryTakeGranted(out HoldWaiter waiter))
        {
            Caller caller = _byId[waiter.Owner.Id];
            (string key, bool isExclusive) = caller.Wants[caller.Next];
            Assert.Equal((caller, isExclusive), Of(_queues, key)[0]);
            Of(_queues, key).RemoveAt(0);
            caller.Waits = false;
            Granted(caller, key, isExclusive);
        }
    }

    private void Granted(Caller caller, string key, bool isExclusive)
    {
        List<(Caller Caller, bool IsExclusive)> holders = Of(_holders, key);
        isExclusive |= holders.Exists(hold => hold.Caller == caller && hold.IsExclusive);
        holders.RemoveAll(hold => hold.Caller == caller);
        Assert.True(
            holders.TrueForAll(hold => !hold.IsExclusive && !isExclusive),
            $"seed {seed}: {key} has holders that conflict");
        holders.Add((caller, isExclusive));
        caller.Held.Add(key);
        caller.Next++;
    }

    private void Release(Caller caller, bool isApplied)
    {
        foreach (List<(Caller Caller, bool IsExclusive)> holders in _holders.Values)
        {
            holders.RemoveAll(hold => hold.Caller == caller);
        }

        Array.ForEach(_groups, group => group.Release(caller.Id, isApplied));
    }

    private static List<(Caller Caller, bool IsExclusive)> Of(
        Dictionary<string, List<(Caller Caller, bool IsExclusive)>> lists, string key)
    {
        if (!lists.TryGetValue(key, out List<(Caller Caller, bool IsExclusive)>? list))
        {
            lists.Add(key, list = []);
        }

        return list;
    }

    /// <summary>One transaction: it keeps its age when it runs again.</summary>
    private sealed class Caller(long begun, (string Key, bool IsExclusive)[] wants)
    {
        public long Begun => begun;

        public (string Key, bool IsExclusive)[] Wants => wants;

        public HashSet<string> Held { get; } = [];

        public TransactionId Id { get; set; }

        public int Next { get; set; }

        public bool Waits { get; set; }

        public bool IsDone { get; set; }
    }
}
