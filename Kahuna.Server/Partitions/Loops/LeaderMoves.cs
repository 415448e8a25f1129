using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>Hands transfers of leadership to the loops of a node. Stateless; any thread.</summary>
internal static class LeaderMoves
{
    /// <summary>
    /// Asks the group's loop for the transfer. False when the node takes nothing further: nothing happened.
    /// </summary>
    public static bool Move(this LoopSet loops, LeaderMove move) => loops.OwnerOf(move.Group).TryPost(
        new InboxItem { Kind = InboxKind.Move, Group = move.Group, Move = move });
}
