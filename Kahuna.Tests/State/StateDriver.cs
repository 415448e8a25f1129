using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sessions;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>An outcome, copied out of its buffer.</summary>
internal readonly record struct Answer(OutcomeStatus Status, long Revision, long Number, string? Value, bool IsNull)
{
    public static Answer Read(ReadOnlySpan<byte> encoded)
    {
        Assert.True(Outcome.TryRead(encoded, out Outcome outcome));
        Assert.False(outcome.ValueIsNull && (!outcome.HasValue || outcome.Value.Length > 0));
        return Of(in outcome);
    }

    public static Answer Of(scoped in Outcome outcome) => new(
        outcome.Status,
        outcome.Revision,
        outcome.Number,
        outcome.HasValue ? Encoding.UTF8.GetString(outcome.Value) : null,
        outcome.ValueIsNull);
}

/// <summary>A command that can be kept, with text for its bytes.</summary>
internal sealed record TestCommand(CommandKind Kind, string Key = "k", string? Value = null)
{
    public CommandFlags Flags { get; init; }

    /// <summary>The value, where it is no text.</summary>
    public byte[]? Binary { get; init; }

    public string? Compared { get; init; }

    public long ComparedRevision { get; init; }

    public long TtlMs { get; init; }

    public long AtRevision { get; init; }

    public long Number { get; init; }

    /// <summary>Whose quota it is charged to.</summary>
    public ushort Account { get; init; }

    /// <summary>Session, number and lag, with <see cref="CommandFlags.Session"/>.</summary>
    public (ulong Session, ulong Sequence, ushort Lag) Call { get; init; }

    /// <summary>Encodes the command, as it would arrive from a client.</summary>
    public byte[] Encode()
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        CommandFlags flags = Flags;
        if (Kind == CommandKind.Set && Value is null)
        {
            flags |= CommandFlags.NullValue;
        }

        if ((flags & CommandFlags.IfValue) != 0 && Compared is null)
        {
            flags |= CommandFlags.NullCompared;
        }

        new Command
        {
            Kind = Kind,
            Durability = Durability.Persistent,
            Flags = flags,
            Key = Encoding.UTF8.GetBytes(Key),
            Value = Binary ?? Encoding.UTF8.GetBytes(Value ?? string.Empty),
            ComparedValue = Encoding.UTF8.GetBytes(
                (flags & CommandFlags.IfValue) != 0 ? Compared ?? string.Empty : string.Empty),
            ComparedRevision = ComparedRevision,
            TtlMs = TtlMs,
            AtRevision = AtRevision,
            Number = Number,
            Account = Account,
            SessionId = Call.Session,
            Sequence = Call.Sequence,
            Lag = Call.Lag,
        }.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}

/// <summary>Drives one state machine with commands and decodes what it answers.</summary>
internal sealed class StateDriver(StateLimits? limits = null, StateMachine? machine = null)
{
    private readonly ByteBuffer _outcome = ByteBuffer.Rent();

    public StateMachine Machine { get; } = machine ?? new(limits ?? new StateLimits());

    /// <summary>Cluster time of the next command; reads come after an entry of that time.</summary>
    public long Now { get; set; } = 1_000;

    /// <summary>The log entry of the latest command.</summary>
    public ulong Index { get; set; }

    /// <summary>The feature level of the next command's entry.</summary>
    public FeatureLevel Level { get; set; }

    /// <summary>The value of the latest outcome.</summary>
    public byte[] LastValue()
    {
        Assert.True(Outcome.TryRead(_outcome.Written, out Outcome outcome));
        return outcome.Value.ToArray();
    }

    public Answer Do(TestCommand test)
    {
        Assert.True(Command.TryRead(test.Encode(), out Command command));
        _outcome.Length = 0;
        if (command.IsRead)
        {
            Machine.BeginEntry(new LogIndex(Index), new ClusterTime(Now), Level);
            Machine.Read(command, new ClusterTime(Now), _outcome);
        }
        else
        {
            Machine.BeginEntry(new LogIndex(++Index), new ClusterTime(Now), Level);
            Machine.Apply(command, _outcome);
        }

        return Answer.Read(_outcome.Written);
    }

    public Answer Set(string key, string? value, CommandFlags flags = CommandFlags.None, long ttlMs = 0) =>
        Do(new TestCommand(CommandKind.Set, key, value)
        {
            Flags = flags | (ttlMs != 0 ? CommandFlags.Ttl : CommandFlags.None),
            TtlMs = ttlMs,
        });

    public Answer Delete(string key, CommandFlags flags = CommandFlags.None) =>
        Do(new TestCommand(CommandKind.Delete, key) { Flags = flags });

    public Answer Extend(string key, long ttlMs) =>
        Do(new TestCommand(CommandKind.Extend, key) { Flags = CommandFlags.Ttl, TtlMs = ttlMs });

    public Answer Increment(string key, long amount) =>
        Do(new TestCommand(CommandKind.Increment, key) { Flags = CommandFlags.Number, Number = amount });

    public Answer Get(string key, long atRevision = 0) => Read(CommandKind.Get, key, atRevision);

    public Answer Exists(string key, long atRevision = 0) => Read(CommandKind.Exists, key, atRevision);

    public Answer Sweep(long countMax) =>
        Do(new TestCommand(CommandKind.ExpireSweep, string.Empty) { Flags = CommandFlags.Number, Number = countMax });

    /// <summary>A command under a number of a session.</summary>
    public Answer Numbered(TestCommand test, ulong session, ulong sequence, ushort lag = 0, bool opening = true) =>
        Do(test with
        {
            Flags = test.Flags | CommandFlags.Session | (opening ? CommandFlags.Opening : 0),
            Call = (session, sequence, lag),
        });

    /// <summary>Carries out a command without wanting its outcome, as followers do.</summary>
    public void Follow(TestCommand test)
    {
        Assert.True(Command.TryRead(test.Encode(), out Command command));
        Machine.BeginEntry(new LogIndex(++Index), new ClusterTime(Now), Level);
        Machine.Apply(command, null);
    }

    /// <summary>Forgets sessions that were idle for so long.</summary>
    public void SweepSessions(long idleMs)
    {
        bool hasMore = true;
        for (int i = 0; i < 10_000 && hasMore; i++)
        {
            Follow(new TestCommand(CommandKind.SessionSweep, string.Empty)
            {
                Flags = CommandFlags.Number,
                Number = idleMs,
            });
            Follow(new TestCommand(CommandKind.SessionSweep, string.Empty)
            {
                Flags = CommandFlags.Number | CommandFlags.Keyed,
                Number = idleMs,
            });
            SessionTable sessions = Machine.Sessions;
            ClusterTime now = new(Now);
            hasMore = sessions.HasForgettable(now, idleMs) || sessions.HasForgettableKeys(now, idleMs);
        }
    }

    /// <summary>The state as it comes out of a store.</summary>
    public StateDriver Reloaded(StateLimits limits)
    {
        using StateView view = Machine.ViewAll();
        StateLoader loader = new(limits, view.Summary);
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            loader.Add(record);
        }

        return new StateDriver(machine: loader.Finish()) { Now = Now, Index = Index, Level = Level };
    }

    private Answer Read(CommandKind kind, string key, long atRevision) =>
        Do(new TestCommand(kind, key)
        {
            Flags = atRevision != 0 ? CommandFlags.AtRevision : CommandFlags.None,
            AtRevision = atRevision,
        });
}
