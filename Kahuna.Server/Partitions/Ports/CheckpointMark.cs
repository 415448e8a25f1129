using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>A stored state: the last log entry that is in it, and what belongs to it besides its records.</summary>
internal readonly record struct CheckpointMark(LogIndex Index, Term Term, StateSummary Summary)
{
    /// <summary>
    /// The feature level of that entry. It is not in the encoded form: each format that carries a mark has a place for
    /// it beside the mark.
    /// </summary>
    public FeatureLevel Level { get; init; }

    /// <summary>
    /// Length of the encoded form: <c>u64 index, u64 term, i64 time in ms, i64 first and i64 next number of history,
    /// u32 rows, u64 digest</c>, little endian.
    /// </summary>
    public const int Bytes = 52;

    /// <summary>The mark of a view of the whole state that is applied now.</summary>
    public static CheckpointMark Of(AppliedState applied, StateView view) =>
        new(applied.Index, applied.Term, view.Summary) { Level = applied.Level };

    /// <summary>Puts the state with this mark in the place of another one.</summary>
    public void Replace(AppliedState applied, StateMachine state) => applied.Replace(state, Index, Term, Level);

    public static CheckpointMark Read(ReadOnlySpan<byte> source) => new(
        new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(source)),
        new Term(BinaryPrimitives.ReadUInt64LittleEndian(source[8..])),
        new StateSummary(
            new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(source[16..])),
            BinaryPrimitives.ReadInt64LittleEndian(source[24..]),
            BinaryPrimitives.ReadInt64LittleEndian(source[32..]),
            BinaryPrimitives.ReadInt32LittleEndian(source[40..]),
            BinaryPrimitives.ReadUInt64LittleEndian(source[44..])));

    public void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteUInt64LittleEndian(target, Index.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(target[8..], Term.Value);
        BinaryPrimitives.WriteInt64LittleEndian(target[16..], Summary.Time.Ms);
        BinaryPrimitives.WriteInt64LittleEndian(target[24..], Summary.FirstHistoryNumber);
        BinaryPrimitives.WriteInt64LittleEndian(target[32..], Summary.NextHistoryNumber);
        BinaryPrimitives.WriteInt32LittleEndian(target[40..], Summary.Rows);
        BinaryPrimitives.WriteUInt64LittleEndian(target[44..], Summary.Digest);
    }
}
