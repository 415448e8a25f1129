using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>A frame between nodes, for people.</summary>
internal static class FrameText
{
    public static string Of(ReadOnlySpan<byte> frame)
    {
        if (SnapshotFrame.Is(frame))
        {
            SnapshotHeader header = SnapshotFrame.ReadHeader(frame);
            return $"group {header.Group} {header}";
        }

        List<string> messages = [];
        while (PeerFrame.TryRead(ref frame, out GroupId group, out RaftMessage message, out _))
        {
            messages.Add(
                $"{group} {message.Kind} t{message.Term} i{message.Index} lt{message.LogTerm} c{message.Commit} "
                    + $"r{message.Round} h{message.Hint} "
                    + $"n{message.EntryCount}{(message.Reject ? " reject" : "")}"
                    + $"{(message.Transfer ? " uncounted" : "")}");
        }

        return string.Join(" | ", messages);
    }
}
