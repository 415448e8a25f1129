using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Locks;

/// <summary>
/// Drives the locks of one state machine, and one that follows it without answering; both must always be the same.
/// </summary>
internal sealed class LockDriver(StateLimits? limits = null)
{
    private readonly StateLimits _limits = limits ?? new StateLimits();
    private readonly ByteBuffer _outcome = ByteBuffer.Rent();
    private readonly Dictionary<StateMachine, Dictionary<uint, byte[]>> _stored = [];

    public StateMachine Machine { get; private set; } = new(limits ?? new StateLimits());

    /// <summary>It has another secret, on which nothing may depend.</summary>
    public StateMachine Follower { get; private set; } = new(
        (limits ?? new StateLimits()) with { HashSecret = new HashSecret(3, 4) });

    public long Now { get; set; } = 1_000;

    public Answer Acquire(
        string name,
        string owner,
        long leaseMs = 1_000,
        long waitMs = 0,
        LockMode mode = LockMode.Exclusive,
        int permits = 0,
        string note = "") =>
        Do(LockCommands.Acquire(name, owner, leaseMs, waitMs, mode, permits, note));

    public Answer Extend(string name, string owner, long token, long leaseMs) =>
        Do(LockCommands.Extend(name, owner, token, leaseMs));

    public Answer Release(string name, string owner, long token, bool onlyPlace = false) =>
        Do(LockCommands.Release(name, owner, token, onlyPlace));

    public Answer Await(string name, string owner, long token) => Do(LockCommands.Await(name, owner, token));

    public Answer FencedSet(string key, string value, string resource, long token) => Do(LockCommands.Encode(new Command
    {
        Kind = CommandKind.Set,
        Flags = CommandFlags.Fenced,
        Key = Encoding.UTF8.GetBytes(key),
        Value = Encoding.UTF8.GetBytes(value),
        FenceToken = token,
        FenceName = Encoding.UTF8.GetBytes(resource),
    }));

    /// <summary>Ends leases that have passed, and gives up waits that are over.</summary>
    public void Sweep(long countMax = 512, Func<long, int>? againMs = null) => Do(DueSweep(countMax, againMs));

    /// <summary>The command that a leader proposes now to that end.</summary>
    public byte[] DueSweep(long countMax = 512, Func<long, int>? againMs = null)
    {
        List<Row> rows = [];
        Machine.Locks.CollectDueWaiters(new ClusterTime(Now), 512, rows);
        ByteBuffer decisions = ByteBuffer.Rent();
        foreach (Row row in rows)
        {
            (FencingToken token, ClusterTime end) = Machine.Locks.Waiter(row);
            new WaiterDecision(row, token, end.Ms <= Now ? 0 : againMs?.Invoke(token.Value) ?? 1_000).Write(decisions);
        }

        byte[] command = LockCommands.Encode(new Command
        {
            Kind = CommandKind.LockSweep,
            Flags = CommandFlags.Number,
            Number = countMax,
            Value = decisions.Written,
        });
        decisions.Return();
        return command;
    }

    /// <summary>Who holds a lock, the first first, and how many wait; null when nobody does.</summary>
    public (List<(string Owner, long Token, long LeftMs)> Holders, int Waiters, int Permits)? Get(string name)
    {
        _outcome.Length = 0;
        Machine.Read(
            new Command
            {
                Kind = CommandKind.LockGet,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(name),
            },
            new ClusterTime(Now),
            _outcome);
        Assert.True(Outcome.TryRead(_outcome.Written, out Outcome outcome));
        if (outcome.Status == OutcomeStatus.NotFound)
        {
            return null;
        }

        Assert.True(LockSnapshot.TryRead(outcome.Value, out LockSnapshot picture));
        List<(string, long, long)> holders = [];
        while (picture.TryNext())
        {
            holders.Add((Encoding.UTF8.GetString(picture.Owner), picture.Token, picture.LeftMs));
        }

        Assert.True(picture.Rest.IsEmpty);
        Assert.Equal(holders.Count == 0 ? 0 : holders[0].Item2, outcome.Revision);
        return (holders, picture.Waiters, picture.Permits);
    }

    /// <summary>The one that answers goes on as it was stored.</summary>
    public void Reload()
    {
        Machine = Reload(Machine);
    }

    /// <summary>Both are the same, and nothing in them is damaged.</summary>
    public void Check()
    {
        Assert.Equal(Machine.Digest, Follower.Digest);
        Assert.Equal(Machine.RecomputeDigest(), Machine.Digest);
        Assert.Equal(0, Machine.Counts.Keys);
    }

    public Answer Do(byte[] bytes)
    {
        byte[] outcome = DoRaw(bytes);
        return outcome.Length == 0 ? default : Answer.Read(outcome);
    }

    /// <summary>The answer in its bytes.</summary>
    public byte[] DoRaw(byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command read));
        _outcome.Length = 0;
        Machine.BeginEntry(default, new ClusterTime(Now));
        Follower.BeginEntry(default, new ClusterTime(Now));
        if (read.IsRead)
        {
            Machine.Read(in read, new ClusterTime(Now), _outcome);
        }
        else
        {
            Machine.Apply(in read, _outcome);
            Follower.Apply(in read, null);
        }

        return _outcome.Written.ToArray();
    }

    /// <summary>
    /// What a store has of the state: the latest record of each row, brought up to date with what has changed.
    /// </summary>
    private StateMachine Reload(StateMachine machine)
    {
        Dictionary<uint, byte[]> stored = _stored.TryGetValue(machine, out Dictionary<uint, byte[]>? known)
            ? known
            : [];
        using StateView view = machine.ViewChanges();
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            stored[KeyRecord.Row(record)] = record;
        }

        StateLoader loader = new(_limits, view.Summary);
        foreach (byte[] record in stored.Values)
        {
            loader.Add(record);
        }

        StateMachine loaded = loader.Finish();
        _stored.Remove(machine);
        _stored[loaded] = stored;
        Assert.Equal(machine.Digest, loaded.Digest);
        Assert.Equal(machine.Locks.Metrics with { Expired = 0 }, loaded.Locks.Metrics);
        return loaded;
    }
}
