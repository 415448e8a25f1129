using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>A confirmed read: reads that were registered under <paramref name="Ticket"/> or an earlier one may be served once <paramref name="Index"/> is applied.</summary>
internal readonly record struct ReadState(ulong Ticket, LogIndex Index);
