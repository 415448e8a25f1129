using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Reads one <see cref="KeyRecord"/>: first what is current, then each replaced revision, the oldest first. Valid as
/// long as the record's bytes.
/// </summary>
internal ref struct KeyRecordReader
{
    private const long NoDeadline = -1;

    private ReadOnlySpan<byte> _rest;
    private uint _left;

    /// <summary>Number of the key's row, from 1 on.</summary>
    public Row Row { get; private set; }

    public ReadOnlySpan<byte> Key { get; private set; }

    /// <summary>The revision that was last read: the current one at first.</summary>
    public ReadOnlySpan<byte> Value { get; private set; }

    public Revision Revision { get; private set; }

    public KeyEntryFlags Flags { get; private set; }

    public ClusterTime? Deadline { get; private set; }

    /// <summary>Whose the key is; 0 for nobody's.</summary>
    public ushort Account { get; private set; }

    public ClusterTime ReplacedAt { get; private set; }

    public long Number { get; private set; }

    /// <summary>Everything was read and nothing is left over.</summary>
    public readonly bool IsWhole => _left == 0 && _rest.IsEmpty;

    /// <summary>Begins to read; false when the bytes are no record.</summary>
    public static bool TryBegin(ReadOnlySpan<byte> record, out KeyRecordReader reader)
    {
        reader = default;
        if (record.Length < KeyRecord.HeaderBytes)
        {
            return false;
        }

        int keyLength = BinaryPrimitives.ReadUInt16LittleEndian(record);
        uint valueLength = BinaryPrimitives.ReadUInt32LittleEndian(record[24..]);
        ReadOnlySpan<byte> rest = record[KeyRecord.HeaderBytes..];
        int row = BinaryPrimitives.ReadInt32LittleEndian(record[4..]);
        bool isFree = ((KeyEntryFlags)record[2] & KeyEntryFlags.Free) != 0;
        if (row <= 0
            || (keyLength == 0) != isFree
            || (isFree && rest.Length > 0)
            || rest.Length < keyLength
            || (uint)(rest.Length - keyLength) < valueLength)
        {
            return false;
        }

        long deadline = BinaryPrimitives.ReadInt64LittleEndian(record[16..]);
        KeyEntryFlags flags = (KeyEntryFlags)record[2];
        if (!SystemRowKind.IsWellFormed(flags, rest[..keyLength], (int)valueLength, hasTime: deadline != NoDeadline))
        {
            return false;
        }

        ushort account = BinaryPrimitives.ReadUInt16LittleEndian(record[30..]);
        if (account != 0 && (flags & AccountUsage.Uncharged) != 0)
        {
            return false;
        }

        reader.Flags = flags;
        reader.Account = account;
        reader.Row = new Row(row);
        reader.Revision = new Revision(BinaryPrimitives.ReadInt64LittleEndian(record[8..]));
        reader.Deadline = deadline == NoDeadline ? null : new ClusterTime(deadline);
        reader.Key = rest[..keyLength];
        reader.Value = rest.Slice(keyLength, (int)valueLength);
        reader._left = BinaryPrimitives.ReadUInt16LittleEndian(record[28..]);
        reader._rest = rest[(keyLength + (int)valueLength)..];
        return true;
    }

    /// <summary>
    /// Goes on to the next replaced revision; false when there is none, or the bytes are damaged (<see cref="IsWhole"/>
    /// tells).
    /// </summary>
    public bool TryNext()
    {
        if (_left == 0 || _rest.Length < KeyRecord.RevisionHeaderBytes)
        {
            return false;
        }

        uint valueLength = BinaryPrimitives.ReadUInt32LittleEndian(_rest[25..]);
        if ((uint)(_rest.Length - KeyRecord.RevisionHeaderBytes) < valueLength)
        {
            return false;
        }

        Revision = new Revision(BinaryPrimitives.ReadInt64LittleEndian(_rest));
        ReplacedAt = new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(_rest[8..]));
        Number = BinaryPrimitives.ReadInt64LittleEndian(_rest[16..]);
        Flags = (KeyEntryFlags)_rest[24];
        Value = _rest.Slice(KeyRecord.RevisionHeaderBytes, (int)valueLength);
        _rest = _rest[(KeyRecord.RevisionHeaderBytes + (int)valueLength)..];
        _left--;
        return true;
    }
}
