using System.Text;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire.Protos;

namespace Kahuna.Server.Api;

/// <summary>Maps the records of users, roles and tokens to the messages of the admin service. Stateless.</summary>
internal static class AccessMessages
{
    private static readonly (Permissions Permission, PermissionKind Kind)[] s_permissions =
    [
        (Permissions.Read, PermissionKind.Read),
        (Permissions.Write, PermissionKind.Write),
        (Permissions.Lock, PermissionKind.Lock),
        (Permissions.Sequence, PermissionKind.Sequence),
        (Permissions.Watch, PermissionKind.Watch),
        (Permissions.Script, PermissionKind.Script),
        (Permissions.Transaction, PermissionKind.Transaction),
        (Permissions.Admin, PermissionKind.Admin),
    ];

    /// <summary>The message of a user; nothing of its password but whether it has one.</summary>
    /// <param name="user">The user.</param>
    /// <param name="usage">What it uses.</param>
    public static User ToMessage(UserRecord user, UserUsage usage) => new()
    {
        Quota = new Quota
        {
            Keys = user.Quota.Keys,
            Bytes = user.Quota.Bytes,
            OperationsPerSecond = user.Quota.OperationsPerSecond,
        },
        Usage = new Usage { Keys = usage.Keys, Bytes = usage.Bytes },
        Name = user.Name,
        Roles = { user.Roles },
        CertificateNames = { user.CertificateNames },
        Disabled = user.IsDisabled,
        HasPassword = user.Password is not null,
    };

    /// <summary>The quota that a message describes; none for none. <see cref="AccessRules"/> checks it.</summary>
    public static UserQuota ToQuota(Quota? quota) =>
        quota is null ? default : new UserQuota(quota.Keys, quota.Bytes, quota.OperationsPerSecond);

    /// <summary>The message of a role.</summary>
    public static Role ToMessage(RoleRecord role) => new()
    {
        Name = role.Name,
        Grants = { role.Grants.Select(ToMessage) },
    };

    /// <summary>The message of a token; nothing of its secret.</summary>
    public static Token ToMessage(TokenRecord token, string user) => new()
    {
        Id = TokenText.IdText(token.Id),
        User = user,
        CreatedMs = token.CreatedMs,
        ExpiresMs = token.ExpiresMs,
        Note = token.Note,
    };

    /// <summary>The message of a grant.</summary>
    public static RoleGrant ToMessage(Grant grant)
    {
        RoleGrant message = new()
        {
            Permissions =
            {
                s_permissions.Where(row => (grant.Permissions & row.Permission) != 0).Select(static row => row.Kind),
            },
            Level = grant.Levels switch
            {
                GrantLevels.Persistent => GrantLevel.PersistentNames,
                GrantLevels.Ephemeral => GrantLevel.EphemeralNames,
                _ => GrantLevel.Unspecified,
            },
        };
        string name = Encoding.UTF8.GetString(grant.Name);
        switch (grant.Scope)
        {
            case GrantScope.Key:
                message.Key = name;
                break;
            case GrantScope.Bucket:
                message.Bucket = name;
                break;
            default:
                message.Prefix = name;
                break;
        }

        return message;
    }

    /// <summary>The role that a message describes; <see cref="AccessRules"/> checks the rest.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: a grant has an unknown value, or names nothing.</exception>
    public static RoleRecord ToRecord(Role role) =>
        new(role.Name, [.. role.Grants.Select(static (grant, i) => ToRecord(grant, i + 1))]);

    /// <summary>The error that ends a call with a problem.</summary>
    public static RpcException ToException(AccessProblem problem) => OutcomeErrors.Build(
        problem.Reason switch
        {
            AccessRefusal.InvalidArgument => StatusCode.InvalidArgument,
            AccessRefusal.PermissionDenied => StatusCode.PermissionDenied,
            AccessRefusal.NotFound => StatusCode.NotFound,
            AccessRefusal.AlreadyExists => StatusCode.AlreadyExists,
            AccessRefusal.FailedPrecondition => StatusCode.FailedPrecondition,
            AccessRefusal.ResourceExhausted => StatusCode.ResourceExhausted,
            AccessRefusal.Conflict => StatusCode.Aborted,
            _ => StatusCode.DeadlineExceeded,
        },
        problem.Sentence,
        problem.Reason == AccessRefusal.Unknown ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen);

    /// <summary>The error of a request that is not valid.</summary>
    public static RpcException Invalid(string sentence) =>
        ToException(new AccessProblem(AccessRefusal.InvalidArgument, sentence));

    private static Grant ToRecord(RoleGrant grant, int number)
    {
        Permissions permissions = Permissions.None;
        foreach (PermissionKind kind in grant.Permissions)
        {
            (Permissions permission, _) = Array.Find(s_permissions, row => row.Kind == kind);
            permissions |= permission != Permissions.None
                ? permission
                : throw Invalid($"Grant {number}: permission {(int)kind} is not one that this version knows.");
        }

        (GrantScope scope, string name) = grant.NamesCase switch
        {
            RoleGrant.NamesOneofCase.Prefix => (GrantScope.Prefix, grant.Prefix),
            RoleGrant.NamesOneofCase.Key => (GrantScope.Key, grant.Key),
            RoleGrant.NamesOneofCase.Bucket => (GrantScope.Bucket, grant.Bucket),
            _ when permissions == Permissions.Admin => (GrantScope.Prefix, ""),
            _ => throw Invalid(
                $"Grant {number}: it has no prefix, key or bucket; for all names say so with an empty prefix."),
        };
        GrantLevels levels = grant.Level switch
        {
            GrantLevel.Unspecified => GrantLevels.Both,
            GrantLevel.PersistentNames => GrantLevels.Persistent,
            GrantLevel.EphemeralNames => GrantLevels.Ephemeral,
            _ => throw Invalid($"Grant {number}: level {(int)grant.Level} is not one that this version knows."),
        };
        return new Grant(permissions, levels, scope, Encoding.UTF8.GetBytes(name));
    }
}
