using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>
/// A stream of watches that checks what it is told: each watch hears of every change of its keys behind the point where
/// it began, in order, once, and transactions whole, or of what is missing. Owned by one test.
/// </summary>
internal sealed class CheckedWatches(LoggedChanges changes, WatchReader reader)
{
    private readonly Dictionary<uint, Model> _watches = [];
    private readonly Dictionary<uint, ChangePoint> _open = [];

    /// <summary>What was told.</summary>
    public List<WatchSaid> Told { get; } = [];

    public IEnumerable<uint> Ids => _watches.Keys;

    /// <summary>Begins a watch and takes the notice.</summary>
    public void Begin(
        uint id,
        WatchScope scope,
        string name,
        bool isEphemeral = false,
        bool withValues = true,
        params ChangePoint[] from)
    {
        while (!reader.MayTake)
        {
            Assert.True(Fill());
        }

        Model watch = new(id, scope, name, isEphemeral, withValues);
        foreach (ChangeLog log in LogsOf(isEphemeral))
        {
            watch.Had[log.Group.Value] = log.Status.Applied;
        }

        foreach (ChangePoint point in from)
        {
            watch.Had[point.Group] = point;
        }

        Assert.Null(reader.Take(Request(watch, from)));
        _watches.Add(id, watch);
    }

    public void End(uint id)
    {
        while (!reader.MayTake)
        {
            Assert.True(Fill());
        }

        Assert.Null(reader.Take(new WatchRequest { Operation = WatchOperation.End, Id = id }));
        _watches.Remove(id);
    }

    /// <summary>Takes and checks one frame. False: there is none.</summary>
    public bool Fill()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        WatchFill fill = reader.Fill(frame, new NodeTime(1_000_000));
        if (fill == WatchFill.Frame)
        {
            List<WatchSaid> said = WatchSaid.ReadSent(frame.Written);
            Assert.NotEmpty(said);
            said.ForEach(Check);
            Told.AddRange(said);
        }
        else
        {
            Assert.Equal(0, frame.Length);
        }

        frame.Return();
        return fill != WatchFill.Nothing;
    }

    /// <summary>Takes and checks everything that is to be told.</summary>
    public List<string> Drain()
    {
        int from = Told.Count;
        while (Fill())
        {
        }

        return [.. Told.Skip(from).Where(static said => said.Frame != FrameKind.Progress).Select(static s => s.Short)];
    }

    /// <summary>Everything was told, and that everything was told.</summary>
    public void CheckEnd()
    {
        reader.RequestProgress();
        Drain();
        foreach (Model watch in _watches.Values)
        {
            foreach (ChangeLog log in LogsOf(watch.IsEphemeral))
            {
                Assert.Null(Next(watch, log.Group.Value, log.Status.Applied));
                Assert.Contains(
                    Told, said => said.Frame == FrameKind.Progress && said.Point == log.Status.Applied);
            }
        }
    }

    private static WatchRequest Request(Model watch, ChangePoint[] points)
    {
        byte[] encoded = new byte[points.Length * ChangePoint.Bytes];
        for (int i = 0; i < points.Length; i++)
        {
            points[i].Write(encoded.AsSpan(i * ChangePoint.Bytes));
        }

        return new WatchRequest
        {
            Operation = WatchOperation.Begin,
            Durability = watch.IsEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Scope = watch.Scope,
            Flags = watch.WithValues ? WatchFlags.WithValues : 0,
            Id = watch.Id,
            Points = encoded,
            Name = Encoding.UTF8.GetBytes(watch.Name),
        };
    }

    private IEnumerable<ChangeLog> LogsOf(bool isEphemeral) => Enumerable.Range(0, changes.Logs.Count)
        .Select(i => changes.Logs[i]!).Where(log => log is not null && log.Group.IsEphemeral == isEphemeral);

    private LoggedChange? Next(Model watch, uint group, ChangePoint upTo) => changes.All.Find(change =>
        change.Point.Group == group && change.Point > watch.Had[group] && change.Point <= upTo
        && change.IsOf(watch.Scope, watch.Name));

    private void Check(WatchSaid said)
    {
        switch (said.Frame)
        {
            case FrameKind.Changes:
                CheckChange(said);
                break;
            case FrameKind.Progress:
                Close(said.Point.Group, said.Point);
                foreach (Model watch in Begun(said.Point))
                {
                    Assert.Null(Next(watch, said.Point.Group, said.Point));
                }

                break;
            case FrameKind.Notices when said.Notice == WatchNoticeCode.Begun:
                // It may have been ended since.
                _watches.GetValueOrDefault(said.Watches[0])?.HasBegun = true;
                break;
            case FrameKind.Notices when said.Notice is WatchNoticeCode.Compacted or WatchNoticeCode.EpochBegan:
                _open.Remove(said.Point.Group);
                foreach (Model watch in Begun(said.Point).Where(
                    watch => said.Watches[0] == 0 || said.Watches[0] == watch.Id))
                {
                    Assert.True(watch.Had[said.Point.Group] < said.Point, "nothing was missing");
                    watch.Had[said.Point.Group] = said.Point;
                }

                break;
        }
    }

    private IEnumerable<Model> Begun(ChangePoint point) => _watches.Values.Where(
        watch => watch.HasBegun && watch.Had.ContainsKey(point.Group));

    private void CheckChange(WatchSaid said)
    {
        uint group = said.Point.Group;
        ChangePoint transaction = said.Point with { N = said.Transaction };
        if (_open.TryGetValue(group, out ChangePoint open) && open != transaction)
        {
            Close(group, open with { N = ChangePoint.AllOfEntry });
        }

        if (said.Transaction != 0)
        {
            _open[group] = transaction;
        }

        foreach (uint id in said.Watches)
        {
            Model watch = _watches[id];
            Assert.True(watch.HasBegun);
            LoggedChange expected = Next(watch, group, said.Point)!;
            Assert.NotNull(expected);
            Assert.Equal(
                (expected.Point, expected.Key, (uint)expected.Transaction),
                (said.Point, said.Key, said.Transaction));
            if (watch.WithValues)
            {
                Assert.Equal(expected.Value ?? "", said.Value);
            }

            watch.Had[group] = said.Point;
        }
    }

    /// <summary>A transaction has ended: every watch that has a part of it has all of it.</summary>
    private void Close(uint group, ChangePoint upTo)
    {
        if (!_open.Remove(group, out ChangePoint open) || upTo < open)
        {
            return;
        }

        foreach (Model watch in Begun(open).Where(watch => watch.Had[group].Index == open.Index
            && watch.Had[group].Epoch == open.Epoch && watch.Had[group].N != ChangePoint.AllOfEntry))
        {
            Assert.False(
                Next(watch, group, open with { N = ChangePoint.AllOfEntry }) is { } missed
                    && missed.Transaction == open.N,
                "a transaction was told in part");
        }
    }

    /// <summary>A watch and what it has had.</summary>
    private sealed record Model(uint Id, WatchScope Scope, string Name, bool IsEphemeral, bool WithValues)
    {
        public Dictionary<uint, ChangePoint> Had { get; } = [];

        public bool HasBegun { get; set; }
    }
}
