using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Routing;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>Stands between a loop and its shipped log writer, both ways, and tells the node's witness. Owned by one life of a node.</summary>
internal sealed class SimLogWriter(SimNode node, int loop, ILogSink sink) : ILogWriter, ILogSink
{
    private ILogWriter _writer = null!;
    private List<LogOperation> _open = [];

    public int Pending => _writer.Pending;

    public void Attach(ILogWriter writer) => _writer = writer;

    /// <summary>Entries in EntryCodec, as the rules compare them.</summary>
    public static List<EntryId> Ids(ReadOnlySpan<byte> entries)
    {
        List<EntryId> ids = [];
        while (EntryCodec.TryRead(ref entries, out Term term, out EntryKind kind, out ReadOnlySpan<byte> payload))
        {
            ids.Add(new EntryId(term.Value, XxHash64.Hash(payload, (byte)kind)));
        }

        return ids;
    }

    public void Append(GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
    {
        List<EntryId> ids = Ids(entries);
        node.Rules.Appended(node, group, first.Value, ids, entries);
        Tell(new LogOperation(group, LogOperationKind.Append) { First = first.Value, Entries = ids });
        _writer.Append(group, first, count, entries);
        node.Writes?.Invoke(group, ids[^1].Term);
    }

    public void Save(GroupId group, in HardState state)
    {
        Tell(new LogOperation(group, LogOperationKind.Save) { HardState = state });
        _writer.Save(group, state);
    }

    public void Restart(GroupId group, LogIndex index, Term term)
    {
        Tell(new LogOperation(group, LogOperationKind.Restart) { First = index.Value });
        _writer.Restart(group, index, term);
    }

    public ulong Submit()
    {
        ulong batch = _writer.Submit();
        if (batch != 0)
        {
            node.Witness.Submitted(loop, batch, _open);
            _open = [];
        }

        return batch;
    }

    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) => _writer.Fetch(group, follower, first, bytesMax);

    void ILogSink.Persisted(ulong batch)
    {
        node.Scheduler.Note(SimEvent.Persisted, node.Id, (long)batch);
        node.Rules.Synced(node);
        node.Witness.Persisted(loop, batch);
        sink.Persisted(batch);
    }

    void ILogSink.Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) => sink.Fetched(group, follower, first, entries);

    void ILogSink.Failed(Exception error) => sink.Failed(error);

    private void Tell(LogOperation operation)
    {
        node.Witness.Told(operation);
        _open.Add(operation);
    }
}
