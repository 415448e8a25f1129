using System.Text.Json;

namespace Kahuna.Cli.Diagnosis;

/// <summary>What one node said about itself, or why it said nothing. Immutable.</summary>
/// <param name="Endpoint">The node.</param>
internal sealed record NodeReport(Uri Endpoint)
{
    /// <summary>Its answer to <c>/status</c>; null: it gave none.</summary>
    public NodeStatus? Status { get; init; }

    /// <summary>Why there is no status, as a sentence; null: there is one.</summary>
    public string? Problem { get; init; }

    /// <summary>The node answered, but its status is for administrators.</summary>
    public bool IsRefused { get; init; }

    /// <summary>
    /// How far the node's clock is ahead of this machine's at least; negative: behind. Zero where the second of its
    /// answer and the way there leave it open; null: it did not say.
    /// </summary>
    public TimeSpan? ClockAhead { get; init; }
}

/// <summary>A node's <c>/status</c>. Fields that an older node does not have are null. Immutable.</summary>
/// <param name="root">The document.</param>
internal sealed class NodeStatus(JsonElement root)
{
    public long NodeId => Number(root, "nodeId") ?? 0;

    public string ClusterId => Text(root, "clusterId") ?? "";

    public string Version => Text(root, "version") ?? "";

    public long? FeatureLevel => Number(root, "featureLevel");

    public bool IsReady => Is(root, "ready", JsonValueKind.True);

    public string Reason => Text(root, "reason") ?? "";

    /// <summary>The groups of persistent keys, then those of ephemeral ones.</summary>
    public IReadOnlyList<GroupStatus> Groups { get; } =
    [
        .. GroupsIn(root, "partitions", isEphemeral: false),
        .. GroupsIn(root, "ephemeralPartitions", isEphemeral: true),
    ];

    public long? PersistentBytes => Number(root, "persistentBytes");

    public long? EphemeralBytes => Number(root, "ephemeralBytes");

    public long? LogBytes => Inner("storage", "logBytes");

    public long? PersistentLimit => Inner("limits", "persistentBytes");

    public long? EphemeralLimit => Inner("limits", "ephemeralBytes");

    public long? LogLimit => Inner("limits", "logBytes");

    public long? WorkingSetBytes => Inner("gc", "workingSetBytes");

    /// <summary>Until the first of the node's certificates expires; negative: it has.</summary>
    public TimeSpan? CertificateLeft => Inner("certificate", "secondsLeft") is { } seconds
        ? TimeSpan.FromSeconds(Math.Clamp(seconds, int.MinValue, int.MaxValue))
        : null;

    /// <summary>The sum of a figure over the groups of persistent keys.</summary>
    public long Sum(Func<GroupStatus, long> figure) => Groups.Where(static group => !group.IsEphemeral).Sum(figure);

    internal static long? Number(JsonElement of, string name) =>
        of.ValueKind == JsonValueKind.Object && of.TryGetProperty(name, out JsonElement value)
            && value.ValueKind == JsonValueKind.Number && value.TryGetInt64(out long number)
            ? number
            : null;

    internal static string? Text(JsonElement of, string name) =>
        of.ValueKind == JsonValueKind.Object && of.TryGetProperty(name, out JsonElement value)
            && value.ValueKind == JsonValueKind.String
            ? value.GetString()
            : null;

    internal static long? Inner(JsonElement of, string outer, string name) =>
        of.ValueKind == JsonValueKind.Object && of.TryGetProperty(outer, out JsonElement inner)
            ? Number(inner, name)
            : null;

    internal static bool Is(JsonElement of, string name, JsonValueKind kind) =>
        of.ValueKind == JsonValueKind.Object && of.TryGetProperty(name, out JsonElement value)
            && value.ValueKind == kind;

    private static IEnumerable<GroupStatus> GroupsIn(JsonElement root, string name, bool isEphemeral) =>
        root.ValueKind == JsonValueKind.Object && root.TryGetProperty(name, out JsonElement groups)
            && groups.ValueKind == JsonValueKind.Array
            ? groups.EnumerateArray().Select(group => new GroupStatus(group, isEphemeral))
            : [];

    private long? Inner(string outer, string name) => Inner(root, outer, name);
}

/// <summary>A group on one node, as its <c>/status</c> has it. Immutable.</summary>
/// <param name="root">The object.</param>
/// <param name="isEphemeral">It has ephemeral keys.</param>
internal sealed class GroupStatus(JsonElement root, bool isEphemeral)
{
    public bool IsEphemeral => isEphemeral;

    public long Partition => NodeStatus.Number(root, "partition") ?? -1;

    public string Name => isEphemeral ? $"ephemeral partition {Partition}" : $"partition {Partition}";

    public string Role => NodeStatus.Text(root, "role") ?? "";

    public long Term => NodeStatus.Number(root, "term") ?? 0;

    /// <summary>The id of the leading node; 0: none is known.</summary>
    public long Leader => NodeStatus.Number(root, "leader") ?? 0;

    public long CommitIndex => NodeStatus.Number(root, "commitIndex") ?? 0;

    public long AppliedIndex => NodeStatus.Number(root, "appliedIndex") ?? 0;

    /// <summary>Holders of locks.</summary>
    public long LocksHeld => NodeStatus.Inner(root, "locks", "held") ?? 0;

    public long Keys => NodeStatus.Number(root, "keys") ?? 0;

    public string Digest => NodeStatus.Text(root, "digest") ?? "";

    public string? Stopped => NodeStatus.Text(root, "stopped");

    public bool IsStalled => NodeStatus.Is(root, "logStalled", JsonValueKind.True);

    public bool MayNotVote => NodeStatus.Is(root, "mayVote", JsonValueKind.False);
}
