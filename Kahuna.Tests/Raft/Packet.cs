using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>A message on the way, with the encoded entries of an append.</summary>
internal sealed class Packet(RaftMessage message, byte[] entries)
{
    public RaftMessage Message => message;

    public byte[] Entries => entries;

    /// <summary>How often the sender had lost its directory when it sent this.</summary>
    public int SenderLife { get; init; }

    /// <summary>How often the receiver had started when it was sent; set by the network.</summary>
    public int ReceiverStarts { get; set; }
}
