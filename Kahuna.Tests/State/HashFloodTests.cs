using System.Buffers.Binary;
using System.Numerics;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.State;

/// <summary>
/// Keys that collide in a public hash do not in a table's, and nothing that replicas share depends on the table's
/// secret.
/// </summary>
public sealed class HashFloodTests
{
    private const ulong P1 = 0x9E3779B185EBCA87;
    private const ulong P2 = 0xC2B2AE3D27D4EB4F;
    private const ulong P3 = 0x165667B19E3779F9;
    private const ulong P4 = 0x85EBCA77C2B2AE63;
    private const ulong P5 = 0x27D4EB2F165667C5;

    [Fact]
    public void Keys_that_collide_in_a_hash_that_everybody_knows_are_spread_over_the_table()
    {
        const int Count = 20_000;
        KeyTable table = new(new SlabAllocator(), new HashSecret(0x0123456789ABCDEF, 0xFEDCBA9876543210));
        HashSet<uint> publicHashes = [];
        HashSet<uint> hashes = [];
        byte[] key = new byte[sizeof(ulong)];
        for (uint i = 1; i <= Count; i++)
        {
            BinaryPrimitives.WriteUInt64LittleEndian(key, Preimage(((ulong)i << 32) | 0x12345678));
            publicHashes.Add((uint)XxHash64.Hash(key));
            hashes.Add(table.HashOf(key));
        }

        Assert.Single(publicHashes);
        Assert.InRange(hashes.Count, Count - 10, Count);
    }

    [Fact]
    public void Two_secrets_hash_differently()
    {
        KeyTable one = new(new SlabAllocator(), new HashSecret(1, 2));
        KeyTable other = new(new SlabAllocator(), new HashSecret(1, 3));
        Assert.NotEqual(one.HashOf("abc"u8), other.HashOf("abc"u8));
    }

    [Fact]
    public void A_state_hashes_its_keys_with_the_secret_of_its_limits()
    {
        StateLimits limits = new() { HashSecret = new HashSecret(1, 2) };
        KeyTable table = new(new SlabAllocator(), limits.HashSecret);
        Assert.Equal(table.HashOf("abc"u8), new KeyStore(limits).Keys.HashOf("abc"u8));
    }

    [Fact]
    public void Replicas_with_different_secrets_have_the_same_rows_records_and_digests()
    {
        StateLimits limits =
            new() { CommandLifeMs = 5_000, SessionIdleMs = 9_000, SessionTouchMs = 10, HistoryBytes = 20_000 };
        StateDriver one = new(limits with { HashSecret = new HashSecret(1, 2) });
        StateDriver other = new(limits with { HashSecret = new HashSecret(3, 4) });
        Random random = new(5);
        for (int step = 0; step < 20_000; step++)
        {
            TestCommand command = random.Next(8) switch
            {
                0 => new TestCommand(CommandKind.ExpireSweep, string.Empty) { Flags = CommandFlags.Number, Number = 3 },
                1 => new TestCommand(CommandKind.SessionSweep, string.Empty)
                {
                    Flags = CommandFlags.Number | (random.Next(2) == 0 ? CommandFlags.Keyed : 0),
                    Number = 9_000,
                },
                2 => new TestCommand(CommandKind.Delete, $"k{random.Next(400)}"),
                _ => new TestCommand(CommandKind.Set, $"k{random.Next(400)}", $"{step}")
                {
                    Flags = CommandFlags.Ttl | CommandFlags.ReturnPrevious,
                    TtlMs = 20 * random.Next(1, 20),
                },
            };
            one.Now = other.Now = 1_000 + (step / 10 * 20);
            if (command.Kind is CommandKind.Set or CommandKind.Delete)
            {
                ulong session = (ulong)random.Next(1, 50);
                session = random.Next(4) == 0 ? IdempotencyKey.AsKey(session) : session;
                ushort lag = (ushort)random.Next(Math.Min(step + 1, 9));
                Assert.Equal(
                    one.Numbered(command, session, (ulong)step + 1, lag),
                    other.Numbered(command, session, (ulong)step + 1, lag));
            }
            else
            {
                one.Follow(command);
                other.Follow(command);
            }
        }

        Assert.Equal(one.Machine.Digest, other.Machine.Digest);
        Assert.Equal(one.Machine.RecomputeDigest(), other.Machine.RecomputeDigest());
        using StateView view = one.Machine.ViewAll();
        using StateView otherView = other.Machine.ViewAll();
        Assert.Equal(StateRecords.TakeAll(view), StateRecords.TakeAll(otherView));
    }

    /// <summary>
    /// The 8 bytes whose XXH64 under seed 0 is <paramref name="hash"/>: its steps are one-to-one, so each is undone.
    /// </summary>
    private static ulong Preimage(ulong hash)
    {
        hash ^= hash >> 32;
        hash = unchecked(hash * Inverse(P3));
        hash ^= (hash >> 29) ^ (hash >> 58);
        hash = unchecked(hash * Inverse(P2));
        hash ^= hash >> 33;
        hash = BitOperations.RotateRight(unchecked((hash - P4) * Inverse(P1)), 27) ^ unchecked(P5 + sizeof(ulong));
        return unchecked(BitOperations.RotateRight(unchecked(hash * Inverse(P1)), 31) * Inverse(P2));
    }

    private static ulong Inverse(ulong odd)
    {
        ulong inverse = odd;
        for (int i = 0; i < 6; i++)
        {
            inverse = unchecked(inverse * (2 - (odd * inverse)));
        }

        return inverse;
    }
}
