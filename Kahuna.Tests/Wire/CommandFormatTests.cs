using System.Text;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Wire;

/// <summary>The encoding of commands: fixed by a golden file, the same forth and back, and deaf to garbage.</summary>
public sealed class CommandFormatTests
{
    private const string File = "Wire/commands.txt";

    private delegate void Fill(ref Command command);

    [Fact]
    public void The_encoding_is_the_published_one()
    {
        StringBuilder text = new();
        foreach ((string name, Fill fill) in Samples())
        {
            GoldenFile.AppendDump(text, name, Encode(fill));
        }

        GoldenFile.Check(File, text.ToString());
    }

    [Fact]
    public void Published_encodings_are_read()
    {
        Dictionary<string, byte[]> dumps = GoldenFile.ReadDumps(File);
        foreach ((string name, Fill fill) in Samples())
        {
            Command expected = default;
            fill(ref expected);
            Assert.True(Command.TryRead(dumps[name], out Command read), name);
            AssertSame(in expected, in read);
            Assert.Equal((byte)expected.Kind >= 0x80, read.IsRead);
        }

        Assert.Equal(Samples().Count(), dumps.Count);
    }

    [Fact]
    public void Samples_from_clients_are_good()
    {
        foreach ((string name, Fill fill) in Samples())
        {
            Command command = default;
            fill(ref command);
            bool good = CommandCheck.IsGood(command, Limits.ValueBytesDefault, out _, out string? sentence);
            Assert.True(
                good || command.Kind is CommandKind.ExpireSweep or CommandKind.SessionSweep, $"{name}: {sentence}");
        }
    }

    [Fact]
    public void Random_commands_survive_the_round_trip()
    {
        Random random = new(11);
        byte[] bytes = new byte[4096];
        for (int i = 0; i < 5000; i++)
        {
            random.NextBytes(bytes);
            Command command = Draw(random, bytes);
            ByteBuffer buffer = ByteBuffer.Rent();
            command.Write(buffer);
            Assert.Equal(command.EncodedBytes, buffer.Length);
            Assert.True(Command.TryRead(buffer.Written, out Command read));
            AssertSame(in command, in read);

            // Not one byte less, not one more.
            Assert.False(Command.TryRead(buffer.Written[..^1], out _));
            buffer.Take(1);
            Assert.False(Command.TryRead(buffer.Written, out _));
            buffer.Return();
        }
    }

    [Fact]
    public void Garbage_is_refused_or_read_and_never_throws()
    {
        Random random = new(12);
        byte[] bytes = new byte[200];
        int read = 0;
        for (int i = 0; i < 200_000; i++)
        {
            int length = random.Next(bytes.Length);
            random.NextBytes(bytes);
            if (random.Next(2) == 0 && length >= Command.HeaderBytes)
            {
                // Nearly well-formed: small flags and lengths, so that the deeper checks are reached.
                bytes[3] &= 0x3F;
                bytes[4] &= 0x3F;
                bytes[5] = bytes[6] = bytes[7] = bytes[9] = bytes[10] = bytes[11] = 0;
                bytes[8] = (byte)Math.Max(0, length - Command.HeaderBytes - bytes[4]);
                bytes[2] &= (byte)random.Next(256);
            }

            if (Command.TryRead(bytes.AsSpan(0, length), out Command command))
            {
                read++;
                Assert.Equal(length, command.EncodedBytes);
                CommandCheck.IsGood(command, 100, out _, out _);
            }
        }

        Assert.True(read > 100, "the generator reaches well-formed commands");
    }

    [Fact]
    public void Every_flipped_bit_is_read_or_refused_without_harm()
    {
        byte[] good = Encode((ref Command c) =>
        {
            Of(
                ref c,
                CommandKind.Set,
                CommandFlags.IfValue | CommandFlags.IfRevision | CommandFlags.Ttl | CommandFlags.Session);
            c.Value = "value"u8;
            c.ComparedValue = "compared"u8;
        });
        for (int bit = 0; bit < good.Length * 8; bit++)
        {
            byte[] flipped = [.. good];
            flipped[bit / 8] ^= (byte)(1 << (bit % 8));
            if (Command.TryRead(flipped, out Command command))
            {
                ByteBuffer again = ByteBuffer.Rent();
                command.Write(again);
                Assert.True(again.Written.SequenceEqual(flipped), $"bit {bit} was read and not kept");
                again.Return();
            }
        }
    }

