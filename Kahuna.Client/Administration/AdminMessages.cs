using Kahuna.Wire.Protos;
using WireGrant = Kahuna.Wire.Protos.RoleGrant;

namespace Kahuna.Client.Administration;

/// <summary>Turns the messages of the administration into the SDK's types, and back. Stateless; any thread.</summary>
internal static class AdminMessages
{
    public static User ToWire(KahunaUser user)
    {
        User message = new()
        {
            Name = user.Name,
            Disabled = user.IsDisabled,
            Quota = new Quota
            {
                Keys = user.Quota.Keys,
                Bytes = user.Quota.Bytes,
                OperationsPerSecond = user.Quota.OperationsPerSecond,
            },
        };
        message.Roles.AddRange(user.Roles);
        message.CertificateNames.AddRange(user.CertificateNames);
        return message;
    }

    public static KahunaUser ToUser(User message) => new()
    {
        Name = message.Name,
        Roles = [.. message.Roles],
        CertificateNames = [.. message.CertificateNames],
        IsDisabled = message.Disabled,
        HasPassword = message.HasPassword,
        Quota = ToQuota(message.Quota),
        Usage = ToUsage(message.Usage),
    };

    public static Role ToWire(KahunaRole role)
    {
        Role message = new() { Name = role.Name };
        message.Grants.AddRange(role.Grants.Select(ToWire));
        return message;
    }

    public static KahunaRole ToRole(Role message) => new(message.Name, ToGrants(message.Grants));

    public static AccessToken ToToken(Token message) => new(
        message.Id,
        message.User,
        DateTimeOffset.FromUnixTimeMilliseconds(message.CreatedMs),
        message.ExpiresMs == 0 ? null : DateTimeOffset.FromUnixTimeMilliseconds(message.ExpiresMs),
        message.Note);

    public static Identity ToIdentity(WhoAmIResponse message) =>
        new(message.User, message.Method, [.. message.Roles], ToGrants(message.Grants))
        {
            Quota = ToQuota(message.Quota),
            Usage = ToUsage(message.Usage),
        };

    private static UserQuota ToQuota(Quota? message) => message is null
        ? UserQuota.None
        : new UserQuota
        {
            Keys = message.Keys,
            Bytes = message.Bytes,
            OperationsPerSecond = message.OperationsPerSecond,
        };

    private static UserUsage ToUsage(Usage? message) => new(message?.Keys ?? 0, message?.Bytes ?? 0);

    private static RoleGrant[] ToGrants(IEnumerable<WireGrant> messages) => [.. messages.Select(ToGrant)];

    private static WireGrant ToWire(RoleGrant grant)
    {
        WireGrant message = new()
        {
            Level = grant.Level switch
            {
                Durability.Persistent => GrantLevel.PersistentNames,
                Durability.Ephemeral => GrantLevel.EphemeralNames,
                _ => GrantLevel.Unspecified,
            },
        };
        switch (grant.Scope)
        {
            case GrantScope.Key:
                message.Key = grant.Name;
                break;
            case GrantScope.Bucket:
                message.Bucket = grant.Name;
                break;
            default:
                message.Prefix = grant.Name;
                break;
        }

        // Each permission is one bit, in the order of the kinds.
        message.Permissions.AddRange(Kinds().Where(kind => grant.Permissions.HasFlag(BitOf(kind))));
        return message;
    }

    private static RoleGrant ToGrant(WireGrant message) => new()
    {
        Permissions = Kinds().Where(message.Permissions.Contains).Aggregate(
            Permissions.None, static (all, kind) => all | BitOf(kind)),
        Scope = message.NamesCase switch
        {
            WireGrant.NamesOneofCase.Key => GrantScope.Key,
            WireGrant.NamesOneofCase.Bucket => GrantScope.Bucket,
            _ => GrantScope.Prefix,
        },
        Name = message.NamesCase switch
        {
            WireGrant.NamesOneofCase.Key => message.Key,
            WireGrant.NamesOneofCase.Bucket => message.Bucket,
            _ => message.Prefix,
        },
        Level = message.Level switch
        {
            GrantLevel.PersistentNames => Durability.Persistent,
            GrantLevel.EphemeralNames => Durability.Ephemeral,
            _ => null,
        },
    };

    private static IEnumerable<PermissionKind> Kinds() =>
        Enum.GetValues<PermissionKind>().Where(static kind => kind != PermissionKind.Unspecified);

    private static Permissions BitOf(PermissionKind kind) => (Permissions)(1 << ((int)kind - 1));
}
