using Kahuna.Server.Access;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Access;

/// <summary>Sessions and idempotency keys belong to a user.</summary>
public sealed class UserSessionsTests
{
    private const ulong Number = 0x1234_5678_9ABC_DEF0;

    [Fact]
    public void Two_users_never_share_a_session_and_one_always_has_the_same()
    {
        ulong ann = new UserSessions(1).NumberOf(Number);
        Assert.Equal(ann, new UserSessions(1).NumberOf(Number));
        Assert.NotEqual(ann, new UserSessions(2).NumberOf(Number));
        Assert.NotEqual(ann, new UserSessions(1).NumberOf(Number + 1));
        Assert.NotEqual(Number, ann);
    }

    [Fact]
    public void A_session_stays_one_and_an_idempotency_key_stays_one()
    {
        UserSessions sessions = new(7);
        Random random = new(3);
        for (int i = 0; i < 1_000; i++)
        {
            ulong number = (ulong)random.NextInt64();
            Assert.False(IdempotencyKey.IsKey(sessions.NumberOf(IdempotencyKey.AsSession(number))));
            Assert.True(IdempotencyKey.IsKey(sessions.NumberOf(IdempotencyKey.AsKey(number))));
        }
    }

    [Theory]
    [InlineData((int)CommandFlags.None)]
    [InlineData((int)CommandFlags.IfValue)]
    [InlineData((int)(CommandFlags.IfValue | CommandFlags.Ttl | CommandFlags.Fenced))]
    [InlineData((int)(CommandFlags.IfRevision | CommandFlags.Fenced))]
    public void Only_the_session_of_a_command_changes(int value)
    {
        CommandFlags flags = (CommandFlags)value;
        Command command = new()
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Flags = flags | CommandFlags.Session,
            Key = "key"u8,
            Value = "value"u8,
            ComparedValue = flags.HasFlag(CommandFlags.IfValue) ? "before"u8 : default,
            ComparedRevision = 5,
            TtlMs = 1_000,
            SessionId = Number,
            Sequence = 9,
            Lag = 3,
            FenceToken = 4,
            FenceName = flags.HasFlag(CommandFlags.Fenced) ? "lock"u8 : default,
        };
        UserSessions sessions = new(7);
        byte[] bytes = Encode(in command);
        sessions.Bind(bytes);
        command.SessionId = sessions.NumberOf(Number);
        Assert.Equal(Encode(in command), bytes);
    }

    [Fact]
    public void A_command_without_a_session_stays_as_it_is()
    {
        Command command = new() { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = "key"u8 };
        byte[] bytes = Encode(in command);
        new UserSessions(7).Bind(bytes);
        Assert.Equal(Encode(in command), bytes);
    }

    private static byte[] Encode(scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