    [Theory]
    [InlineData(6)]
    [InlineData(7)]
    public void An_item_of_a_list_has_no_account_of_its_own(int offset)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        Command item = default;
        Of(ref item, CommandKind.Set);
        CommandList.Append(buffer, in item);
        ReadOnlySpan<byte> items = buffer.Written;
        Assert.True(CommandList.TryTake(ref items, out _));
        buffer.Array[CommandList.ItemHeaderBytes + offset] = 1;
        items = buffer.Written;
        Assert.False(CommandList.TryTake(ref items, out _));
        buffer.Return();
    }

    [Fact]
    public void Lengths_near_the_limit_of_the_field_do_not_overflow()
    {
        byte[] bytes = Encode((ref Command c) => Of(ref c, CommandKind.Set, CommandFlags.IfValue));
        foreach (uint length in new[] { uint.MaxValue, 0x8000_0000u, (uint)int.MaxValue, uint.MaxValue - 12 })
        {
            BitConverter.TryWriteBytes(bytes.AsSpan(8), length);
            Assert.False(Command.TryRead(bytes, out _));
            BitConverter.TryWriteBytes(bytes.AsSpan(12), uint.MaxValue - length + 1);
            Assert.False(Command.TryRead(bytes, out _));
        }
    }

    private static IEnumerable<(string Name, Fill Fill)> Samples()
    {
        yield return ("set: key app/a, value hello", (ref Command c) =>
        {
            Of(ref c, CommandKind.Set);
            c.Value = "hello"u8;
        }
        );
        yield return ("set: charged to the account 258", (ref Command c) =>
        {
            Of(ref c, CommandKind.Set);
            c.Account = 258;
        }
        );
        yield return ("set: null value", (ref Command c) => Of(ref c, CommandKind.Set, CommandFlags.NullValue));
        yield return ("set: empty value, if absent, time to live 30,000 ms", (ref Command c) =>
        {
            Of(ref c, CommandKind.Set, CommandFlags.IfAbsent | CommandFlags.Ttl);
            c.TtlMs = 30_000;
        }
        );
        const string Full = "set: if present, if value old, if revision 7, without history, return previous, "
            + "session 0x0102030405060708 sequence 9 lag 3, opening, value new";
        yield return (Full, (ref Command c) =>
        {
            Of(
                ref c,
                CommandKind.Set,
                CommandFlags.IfPresent
                    | CommandFlags.IfValue
                    | CommandFlags.IfRevision
                    | CommandFlags.Session
                    | CommandFlags.Opening
                    | CommandFlags.WithoutHistory
                    | CommandFlags.ReturnPrevious);
            c.Value = "new"u8;
            c.ComparedValue = "old"u8;
            c.ComparedRevision = 7;
            c.SessionId = 0x0102030405060708;
            c.Sequence = 9;
            c.Lag = 3;
        }
        );
        yield return ("set: ephemeral, session 1 sequence 2 lag 1 epoch 3", (ref Command c) =>
        {
            Of(ref c, CommandKind.Set, CommandFlags.Session);
            c.Durability = Durability.Ephemeral;
            c.SessionId = 1;
            c.Sequence = 2;
            c.Lag = 1;
            c.Epoch = 3;
        }
        );
        yield return ("set: if value null, value x", (ref Command c) =>
        {
            Of(ref c, CommandKind.Set, CommandFlags.IfValue | CommandFlags.NullCompared);
            c.Value = "x"u8;
        }
        );
        yield return ("delete", (ref Command c) => Of(ref c, CommandKind.Delete));
        yield return ("delete: if revision 3, return previous", (ref Command c) =>
        {
            Of(ref c, CommandKind.Delete, CommandFlags.IfRevision | CommandFlags.ReturnPrevious);
            c.ComparedRevision = 3;
        }
        );
        yield return ("extend: 60,000 ms", (ref Command c) =>
        {
            Of(ref c, CommandKind.Extend, CommandFlags.Ttl);
            c.TtlMs = 60_000;
        }
        );
        yield return ("increment: by -5", (ref Command c) =>
        {
            Of(ref c, CommandKind.Increment, CommandFlags.Number);
            c.Number = -5;
        }
        );
        yield return ("get: latest", (ref Command c) => Of(ref c, CommandKind.Get));
        yield return ("get: at revision 258", (ref Command c) =>
        {
            Of(ref c, CommandKind.Get, CommandFlags.AtRevision);
            c.AtRevision = 258;
        }
        );
        yield return ("exists: key é/鍵", (ref Command c) =>
        {
            Of(ref c, CommandKind.Exists);
            c.Key = "é/鍵"u8;
        }
        );
        yield return ("sequence create: from 5 by -2 between -100 and 9, cycles", (ref Command c) =>
        {
            Of(ref c, CommandKind.SequenceCreate);
            byte[] form = new byte[SequenceBody.Bytes];
            new SequenceBody { Initial = 5, Increment = -2, Min = -100, Max = 9, Cycles = true }.Write(form);
            c.Value = form;
        }
        );
        yield return ("sequence update: max 7", (ref Command c) =>
        {
            Of(ref c, CommandKind.SequenceUpdate);
            byte[] form = new byte[SequenceBody.Bytes];
            new SequenceBody { Max = 7, Mask = SequenceBody.ChangesMax }.Write(form);
            c.Value = form;
        }
        );
        yield return ("sequence next: 3 values under the idempotency key 0x0807060504030201", (ref Command c) =>
        {
            Of(
                ref c,
                CommandKind.SequenceNext,
                CommandFlags.Number | CommandFlags.Session | CommandFlags.Opening | CommandFlags.Keyed);
            c.Number = 3;
            c.SessionId = 0x0807060504030201;
            c.Sequence = 1;
        }
        );
        yield return ("sequence list: partition 2, from place 8193", (ref Command c) =>
        {
            Of(ref c, CommandKind.SequenceList, CommandFlags.Number | CommandFlags.AtRevision);
            c.Number = 2;
            c.AtRevision = 8193;
        }
        );
        yield return ("session sweep: idle for 3,600,000 ms", (ref Command c) => c = new Command
        {
            Kind = CommandKind.SessionSweep,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Number,
            Number = 3_600_000,
        });
        yield return ("expire sweep: at most 64 keys", (ref Command c) => c = new Command
        {
            Kind = CommandKind.ExpireSweep,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Number,
            Number = 64,
        });
    }

    private static void Of(ref Command command, CommandKind kind, CommandFlags flags = CommandFlags.None)
    {
        command.Kind = kind;
        command.Durability = Durability.Persistent;
        command.Flags = flags;
        command.Key = "app/a"u8;
    }

    private static byte[] Encode(Fill fill)
    {
        Command command = default;
        fill(ref command);
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static Command Draw(Random random, ReadOnlySpan<byte> bytes)
    {
        Command command = new()
        {
            Kind = (CommandKind)random.Next(256),
            Durability = (Durability)random.Next(256),
            Flags = (CommandFlags)random.Next(1 << 14),
            Key = bytes[..random.Next(1025)],
            Value = bytes.Slice(1025, random.Next(2000)),
            Account = (ushort)random.Next(1 << 16),
        };
        command.ComparedRevision = command.Has(CommandFlags.IfRevision) ? random.NextInt64() : 0;
        command.TtlMs = command.Has(CommandFlags.Ttl) ? -random.NextInt64() : 0;
        command.AtRevision = command.Has(CommandFlags.AtRevision) ? random.NextInt64() : 0;
        command.Number = command.Has(CommandFlags.Number) ? -random.NextInt64() : 0;
        command.SessionId = command.Has(CommandFlags.Session) ? (ulong)random.NextInt64() : 0;
        command.Sequence = command.Has(CommandFlags.Session) ? ulong.MaxValue - (ulong)random.NextInt64() : 0;
        command.Lag = command.Has(CommandFlags.Session) ? (ushort)random.Next(1 << 16) : (ushort)0;
        command.Epoch = command.Has(CommandFlags.Session) ? (ushort)random.Next(1 << 16) : (ushort)0;
        if (command.Has(CommandFlags.IfValue))
        {
            command.ComparedValue = bytes.Slice(3100, random.Next(900));
        }

        return command;
    }

    private static void AssertSame(scoped in Command expected, scoped in Command read)
    {
        Assert.Equal(expected.Kind, read.Kind);
        Assert.Equal(expected.Durability, read.Durability);
        Assert.Equal(expected.Flags, read.Flags);
        Assert.True(expected.Key.SequenceEqual(read.Key));
        Assert.True(expected.Value.SequenceEqual(read.Value));
        Assert.True(expected.ComparedValue.SequenceEqual(read.ComparedValue));
        Assert.Equal(
            (
                expected.ComparedRevision,
                expected.TtlMs,
                expected.AtRevision,
                expected.Number,
                expected.SessionId,
                expected.Sequence,
                expected.Lag,
                expected.Epoch,
                expected.Account),
            (
                read.ComparedRevision,
                read.TtlMs,
                read.AtRevision,
                read.Number,
                read.SessionId,
                read.Sequence,
                read.Lag,
                read.Epoch,
                read.Account));
    }
}
