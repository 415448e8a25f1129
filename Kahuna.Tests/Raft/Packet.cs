using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>A message on the way, with the encoded entries of an append.</summary>
internal sealed record Packet(RaftMessage Message, byte[] Entries);
