using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State.Locks;

/// <summary>Commands about locks, as they arrive from a client.</summary>
internal static class LockCommands
{
    public static byte[] Acquire(
        string name,
        string owner,
        long leaseMs = 1_000,
        long waitMs = 0,
        LockMode mode = LockMode.Exclusive,
        int permits = 0,
        string note = "")
    {
        LockBody form = new()
        {
            Mode = mode,
            Permits = permits,
            Owner = Encoding.UTF8.GetBytes(owner),
            Note = Encoding.UTF8.GetBytes(note),
        };
        byte[] value = new byte[form.EncodedBytes];
        form.Write(value);
        return Encode(new Command
        {
            Kind = CommandKind.LockAcquire,
            Flags = CommandFlags.Ttl | (waitMs > 0 ? CommandFlags.Number : 0),
            Key = Encoding.UTF8.GetBytes(name),
            Value = value,
            TtlMs = leaseMs,
            Number = waitMs,
        });
    }

    public static byte[] Extend(string name, string owner, long token, long leaseMs) => Encode(new Command
    {
        Kind = CommandKind.LockExtend,
        Flags = CommandFlags.Ttl | CommandFlags.IfRevision,
        Key = Encoding.UTF8.GetBytes(name),
        Value = Encoding.UTF8.GetBytes(owner),
        ComparedRevision = token,
        TtlMs = leaseMs,
    });

    public static byte[] Release(string name, string owner, long token, bool onlyPlace = false) => Encode(new Command
    {
        Kind = CommandKind.LockRelease,
        Flags = CommandFlags.IfRevision | (onlyPlace ? CommandFlags.IfAbsent : 0),
        Key = Encoding.UTF8.GetBytes(name),
        Value = Encoding.UTF8.GetBytes(owner),
        ComparedRevision = token,
    });

    public static byte[] Await(string name, string owner, long token, long holdMs = 0) => Encode(new Command
    {
        Kind = CommandKind.LockAwait,
        Flags = CommandFlags.IfRevision | CommandFlags.Number,
        Key = Encoding.UTF8.GetBytes(name),
        Value = Encoding.UTF8.GetBytes(owner),
        ComparedRevision = token,
        Number = holdMs,
    });

    public static byte[] Observe(string name, long token, long holdMs) => Encode(new Command
    {
        Kind = CommandKind.LockObserve,
        Flags = CommandFlags.IfRevision | CommandFlags.Number,
        Key = Encoding.UTF8.GetBytes(name),
        ComparedRevision = token,
        Number = holdMs,
    });

    public static byte[] Encode(Command command)
    {
        command.Durability = Durability.Persistent;
        if (command.Kind != CommandKind.LockSweep)
        {
            bool isGood = CommandCheck.IsGood(in command, 1024, out _, out string? sentence);
            Assert.True(isGood, sentence);
        }

        return EncodeUnchecked(command);
    }

    /// <summary>A command's bytes, for those that clients do not send.</summary>
    public static byte[] EncodeUnchecked(Command command)
    {
        command.Durability = Durability.Persistent;
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        byte[] encoded = bytes.Written.ToArray();
        bytes.Return();
        return encoded;
    }
}
