using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Client;

/// <summary>A request as a <see cref="FakeNode"/> received it. Immutable.</summary>
internal sealed record FakeRequest(
    FakeConnection Connection,
    uint Number,
    uint WaitMs,
    CommandKind Kind,
    CommandFlags Flags,
    string Key,
    byte[] Value,
    int FrameCount)
{
    /// <summary>The whole command.</summary>
    public required byte[] Bytes { get; init; }

    /// <summary>The lease that it asks for.</summary>
    public long LeaseMs => Read().TtlMs;

    /// <summary>For how long it waits, or may be held back; null when it does not say.</summary>
    public long? WaitingMs => Read() is var command && command.Has(CommandFlags.Number) ? command.Number : null;

    /// <summary>The token that it is about.</summary>
    public long Token => Read().ComparedRevision;

    /// <summary>The flags that the caller's options have set.</summary>
    public CommandFlags Options => Flags & ~(CommandFlags.Session | CommandFlags.Opening);

    /// <summary>The first attempts of a session on a partition.</summary>
    public bool IsOpening => (Flags & CommandFlags.Opening) != 0;

    /// <summary>Session, number and lag.</summary>
    public (ulong Session, ulong Sequence, ushort Lag) CallNumber
    {
        get
        {
            Command command = Read();
            return (command.SessionId, command.Sequence, command.Lag);
        }
    }

    private Command Read()
    {
        Assert.True(Command.TryRead(Bytes, out Command command));
        return command;
    }
}
