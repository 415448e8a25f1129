using System.Buffers.Binary;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Storage.States;

/// <summary>A state's mark as stores and snapshots hold it: <c>u64 index, u64 term, i64 time in ms, i64 first and i64 next number of history, u64 digest</c>. Little endian. Stateless.</summary>
internal static class StateMarkCodec
{
    public const int Bytes = 48;

    public static void Write(Span<byte> target, in StateMark mark)
    {
        BinaryPrimitives.WriteUInt64LittleEndian(target, mark.Index.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(target[8..], mark.Term.Value);
        BinaryPrimitives.WriteInt64LittleEndian(target[16..], mark.Summary.TimeMs);
        BinaryPrimitives.WriteInt64LittleEndian(target[24..], mark.Summary.FirstHistoryNumber);
        BinaryPrimitives.WriteInt64LittleEndian(target[32..], mark.Summary.NextHistoryNumber);
        BinaryPrimitives.WriteUInt64LittleEndian(target[40..], mark.Summary.Digest);
    }

    public static StateMark Read(ReadOnlySpan<byte> source) => new(
        new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(source)),
        new Term(BinaryPrimitives.ReadUInt64LittleEndian(source[8..])),
        new StateSummary(
            BinaryPrimitives.ReadInt64LittleEndian(source[16..]),
            BinaryPrimitives.ReadInt64LittleEndian(source[24..]),
            BinaryPrimitives.ReadInt64LittleEndian(source[32..]),
            BinaryPrimitives.ReadUInt64LittleEndian(source[40..])));
}
