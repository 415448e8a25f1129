using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// The holders of a lock, as the value of an outcome, decoded in place.
/// <code>
/// offset  0  u16  permits; 0: no semaphore
///         2  u16  listed holders, at most 256
///         4  u32  waiters
///         8  u32  holders
///        12  each listed holder: u8 mode, u8 reserved, u16 owner's length, u16 note's length, i64 token,
///            i64 rest of its lease in ms, owner, note
/// </code>
/// </summary>
internal ref struct LockSnapshot
{
    private const int HeaderBytes = 12;
    private const int HolderBytes = 22;

    private ReadOnlySpan<byte> _rest;
    private int _left;

    public int Permits;
    public int Waiters;
    public int Holders;

    public LockMode Mode;
    public long Token;
    public long LeftMs;
    public ReadOnlySpan<byte> Owner;
    public ReadOnlySpan<byte> Note;

    /// <summary>The bytes after the snapshot, once all holders were read.</summary>
    public readonly ReadOnlySpan<byte> Rest => _rest;

    public static bool TryRead(ReadOnlySpan<byte> source, out LockSnapshot snapshot)
    {
        snapshot = default;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        snapshot.Permits = BinaryPrimitives.ReadUInt16LittleEndian(source);
        snapshot._left = BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        snapshot.Waiters = BinaryPrimitives.ReadInt32LittleEndian(source[4..]);
        snapshot.Holders = BinaryPrimitives.ReadInt32LittleEndian(source[8..]);
        snapshot._rest = source[HeaderBytes..];
        return true;
    }

    /// <summary>Steps to the next holder; false after the last.</summary>
    public bool TryNext()
    {
        if (_left == 0 || _rest.Length < HolderBytes)
        {
            return false;
        }

        int owner = BinaryPrimitives.ReadUInt16LittleEndian(_rest[2..]);
        int note = BinaryPrimitives.ReadUInt16LittleEndian(_rest[4..]);
        if (_rest.Length < HolderBytes + owner + note)
        {
            return false;
        }

        Mode = (LockMode)_rest[0];
        Token = BinaryPrimitives.ReadInt64LittleEndian(_rest[6..]);
        LeftMs = BinaryPrimitives.ReadInt64LittleEndian(_rest[14..]);
        Owner = _rest.Slice(HolderBytes, owner);
        Note = _rest.Slice(HolderBytes + owner, note);
        _rest = _rest[(HolderBytes + owner + note)..];
        _left--;
        return true;
    }

    public static void WriteHeader(ByteBuffer target, int permits, int waiters, int holders, int listed)
    {
        Span<byte> span = target.Take(HeaderBytes);
        BinaryPrimitives.WriteUInt16LittleEndian(span, (ushort)permits);
        BinaryPrimitives.WriteUInt16LittleEndian(span[2..], (ushort)listed);
        BinaryPrimitives.WriteInt32LittleEndian(span[4..], waiters);
        BinaryPrimitives.WriteInt32LittleEndian(span[8..], holders);
    }

    public static void WriteHolder(
        ByteBuffer target, LockMode mode, long token, long leftMs, ReadOnlySpan<byte> owner, ReadOnlySpan<byte> note)
    {
        Span<byte> span = target.Take(HolderBytes);
        span[0] = (byte)mode;
        span[1] = 0;
        BinaryPrimitives.WriteUInt16LittleEndian(span[2..], (ushort)owner.Length);
        BinaryPrimitives.WriteUInt16LittleEndian(span[4..], (ushort)note.Length);
        BinaryPrimitives.WriteInt64LittleEndian(span[6..], token);
        BinaryPrimitives.WriteInt64LittleEndian(span[14..], leftMs);
        target.Append(owner);
        target.Append(note);
    }
}
