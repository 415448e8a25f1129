using System.Buffers.Binary;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Keys that have to go because there is no room: chosen on the leader, and named in a command, so that every node
/// drops the same ones. The command's value is <c>u16 length, name</c> for each. Stateless.
/// </summary>
internal static class Eviction
{
    /// <summary>Keys that one command lets go, with their history: bounded work.</summary>
    public const int KeysPerCommand = 32;

    /// <summary>
    /// What a key takes up besides its block: its row, its share of the hash table, its place in the queue.
    /// </summary>
    private const int OverheadBytes = KeyTable.RowBytes + 6 + 12;

    /// <summary>
    /// Appends names of keys that should go, until they make up <paramref name="bytes"/>, which is lowered by what they
    /// do, the names fill the buffer to <paramref name="namesBytesMax"/>, or there are <see cref="KeysPerCommand"/>.
    /// False when none was found.
    /// </summary>
    public static bool TryChoose(KeyStore store, ByteBuffer names, int namesBytesMax, ref long bytes)
    {
        if (store.Uses is not { } uses)
        {
            return false;
        }

        int count = 0;
        while (bytes > 0
            && count < KeysPerCommand
            && names.Length < namesBytesMax
            && uses.Next() is { IsNone: false } row)
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            BinaryPrimitives.WriteUInt16LittleEndian(names.Take(sizeof(ushort)), entry.KeyLength);
            names.Append(store.Keys.Key(in entry));
            bytes -= OverheadBytes + SizeClasses.BytesOf(SizeClasses.Of(entry.BlockLength));
            count++;
        }

        return count > 0;
    }

    /// <summary>Forgets the keys that a command names and that are there; not those that a transaction holds.</summary>
    public static void Apply(KeyStore store, scoped in Command command)
    {
        ReadOnlySpan<byte> rest = command.Value;
        while (rest.Length > sizeof(ushort))
        {
            int length = BinaryPrimitives.ReadUInt16LittleEndian(rest);
            ReadOnlySpan<byte> name = rest.Slice(sizeof(ushort), length);
            rest = rest[(sizeof(ushort) + length)..];
            if (!store.Prepared.IsHeld(name)
                && store.Keys.Find(name, store.Keys.HashOf(name)) is { IsNone: false } row)
            {
                store.Forget(row);
                store.Evicted++;
            }
        }
    }
}
