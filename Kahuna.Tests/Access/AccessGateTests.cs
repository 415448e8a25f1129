using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Access;

/// <summary>What the gate says of a caller as the records, the time and the node's view change.</summary>
public sealed class AccessGateTests
{
    private static readonly TokenRecord s_token = new(new Guid(7, 7, 7, new byte[8]), 2, new byte[32], 0, 0, "");

    private readonly ManualTime _time = new();
    private readonly AccessState _access;
    private readonly AccessGate _gate;
    private ulong _version;

    public AccessGateTests()
    {
        _access = new AccessState(isRequired: true, _time);
        _gate = new AccessGate(_access);
        Publish(Ann(), AccessRowFormat.Of(s_token));
    }

    [Fact]
    public void Nobody_may_do_anything()
    {
        Assert.Equal(OutcomeStatus.Unauthenticated, StatusOf(null, "ann/a"));
        Assert.Equal(OutcomeStatus.Unauthenticated, StatusOf(Caller.Anybody, "ann/a"));
        Assert.Equal(OutcomeStatus.Unset, StatusOf(Caller.Node, "bob/a"));
        AccessGate open = new(new AccessState(isRequired: false, _time));
        Assert.True(open.Look(null).IsUnchecked);
    }

    [Fact]
    public void A_caller_has_the_rights_of_the_newest_records()
    {
        Caller ann = Known();
        Assert.Equal(OutcomeStatus.Unset, StatusOf(ann, "ann/a"));
        Assert.Equal(OutcomeStatus.PermissionDenied, StatusOf(ann, "bob/a"));
        Publish(Ann("bob/"), AccessRowFormat.Of(s_token));
        Assert.Equal(OutcomeStatus.PermissionDenied, StatusOf(ann, "ann/a"));
        Assert.Equal(OutcomeStatus.Unset, StatusOf(ann, "bob/a"));
    }

    [Fact]
    public void Older_records_that_come_late_change_nothing()
    {
        Caller ann = Known();
        AccessRows before = _access.Rows;
        Publish(Ann("bob/"), AccessRowFormat.Of(s_token));
        _access.Publish(before);
        Assert.Equal(OutcomeStatus.PermissionDenied, StatusOf(ann, "ann/a"));
    }

    [Fact]
    public void A_caller_ends_with_its_user_its_password_and_its_token()
    {
        Caller[] callers = [Known(), Known(CallerMethod.Token), Known(CallerMethod.Certificate)];
        Publish(Ann(passwordVersion: 1), AccessRowFormat.Of(s_token));
        Assert.Equal([true, false, false], callers.Select(static caller => caller.End is not null));
        Publish(Ann(passwordVersion: 1));
        Assert.Equal([true, true, false], callers.Select(static caller => caller.End is not null));
        Publish(Ann(passwordVersion: 1, isDisabled: true));
        Assert.All(callers, static caller => Assert.NotNull(caller.End));
        Assert.All(callers, caller => Assert.Equal(OutcomeStatus.Unauthenticated, StatusOf(caller, "ann/a")));
        Publish();
        Assert.All(callers, static caller => Assert.NotNull(caller.End));
    }

    [Fact]
    public void What_expires_ends_by_time()
    {
        Caller ann = new(_access, _access.Book.FindUser(2u)!, CallerMethod.Jwt)
        {
            ExpiresMs = _access.Now.ToUnixTimeMilliseconds() + 5_000,
        };
        _time.Advance(TimeSpan.FromMilliseconds(4_990));
        Assert.Equal(OutcomeStatus.Unset, StatusOf(ann, "ann/a"));
        _time.Advance(TimeSpan.FromMilliseconds(10));
        Publish(Ann());
        Assert.Equal(OutcomeStatus.Unauthenticated, StatusOf(ann, "ann/a"));
    }

    [Fact]
    public void A_node_that_may_have_missed_a_change_does_nothing_for_users()
    {
        Caller ann = Known();
        _access.IsFresh = static () => false;
        Assert.Equal(OutcomeStatus.Unavailable, StatusOf(ann, "ann/a"));
        Assert.Equal(OutcomeStatus.Unset, StatusOf(Caller.Node, "ann/a"));
    }

    [Fact]
    public void Who_has_something_open_is_told_of_changes_and_of_time()
    {
        int looks = 0;
        IDisposable open = _access.Watch(() => looks++);
        Publish(Ann("bob/"));
        _access.Tick();
        Assert.Equal(2, looks);
        open.Dispose();
        Publish(Ann());
        Assert.Equal(2, looks);
    }

    [Fact]
    public void An_admitted_command_has_the_sessions_of_its_user()
    {
        Caller ann = Known();
        byte[] bytes = Encode("ann/a", session: 77);
        Assert.Null(Admit(ann, bytes));
        Assert.True(Command.TryRead(bytes, out Command bound));
        Assert.Equal(new UserSessions(2).NumberOf(77), bound.SessionId);
        byte[] refused = Encode("bob/a", session: 77);
        Assert.NotNull(Admit(ann, refused));
        Assert.Equal(Encode("bob/a", session: 77), refused);
    }

    private Caller Known(CallerMethod method = CallerMethod.Password) =>
        new(_access, _access.Book.FindUser(2u)!, method) { Token = method == CallerMethod.Token ? s_token.Id : null };

    private OutcomeStatus StatusOf(Caller? caller, string key)
    {
        Assert.True(Command.TryRead(Encode(key, session: 0), out Command command));
        string? sentence = _gate.Look(caller).Refuse(in command, out OutcomeStatus status);
        Assert.Equal(sentence is null, status == OutcomeStatus.Unset);
        return status;
    }

    private string? Admit(Caller caller, byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        return _gate.Look(caller).Admit(in command, bytes, out _);
    }

    private static byte[] Encode(string key, ulong session)
    {
        Command command = new()
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Flags = session == 0 ? CommandFlags.None : CommandFlags.Session,
            Key = Encoding.UTF8.GetBytes(key),
            Value = "v"u8,
            SessionId = session,
            Sequence = 1,
        };
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static AccessRow[] Ann(string prefix = "ann/", uint passwordVersion = 0, bool isDisabled = false) =>
    [
        AccessRowFormat.Of(new RoleRecord(
            "r",
            [
                new Grant(
                    Permissions.Data,
                    GrantLevels.Both,
                    GrantScope.Prefix,
                    Encoding.UTF8.GetBytes(prefix)),
            ])),
        AccessRowFormat.Of(new UserRecord(2, "ann")
        {
            Roles = ["r"],
            PasswordVersion = passwordVersion,
            IsDisabled = isDisabled,
        }),
    ];

    private void Publish(AccessRow[]? rows = null, params AccessRow[] more) =>
        _access.Publish(new AccessRows(++_version, [], [.. rows ?? [], .. more]));
}
