using System.Buffers.Binary;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The value of a row that is a lock, in place: <c>i32 row of the first holder, i32 of the last, i32 of the first
/// waiter, i32 of the last, u32 waiters, u32 holders, u16 permits</c> (0: no semaphore). Holders and waiters are in the
/// order of their tokens. Little endian.
/// </summary>
internal readonly ref struct LockRow(Span<byte> value)
{
    public const int Bytes = 26;

    private readonly Span<byte> _value = value;

    public Row FirstHolder { get => new(Read(0)); set => Write(0, value.Value); }

    public Row LastHolder { get => new(Read(4)); set => Write(4, value.Value); }

    public Row FirstWaiter { get => new(Read(8)); set => Write(8, value.Value); }

    public Row LastWaiter { get => new(Read(12)); set => Write(12, value.Value); }

    public int Waiters { get => Read(16); set => Write(16, value); }

    public int Holders { get => Read(20); set => Write(20, value); }

    public int Permits
    {
        get => BinaryPrimitives.ReadUInt16LittleEndian(_value[24..]);
        set => BinaryPrimitives.WriteUInt16LittleEndian(_value[24..], (ushort)value);
    }

    private int Read(int at) => BinaryPrimitives.ReadInt32LittleEndian(_value[at..]);

    private void Write(int at, int number) => BinaryPrimitives.WriteInt32LittleEndian(_value[at..], number);
}
