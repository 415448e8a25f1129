using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>A message on the way, with the encoded entries of an append.</summary>
internal sealed class Packet(RaftMessage message, byte[] entries)
{
    public RaftMessage Message => message;

    public byte[] Entries => entries;
}
