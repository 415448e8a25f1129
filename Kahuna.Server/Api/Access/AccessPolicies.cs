using System.Collections.Frozen;
using Grpc.AspNetCore.Server;
using Microsoft.AspNetCore.Grpc.JsonTranscoding;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// The policy of each way in: one row per gRPC method and HTTP path. What has no row is refused, so that a new method
/// is closed until somebody decides about it. Stateless; any thread.
/// </summary>
internal static class AccessPolicies
{
    /// <summary>The path on which the first administrator is made over the network.</summary>
    public const string InitAdminPath = "/init-admin";

    /// <summary>The page for operators.</summary>
    public const string PagePath = "/ui";

    /// <summary>A file of the page.</summary>
    public const string PageFilePath = "/ui/{file}";

    /// <summary>The status of all nodes, for the page.</summary>
    public const string PageStatusPath = "/ui/status";

    /// <summary>The status of a node, for the other nodes.</summary>
    public const string NodeStatusPath = "/status/node";

    /// <summary>The last hour of all nodes, for the page.</summary>
    public const string PageHistoryPath = "/ui/history";

    /// <summary>The last hour of a node, for the other nodes.</summary>
    public const string NodeHistoryPath = "/status/node/history";

    /// <summary>The slow operations of all nodes, for the page.</summary>
    public const string PageSlowPath = "/ui/slow";

    /// <summary>The slow operations of a node, for the other nodes.</summary>
    public const string NodeSlowPath = "/status/node/slow";

    /// <summary>The sessions that a node's state has, for the page.</summary>
    public const string PageSessionsPath = "/ui/sessions";

    /// <summary>The queue of a lock, for the page.</summary>
    public const string PageQueuePath = "/ui/queue";

    /// <summary>The queue of a lock in a node's state, for the other nodes.</summary>
    public const string NodeQueuePath = "/status/node/queue";
    /// <summary>The operations of a node that took long.</summary>
    public const string SlowPath = "/status/slow";

    /// <summary>The gRPC package's answer to methods that do not exist: any service, or one that exists.</summary>
    private const string UnknownMethod = "{unimplementedMethod:grpcunimplemented}";

    private static readonly FrozenDictionary<string, AccessPolicy> s_rows = Rows().ToFrozenDictionary(
        static row => row.Name, static row => row.Policy, StringComparer.Ordinal);

    /// <summary>The methods and paths that have a row.</summary>
    public static IEnumerable<string> Names => s_rows.Keys;

    /// <summary>The policy of a method, as <c>/package.Service/Method</c>, or of a path; null: it has none.</summary>
    public static AccessPolicy? Find(string name) =>
        s_rows.TryGetValue(name, out AccessPolicy policy) ? policy
            : name.EndsWith(UnknownMethod, StringComparison.Ordinal) ? AccessPolicy.SignedIn
            : null;

    /// <summary>
    /// The policy of an endpoint; null: it has none. A JSON route has the policy of the gRPC method behind it.
    /// </summary>
    public static AccessPolicy? Find(Endpoint endpoint) => NameOf(endpoint) is { } name ? Find(name) : null;

    /// <summary>The name by which an endpoint is looked up; null: it is none that a node has.</summary>
    public static string? NameOf(Endpoint endpoint)
    {
        EndpointMetadataCollection metadata = endpoint.Metadata;
        return metadata.GetMetadata<GrpcJsonTranscodingMetadata>() is { } json
                ? $"/{json.MethodDescriptor.Service.FullName}/{json.MethodDescriptor.Name}"
            : metadata.GetMetadata<GrpcMethodMetadata>() is { } method ? method.Method.FullName
            : (endpoint as RouteEndpoint)?.RoutePattern.RawText;
    }

    private static IEnumerable<(string Name, AccessPolicy Policy)> Rows() =>
    [
        ("/healthz", AccessPolicy.Open),
        ("/readyz", AccessPolicy.Open),
        ("/openapi.json", AccessPolicy.Open),
        (PagePath, AccessPolicy.Open),
        (PageFilePath, AccessPolicy.Open),
        .. Of("grpc.health.v1.Health", AccessPolicy.Open, "Check", "Watch"),

        .. Of(
            "kahuna.v1.KeyValues", AccessPolicy.SignedIn,
            "SetKeyValue", "GetKeyValue", "ExistsKeyValue", "DeleteKeyValue", "ExtendKeyValue", "IncrementKeyValue",
            "ScanKeyValues", "SetManyKeyValues", "GetManyKeyValues", "ExistsManyKeyValues", "DeleteManyKeyValues",
            "DeleteKeyValueRange", "StreamKeyValues", "WatchKeyValues", "CountKeyValues"),
        .. Of("kahuna.v1.Transactions", AccessPolicy.SignedIn, "ExecuteTransaction"),
        .. Of("kahuna.v1.Scripts", AccessPolicy.SignedIn, "RunScript"),
        .. Of(
            "kahuna.v1.Sequences", AccessPolicy.SignedIn,
            "CreateSequence", "NextSequenceValue", "ReserveSequenceRange", "GetSequence", "UpdateSequence",
            "DeleteSequence", "ListSequences"),
        .. Of(
            "kahuna.v1.Locks", AccessPolicy.SignedIn,
            "AcquireLock", "ExtendLock", "ReleaseLock", "GetLock", "ListLocks", "ObserveLock"),
        .. Of("kahuna.v1.Cluster", AccessPolicy.SignedIn, "DescribeCluster", "WatchCluster", "Exchange", "Watch"),
        .. Of("kahuna.v1.Admin", AccessPolicy.SignedIn, "WhoAmI"),

        ("/status", AccessPolicy.Admin),
        (SlowPath, AccessPolicy.Admin),
        ("/metrics", AccessPolicy.Metrics),
        (PageStatusPath, AccessPolicy.Admin),
        (PageHistoryPath, AccessPolicy.Admin),
        (PageSlowPath, AccessPolicy.Admin),
        (PageSessionsPath, AccessPolicy.Admin),
        (PageQueuePath, AccessPolicy.Admin),
        .. Of(
            "kahuna.v1.Admin", AccessPolicy.Admin,
            "CreateUser", "GetUser", "ListUsers", "UpdateUser", "DeleteUser",
            "PutRole", "GetRole", "ListRoles", "DeleteRole",
            "CreateToken", "ListTokens", "RevokeToken"),
        .. Of("kahuna.v1.Admin", AccessPolicy.AdminOrNode, "TransferLeadership"),
        .. Of("grpc.reflection.v1.ServerReflection", AccessPolicy.Admin, "ServerReflectionInfo"),
        .. Of("grpc.reflection.v1alpha.ServerReflection", AccessPolicy.Admin, "ServerReflectionInfo"),

        (InitAdminPath, AccessPolicy.Node),
        (NodeStatusPath, AccessPolicy.Node),
        (NodeHistoryPath, AccessPolicy.Node),
        (NodeSlowPath, AccessPolicy.Node),
        (NodeQueuePath, AccessPolicy.Node),
    ];

    private static IEnumerable<(string Name, AccessPolicy Policy)> Of(
        string service, AccessPolicy policy, params string[] methods) =>
        methods.Select(method => ($"/{service}/{method}", policy));
}
