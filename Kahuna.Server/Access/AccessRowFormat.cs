using System.Buffers.Binary;
using System.Text;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Access;

/// <summary>
/// The bytes of the records: what the value of a row has. Stateless, any thread.
/// </summary>
/// <remarks>
/// All numbers are little-endian; a text is <c>u16 length</c> and UTF-8. The first byte is the version, 1. A row of
/// another version, or with anything left over, is none of this version's.
/// <code>
/// User   u8 version, u8 flags (1 disabled, 2 has a password, 4 has a quota), u32 version of the password, text name,
///        u8 roles, a text for each, u8 names of certificates, a text for each;
///        with a password: i32 iterations, u8 length of the salt, the salt, u8 length of the hash, the hash;
///        with a quota: u64 keys, u64 bytes, u32 operations per second (0: without a limit)
/// Role   u8 version, u16 grants, for each: u16 permissions, u8 levels, u8 scope, u16 length of the name, the name
/// Token  u8 version, u32 user, u8[32] hash of the secret, i64 created, i64 expires, text note
/// LastUserId  u32 id
/// </code>
/// </remarks>
internal static class AccessRowFormat
{
    private const byte Version = 1;
    private const byte Disabled = 1;
    private const byte WithPassword = 2;
    private const byte WithQuota = 4;
    private const int GuidBytes = 16;
    private const int SecretHashBytes = 32;
    private const Permissions KnownPermissions = Permissions.Data | Permissions.Admin;

    private static readonly byte[] s_lastUserIdName = "i"u8.ToArray();

    /// <summary>The row of a user.</summary>
    public static AccessRow Of(UserRecord user)
    {
        AccessRowWriter value = new();
        value.U8(Version);
        value.U8((byte)((user.IsDisabled ? Disabled : 0)
            | (user.Password is null ? 0 : WithPassword)
            | (user.Quota == default ? 0 : WithQuota)));
        value.U32(user.PasswordVersion);
        value.Text(user.Name);
        value.Texts(user.Roles);
        value.Texts(user.CertificateNames);
        if (user.Password is { } password)
        {
            value.U32((uint)password.Iterations);
            value.U8(checked((byte)password.Salt.Length));
            value.Bytes(password.Salt);
            value.U8(checked((byte)password.Hash.Length));
            value.Bytes(password.Hash);
        }

        if (user.Quota != default)
        {
            value.U64((ulong)user.Quota.Keys);
            value.U64((ulong)user.Quota.Bytes);
            value.U32((uint)user.Quota.OperationsPerSecond);
        }

        return new AccessRow((byte)AccessRowKind.User, UserName(user.Id), value.ToArray());
    }

    /// <summary>The row of a role.</summary>
    public static AccessRow Of(RoleRecord role)
    {
        AccessRowWriter value = new();
        value.U8(Version);
        value.U16(role.Grants.Count);
        foreach (Grant grant in role.Grants)
        {
            value.U16((int)grant.Permissions);
            value.U8((byte)grant.Levels);
            value.U8((byte)grant.Scope);
            value.U16(grant.Name.Length);
            value.Bytes(grant.Name);
        }

        return new AccessRow((byte)AccessRowKind.Role, Encoding.UTF8.GetBytes(role.Name), value.ToArray());
    }

    /// <summary>The row of a token.</summary>
    public static AccessRow Of(TokenRecord token)
    {
        AccessRowWriter value = new();
        value.U8(Version);
        value.U32(token.UserId);
        value.Bytes(token.SecretHash);
        value.U64((ulong)token.CreatedMs);
        value.U64((ulong)token.ExpiresMs);
        value.Text(token.Note);
        return new AccessRow((byte)AccessRowKind.Token, token.Id.ToByteArray(), value.ToArray());
    }

    /// <summary>The row of the highest number that a user ever had.</summary>
    public static AccessRow OfLastUserId(uint id)
    {
        byte[] value = new byte[sizeof(uint)];
        BinaryPrimitives.WriteUInt32LittleEndian(value, id);
        return new AccessRow((byte)AccessRowKind.LastUserId, s_lastUserIdName, value);
    }

