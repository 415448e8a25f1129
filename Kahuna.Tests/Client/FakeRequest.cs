using Kahuna.Client.Wire.Commands;

namespace Kahuna.Tests.Client;

/// <summary>A request as a <see cref="FakeNode"/> received it. Immutable.</summary>
internal sealed record FakeRequest(FakeConnection Connection, uint Number, uint WaitMs, CommandKind Kind, CommandFlags Flags, string Key, byte[] Value, int FrameCount)
{
    /// <summary>The whole command.</summary>
    public required byte[] Bytes { get; init; }

    /// <summary>The flags that the caller's options have set.</summary>
    public CommandFlags Options => Flags & ~(CommandFlags.Session | CommandFlags.Opening);

    /// <summary>The first attempts of a session on a partition.</summary>
    public bool IsOpening => (Flags & CommandFlags.Opening) != 0;

    /// <summary>Session, number and lag.</summary>
    public (ulong Session, ulong Sequence, ushort Lag) CallNumber
    {
        get
        {
            Assert.True(Command.TryRead(Bytes, out Command command));
            return (command.SessionId, command.Sequence, command.Lag);
        }
    }
}
