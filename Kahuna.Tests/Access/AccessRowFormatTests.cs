using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Wire;

namespace Kahuna.Tests.Access;

/// <summary>The bytes of the records, and what is made of bytes that are none.</summary>
public sealed class AccessRowFormatTests
{
    private static readonly UserRecord s_user = new(0x01020304, "zoë")
    {
        Password = new PasswordHash(210_000, [1, 2, 3], [4, 5, 6, 7]),
        Roles = ["admin", "reader"],
        CertificateNames = ["CN=zoë"],
        IsDisabled = true,
        PasswordVersion = 9,
    };

    private static readonly RoleRecord s_role = new("reader",
    [
        new Grant(Permissions.Read | Permissions.Watch, GrantLevels.Both, GrantScope.Prefix, [0x61, 0x2F]),
        new Grant(Permissions.Admin, GrantLevels.Ephemeral, GrantScope.Bucket, [0x62]),
    ]);

    private static readonly TokenRecord s_token = new(
        new Guid([.. Enumerable.Range(1, 16).Select(static i => (byte)i)]),
        7,
        [.. Enumerable.Range(32, 32).Select(static i => (byte)i)],
        1_700_000_000_000,
        1_800_000_000_000,
        "deploy");

    [Fact]
    public void The_bytes_are_as_published()
    {
        StringBuilder text = new();
        Append(text, "user", AccessRowFormat.Of(s_user));
        Append(text, "user without anything", AccessRowFormat.Of(new UserRecord(1, "a")));
        UserRecord limited = new(2, "b") { Quota = new UserQuota(3, 4, 5) };
        Append(text, "user with a quota", AccessRowFormat.Of(limited));
        Append(text, "role", AccessRowFormat.Of(s_role));
        Append(text, "token", AccessRowFormat.Of(s_token));
        Append(text, "last user id", AccessRowFormat.OfLastUserId(0x01020304));
        GoldenFile.Check("Access/rows.txt", text.ToString());
    }

    [Fact]
    public void What_was_written_is_read()
    {
        UserRecord user = AccessRowFormat.ReadUser(AccessRowFormat.Of(s_user))!;
        Assert.Equal(
            (s_user.Id, s_user.Name, true, s_user.PasswordVersion),
            (user.Id, user.Name, user.IsDisabled, user.PasswordVersion));
        Assert.Equal(s_user.Roles, user.Roles);
        Assert.Equal(s_user.CertificateNames, user.CertificateNames);
        Assert.Equal(s_user.Password!.Iterations, user.Password!.Iterations);
        Assert.Equal(s_user.Password.Salt, user.Password.Salt);
        Assert.Equal(s_user.Password.Hash, user.Password.Hash);
        Assert.Null(AccessRowFormat.ReadUser(AccessRowFormat.Of(s_user with { Password = null }))!.Password);
        Assert.Equal(default, user.Quota);
        UserQuota quota = new(1L << 60, 2, 10_000_000);
        Assert.Equal(quota, AccessRowFormat.ReadUser(AccessRowFormat.Of(s_user with { Quota = quota }))!.Quota);
        Assert.Null(AccessRowFormat.ReadUser(AccessRowFormat.Of(s_user with { Quota = new UserQuota(-1, 0, 0) })));

        RoleRecord role = AccessRowFormat.ReadRole(AccessRowFormat.Of(s_role))!;
        Assert.Equal(s_role.Name, role.Name);
        Assert.Equal(s_role.Grants.Select(Describe), role.Grants.Select(Describe));

        TokenRecord token = AccessRowFormat.ReadToken(AccessRowFormat.Of(s_token))!;
        Assert.Equal(s_token with { SecretHash = [] }, token with { SecretHash = [] });
        Assert.Equal(s_token.SecretHash, token.SecretHash);
        Assert.Equal(8u, AccessRowFormat.ReadLastUserId(AccessRowFormat.OfLastUserId(8)));
    }

    [Fact]
    public void Bytes_that_are_none_are_no_record_and_do_not_throw()
    {
        Random random = new(7);
        AccessRow[] good = [AccessRowFormat.Of(s_user), AccessRowFormat.Of(s_role), AccessRowFormat.Of(s_token)];
        foreach (AccessRow row in good)
        {
            for (int length = 0; length < row.Value!.Length; length++)
            {
                AssertNone(row with { Value = row.Value[..length] });
            }

            AssertNone(row with { Value = [.. row.Value, 0] });
            AssertNone(row with { Value = [2, .. row.Value[1..]] });
            AssertNone(row with { Value = null });
            AssertNone(row with { Kind = 0 });
            for (int i = 0; i < 2_000; i++)
            {
                byte[] value = [.. row.Value];
                value[random.Next(value.Length)] ^= (byte)(1 << random.Next(8));
                AccessBook.Read(new AccessRows(1, [], [row with { Value = value }, row with { Name = value }]));
            }
        }

        AssertNone(good[0] with { Name = [1, 2, 3] });
        AssertNone(good[0] with { Name = [0, 0, 0, 0] });
        AssertNone(good[1] with { Name = [0xFF] });
        AssertNone(good[2] with { Name = [1] });
        AssertNone(AccessRowFormat.Of(new RoleRecord("r", [s_role.Grants[0] with { Permissions = (Permissions)512 }])));
        AssertNone(AccessRowFormat.Of(new RoleRecord("r", [s_role.Grants[0] with { Levels = (GrantLevels)4 }])));
        AssertNone(AccessRowFormat.Of(new RoleRecord("r", [s_role.Grants[0] with { Scope = (GrantScope)3 }])));
        AssertNone(AccessRowFormat.Of(s_user with { Password = s_user.Password! with { Iterations = 0 } }));
    }

    private static void AssertNone(AccessRow row)
    {
        Assert.Null(AccessRowFormat.ReadUser(row));
        Assert.Null(AccessRowFormat.ReadRole(row));
        Assert.Null(AccessRowFormat.ReadToken(row));
        Assert.Null(AccessRowFormat.ReadLastUserId(row));
    }

    private static string Describe(Grant grant) =>
        $"{grant.Permissions} {grant.Levels} {grant.Scope} {Convert.ToHexString(grant.Name)}";

    private static void Append(StringBuilder text, string what, AccessRow row)
    {
        GoldenFile.AppendDump(text, $"{what}: kind and name", [row.Kind, .. row.Name]);
        GoldenFile.AppendDump(text, $"{what}: value", row.Value);
    }
}
