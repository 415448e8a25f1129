using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The value of a row that is a claim for a lock, in place: <c>i64 token, i64 end of the wait, i32 row of the lock, i32
/// row of the claim before, i32 of the one after, u32 lease in ms, u8 mode, u8 zero, note</c>. It holds the lock or
/// waits for it as its row's flag says. Its name says whose it is: <c>0xFF C i32 row of the lock, owner</c>. Little
/// endian.
/// </summary>
internal readonly ref struct ClaimRow(Span<byte> value)
{
    public const int HeaderBytes = SystemRowKind.ClaimHeaderBytes;

    /// <summary>Where the owner begins in the name.</summary>
    public const int OwnerAt = SystemRowKind.ClaimOwnerAt;

    private readonly Span<byte> _value = value;

    public FencingToken Token
    {
        get => new(BinaryPrimitives.ReadInt64LittleEndian(_value));
        set => BinaryPrimitives.WriteInt64LittleEndian(_value, value.Value);
    }

    /// <summary>Cluster time at which it has waited long enough.</summary>
    public ClusterTime WaitEnd
    {
        get => new(BinaryPrimitives.ReadInt64LittleEndian(_value[8..]));
        set => BinaryPrimitives.WriteInt64LittleEndian(_value[8..], value.Ms);
    }

    public Row Lock { get => new(Read(16)); set => Write(16, value.Value); }

    public Row Before { get => new(Read(20)); set => Write(20, value.Value); }

    public Row After { get => new(Read(24)); set => Write(24, value.Value); }

    public int LeaseMs { get => Read(28); set => Write(28, value); }

    public LockMode Mode
    {
        get => (LockMode)_value[32];
        set => _value[32] = (byte)value;
    }

    public Span<byte> Note => _value[HeaderBytes..];

    private int Read(int at) => BinaryPrimitives.ReadInt32LittleEndian(_value[at..]);

    private void Write(int at, int number) => BinaryPrimitives.WriteInt32LittleEndian(_value[at..], number);
}