    /// <summary>The row that takes a record's place when it is deleted.</summary>
    public static AccessRow Deleted(AccessRow row) => row with { Value = null };

    /// <summary>Decodes a user; null for another row, and for one that this version does not know.</summary>
    public static UserRecord? ReadUser(AccessRow row)
    {
        AccessRowReader value = new(row.Value);
        if (row.Kind != (byte)AccessRowKind.User || row.Name.Length != sizeof(uint) || value.U8() != Version)
        {
            return null;
        }

        byte flags = value.U8();
        uint passwordVersion = value.U32();
        UserRecord user = new(BinaryPrimitives.ReadUInt32LittleEndian(row.Name), value.Text())
        {
            IsDisabled = (flags & Disabled) != 0,
            PasswordVersion = passwordVersion,
            Roles = value.Texts(),
            CertificateNames = value.Texts(),
            Password = (flags & WithPassword) == 0 ? null
                : new PasswordHash(
                    (int)value.U32(), value.Bytes(value.U8()).ToArray(), value.Bytes(value.U8()).ToArray()),
            Quota = (flags & WithQuota) == 0 ? default
                : new UserQuota((long)value.U64(), (long)value.U64(), (int)value.U32()),
        };
        return value.IsDone
            && (flags & ~(Disabled | WithPassword | WithQuota)) == 0
            && user.Id != 0
            && user.Name.Length > 0
            && user.Password is not { Iterations: < 1 }
            && user.Quota is { Keys: >= 0, Bytes: >= 0, OperationsPerSecond: >= 0 }
            ? user
            : null;
    }

    /// <summary>Decodes a role; null for another row, and for one that this version does not know.</summary>
    public static RoleRecord? ReadRole(AccessRow row)
    {
        AccessRowReader value = new(row.Value);
        if (row.Kind != (byte)AccessRowKind.Role
            || !AccessRowReader.TryText(row.Name, out string name)
            || value.U8() != Version)
        {
            return null;
        }

        int count = value.U16();
        List<Grant> grants = [];
        for (int i = 0; i < count && !value.IsBad; i++)
        {
            Grant grant = new(
                (Permissions)value.U16(),
                (GrantLevels)value.U8(),
                (GrantScope)value.U8(),
                value.Bytes(value.U16()).ToArray());
            if ((grant.Permissions & ~KnownPermissions) != 0
                || (grant.Levels & ~GrantLevels.Both) != 0
                || grant.Scope > GrantScope.Bucket)
            {
                return null;
            }

            grants.Add(grant);
        }

        return value.IsDone ? new RoleRecord(name, grants) : null;
    }

    /// <summary>Decodes a token; null for another row, and for one that this version does not know.</summary>
    public static TokenRecord? ReadToken(AccessRow row)
    {
        AccessRowReader value = new(row.Value);
        if (row.Kind != (byte)AccessRowKind.Token || row.Name.Length != GuidBytes || value.U8() != Version)
        {
            return null;
        }

        TokenRecord token = new(
            new Guid(row.Name),
            value.U32(),
            value.Bytes(SecretHashBytes).ToArray(),
            (long)value.U64(),
            (long)value.U64(),
            value.Text());
        return value.IsDone && token.UserId != 0 ? token : null;
    }

    /// <summary>Decodes the highest number that a user ever had; null for another row.</summary>
    public static uint? ReadLastUserId(AccessRow row) =>
        row.Kind == (byte)AccessRowKind.LastUserId && row.Value is { Length: sizeof(uint) }
            ? BinaryPrimitives.ReadUInt32LittleEndian(row.Value)
            : null;

    private static byte[] UserName(uint id)
    {
        byte[] name = new byte[sizeof(uint)];
        BinaryPrimitives.WriteUInt32LittleEndian(name, id);
        return name;
    }
}
