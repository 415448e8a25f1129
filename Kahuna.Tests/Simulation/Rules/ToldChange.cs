using System.Text;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>One change of a key as the nodes of a run have told it. Immutable.</summary>
internal sealed class ToldChange
{
    private readonly byte[] _record;

    private ToldChange(ChangePoint point, byte[] record)
    {
        Point = point;
        _record = record;
        ReadOnlySpan<byte> rest = record;
        ChangeRecord.TryTake(ref rest, out ChangeRecord change);
        Kind = change.Kind;
        Key = Encoding.UTF8.GetString(change.Key);
        Value = change.Kind != ChangeKind.Written || change.IsNull ? null : Encoding.UTF8.GetString(change.Value);
        Revision = change.Revision;
        Transaction = change.Transaction;
        IsPreviousKept = change.IsPreviousKept;
    }

    public ChangePoint Point { get; }

    public ChangeKind Kind { get; }

    public string Key { get; }

    /// <summary>What was written; null for the null value and where nothing was.</summary>
    public string? Value { get; }

    public long Revision { get; }

    /// <summary>Names the transaction within the entry; 0 for a change that stands alone.</summary>
    public uint Transaction { get; }

    public bool IsPreviousKept { get; }

    /// <summary>Takes the change at the front of what was read of a log, with its record. False at the end.</summary>
    public static bool TryTake(
        ref ReadOnlySpan<byte> source, uint group, ulong epoch, out ChangePoint point, out ReadOnlySpan<byte> record)
    {
        ReadOnlySpan<byte> all = source;
        point = default;
        record = default;
        if (!ChangeRecord.TryTake(ref source, out _))
        {
            return false;
        }

        record = all[..^source.Length];
        point = ChangeRecord.PointOf(record, group, epoch);
        return true;
    }

    public static ToldChange Of(ChangePoint point, ReadOnlySpan<byte> record) => new(point, record.ToArray());

    /// <summary>Both are of one transaction.</summary>
    public bool IsTogetherWith(ToldChange other) =>
        Transaction != 0
        && Transaction == other.Transaction
        && (Point.Epoch, Point.Index) == (other.Point.Epoch, other.Point.Index);

    /// <summary>It is told in the same words.</summary>
    public bool Is(ReadOnlySpan<byte> record) => record.SequenceEqual(_record);

    public override string ToString() =>
        $"{Kind} {Key} at revision {Revision} ({Point.Epoch}.{Point.Index}.{Point.N}, transaction {Transaction})";
}
