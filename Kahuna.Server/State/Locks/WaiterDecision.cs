using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// What a leader decides about one claim that waits, in the value of a sweep: <c>i32 row, i32 ms, i64 token</c>. Little
/// endian.
/// </summary>
/// <param name="Row">The claim's row.</param>
/// <param name="Token">The claim's token, by which it is known whether it is still the same.</param>
/// <param name="AgainMs">It is looked after again in so many ms; 0: it is given up.</param>
internal readonly record struct WaiterDecision(int Row, FencingToken Token, int AgainMs)
{
    public const int Bytes = 16;

    public static WaiterDecision Read(ReadOnlySpan<byte> source) =>
        new(
            BinaryPrimitives.ReadInt32LittleEndian(source),
            new FencingToken(BinaryPrimitives.ReadInt64LittleEndian(source[8..])),
            BinaryPrimitives.ReadInt32LittleEndian(source[4..]));

    public void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(Bytes);
        BinaryPrimitives.WriteInt32LittleEndian(span, Row);
        BinaryPrimitives.WriteInt32LittleEndian(span[4..], AgainMs);
        BinaryPrimitives.WriteInt64LittleEndian(span[8..], Token.Value);
    }
}
