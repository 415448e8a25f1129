using System.Buffers.Binary;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// What a leader decides about one claim that waits, in the value of a sweep: <c>i32 row, i32 ms, i64 token</c>. Little
/// endian.
/// </summary>
/// <param name="Row">The claim's row.</param>
/// <param name="Token">The claim's token, by which it is known whether it is still the same.</param>
/// <param name="AgainMs">Milliseconds until it is checked again; 0: it is abandoned.</param>
internal readonly record struct WaiterDecision(Row Row, FencingToken Token, int AgainMs)
{
    public const int Bytes = 16;

    public static WaiterDecision Read(ReadOnlySpan<byte> source) =>
        new(
            new Row(BinaryPrimitives.ReadInt32LittleEndian(source)),
            new FencingToken(BinaryPrimitives.ReadInt64LittleEndian(source[8..])),
            BinaryPrimitives.ReadInt32LittleEndian(source[4..]));

    public void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(Bytes);
        BinaryPrimitives.WriteInt32LittleEndian(span, Row.Value);
        BinaryPrimitives.WriteInt32LittleEndian(span[4..], AgainMs);
        BinaryPrimitives.WriteInt64LittleEndian(span[8..], Token.Value);
    }
}
