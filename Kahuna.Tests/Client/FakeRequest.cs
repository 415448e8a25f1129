using Kahuna.Client.Wire.Commands;

namespace Kahuna.Tests.Client;

/// <summary>A request as a <see cref="FakeNode"/> received it. Immutable.</summary>
internal sealed record FakeRequest(FakeConnection Connection, uint Number, uint WaitMs, CommandKind Kind, CommandFlags Flags, string Key, byte[] Value, int FrameCount)
{
    /// <summary>The whole command.</summary>
    public required byte[] Bytes { get; init; }
}
