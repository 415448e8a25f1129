using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Api.Access;
using Kahuna.Tests.Client;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Access;

/// <summary>What the gate tells the audit log, and that it costs nothing while nothing is refused.</summary>
public sealed class RefusalAuditTests
{
    private readonly AccessState _access = new(isRequired: true, new ManualTime());
    private readonly AuditRecorder _lines = new();
    private readonly AccessGate _gate;

    public RefusalAuditTests()
    {
        _gate = new AccessGate(_access, new RefusalAudit(_lines));
        _access.Publish(new AccessRows(
            1,
            [],
            [
                AccessRowFormat.Of(AccessCluster.Role("r", "ann")),
                AccessRowFormat.Of(new UserRecord(2, "ann") { Roles = ["r"] }),
            ]));
    }

    private Caller Ann => new(_access, _access.Book.FindUser(2u)!, CallerMethod.Password);

    [Fact]
    public void A_refused_command_is_told_with_its_name_and_the_missing_permission()
    {
        Refuse(Ann, Encode(CommandKind.Set, "bob/a"));
        Refuse(Ann, Encode(CommandKind.LockAcquire, "bob/l"));
        Assert.Equal(
            [
                ("ann", "set", "bob/a",
                    "refused: The permission write is missing on the persistent key \"bob/a\"."),
                ("ann", "lock acquire", "bob/l",
                    "refused: The permission lock is missing on the persistent lock \"bob/l\"."),
            ],
            _lines.Lines);
    }

    [Fact]
    public void Of_a_list_the_name_that_is_not_allowed_is_told()
    {
        Refuse(Ann, Encode(CommandKind.GetMany, "ann/1", ListOf("ann/1", "bob/2", "cid/3")));
        (string _, string action, string subject, string result) = Assert.Single(_lines.Lines);
        Assert.Equal(("get many", "bob/2"), (action, subject));
        Assert.Contains("bob/2", result, StringComparison.Ordinal);
    }

    [Fact]
    public void Who_is_nobody_is_told_and_who_has_to_wait_is_not()
    {
        Refuse(null, Encode(CommandKind.Set, "ann/a"));
        (string user, string action, string subject, _) = Assert.Single(_lines.Lines);
        Assert.Equal(("", "set", "ann/a"), (user, action, subject));
        _access.IsFresh = static () => false;
        Refuse(Ann, Encode(CommandKind.Set, "ann/a"));
        Assert.Single(_lines.Lines);
    }

    [Fact]
    public void What_a_script_reads_is_told_once()
    {
        byte[] bytes = Encode(CommandKind.Get, "bob/a");
        Assert.True(Command.TryRead(bytes, out Command command));
        Assert.NotNull(_gate.Look(Ann).RefuseInScript(in command, out _));
        Assert.Equal("bob/a", Assert.Single(_lines.Lines).Subject);
    }

    [Fact]
    public void The_rest_of_a_long_name_is_left_out()
    {
        Refuse(Ann, Encode(CommandKind.Set, "bob/" + new string('\u00e9', 20_000)));
        Assert.InRange(Assert.Single(_lines.Lines).Subject.Length, 500, RefusalAudit.SubjectBytesMax + 1);
    }

    [Fact]
    public void What_is_allowed_costs_nothing()
    {
        Caller ann = Ann;
        byte[] bytes = Encode(CommandKind.Set, "ann/a");
        Assert.Equal(0, AllocatedBytes.LeastOf(() =>
        {
            for (int i = 0; i < 100; i++)
            {
                Command.TryRead(bytes, out Command command);
                Assert.Null(_gate.Look(ann).Admit(in command, bytes, out _));
            }
        }));
        Assert.Empty(_lines.Lines);
    }

    [Fact]
    public void Each_kind_has_words()
    {
        Assert.Equal("set", RefusalAudit.ActionOf(CommandKind.Set));
        Assert.Equal("key range delete", RefusalAudit.ActionOf(CommandKind.KeyRangeDelete));
        Assert.Equal("command", RefusalAudit.ActionOf((CommandKind)0xFE));
        Assert.All(
            Enum.GetValues<CommandKind>(),
            static kind => Assert.Matches("^[a-z]+( [a-z]+)*$", RefusalAudit.ActionOf(kind)));
    }

    private void Refuse(Caller? caller, byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        Assert.NotNull(_gate.Look(caller).Refuse(in command, out OutcomeStatus status));
        Assert.NotEqual(OutcomeStatus.Unset, status);
    }

    private static byte[] Encode(CommandKind kind, string key, byte[]? value = null)
    {
        Command command = new()
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(key),
            Value = value,
        };
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static byte[] ListOf(params string[] keys)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        foreach (string key in keys)
        {
            Command item = new()
            {
                Kind = CommandKind.Get,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(key),
            };
            CommandList.Append(buffer, in item);
        }

        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
