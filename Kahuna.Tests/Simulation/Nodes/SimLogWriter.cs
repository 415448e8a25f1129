using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// Stands between a loop and its shipped log writer, both ways, and tells the node's witness. Owned by one life of a
/// node.
/// </summary>
internal sealed class SimLogWriter(SimNode node, int loop, ILogSink sink) : ILogWriter, ILogSink
{
    private ILogWriter _writer = null!;
    private List<LogOperation> _open = [];

    // What the loop writes; it is copied to the shipped writer when it is known to be whole.
    private byte[] _room = [];
    private (GroupId Group, LogIndex First, int Count, int Bytes) _begun;

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

    public Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes)
    {
        _room = _room.Length >= bytes ? _room : new byte[bytes * 2];
        _begun = (group, first, count, bytes);
        return _room.AsSpan(0, bytes);
    }

    public void EndAppend()
    {
        (GroupId group, LogIndex first, int count, int bytes) = _begun;
        ReadOnlySpan<byte> entries = _room.AsSpan(0, bytes);
        List<EntryId> ids = Ids(entries);
        node.Rules.Appended(node, group, first.Value, ids, entries);
        Tell(new LogOperation(group, LogOperationKind.Append) { First = first.Value, Entries = ids });
        entries.CopyTo(_writer.BeginAppend(group, first, count, bytes));
        _writer.EndAppend();
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

    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) =>
        _writer.Fetch(group, follower, first, bytesMax);

    void ILogSink.Persisted(ulong batch)
    {
        node.Scheduler.Note(SimEvent.Persisted, node.Id, (long)batch);
        node.Rules.Synced(node);
        node.Witness.Persisted(loop, batch);
        sink.Persisted(batch);
    }

    void ILogSink.Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) =>
        sink.Fetched(group, follower, first, entries);

    void ILogSink.Failed(Exception error) => sink.Failed(error);

    private void Tell(LogOperation operation)
    {
        node.Witness.Told(operation);
        _open.Add(operation);
    }
}
