using System.Buffers.Binary;
using System.Globalization;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// The identity of a data directory, stored in <c>node.json</c>. The first start fixes format version, cluster id, node
/// id, number of partitions, voters, and the ids of directory and log. The file also records the state store and
/// whether the directory votes (docs/adr/0009-who-may-vote.md, docs/adr/0017-what-a-directory-is-bound-to.md).
/// Immutable.
/// </summary>
internal sealed record DataDirectoryIdentity(string ClusterId, NodeId NodeId, int Partitions, VoterSet Voters)
{
    public const string FileName = "node.json";

    /// <summary>The directory of the state, for every store.</summary>
    public const string StateDirectoryName = "state";

    /// <summary>Version of the directory's layout.</summary>
    public const int Format = 2;

    /// <summary>Random, not 0; distinguishes this directory from every other one of the node.</summary>
    public required ulong DirectoryId { get; init; }

    /// <summary>
    /// Random, not 0; the id of the directory's log, chosen before the log is created. Kept secret: it seals the
    /// records of the log.
    /// </summary>
    public required ulong LogId { get; init; }

    /// <summary>
    /// Whether the log was created. Recorded before the first vote: from then on, a missing log is a lost log.
    /// </summary>
    public bool LogMade { get; init; }

    /// <summary>The state store; null: not decided yet. Never <see cref="StateStoreChoice.Auto"/>.</summary>
    public StateStoreChoice? StateStore { get; init; }

    public VotingState Voting { get; init; } = VotingState.Yes;

    /// <summary>
    /// A run of this node may have promised not to elect another leader for a while (<c>--reads lease</c>), so that
    /// each later one waits as long before it votes.
    /// </summary>
    public bool HasPromised { get; init; }

    /// <summary>Whether a rebuild has started to drop the content and has not recorded its end.</summary>
    public bool Dropping { get; init; }

    /// <summary>
    /// Reads the identity of a directory, or creates it if the directory is new; checks the options against it, and
    /// completes an interrupted rebuild. <paramref name="warn"/> receives a line for the operator, if there is one.
    /// </summary>
    /// <exception cref="DataDirectoryException">The directory belongs to something else, is in use, or cannot be read
    /// or written; the message is one line.</exception>
    public static DataDirectoryIdentity Open(NodeOptions options, Action<ReportLine>? warn = null)
    {
        using IDisposable held = Hold(options.DataDirectory);
        try
        {
            RemoveRemains(options.DataDirectory);
            DataDirectoryIdentity? recorded = TryRead(options.DataDirectory);
            if (recorded is null)
            {
                RefuseLogOfUnknown(options.DataDirectory);
            }

            recorded?.Check(options);
            DataDirectoryIdentity identity = recorded ?? New(options);
            StateStoreChoice store = StateStoreSelection.Choose(
                options, identity.StateStore, RocksDbLibrary.IsAvailable, out ReportLine? warning);
            if (identity.Dropping)
            {
                DirectoryContent.Drop(options.DataDirectory);
            }

            // Synced even if nothing is new: a killed process may have left what was read in the system's cache only.
            identity = identity with
            {
                StateStore = store,
                Dropping = false,
                HasPromised = identity.HasPromised || options.Reads == ReadConfirmation.Lease,
            };
            identity.Write(options.DataDirectory);
            if (warning is not null)
            {
                warn?.Invoke(warning);
            }

            return identity;
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw Unusable(options.DataDirectory, error);
        }
    }

    /// <summary>Records durably whether the directory votes. The caller must hold the directory.</summary>
    /// <exception cref="IOException">It could not be written; the old record stands.</exception>
    public static void WithVoting(string directory, VotingState voting) =>
        (ReadHeld(directory) with { Voting = voting }).Write(directory);

    /// <summary>Records durably that the directory's log was created. The caller must hold the directory.</summary>
    /// <exception cref="IOException">It could not be written.</exception>
    public static void WithLogMade(string directory) => (ReadHeld(directory) with { LogMade = true }).Write(directory);

    /// <summary>
    /// The identity of a new directory. A standalone node votes at once, because there is no other node to ask.
    /// </summary>
    public static DataDirectoryIdentity New(NodeOptions options) =>
        new(options.ClusterId, options.NodeId, options.Partitions, options.Voters)
        {
            DirectoryId = DrawId(),
            LogId = DrawId(),
            Voting = options.IsStandalone ? VotingState.Yes : VotingState.Unproven,
        };

    /// <summary>Reads the record; null without <c>node.json</c>.</summary>
    /// <exception cref="DataDirectoryException">The file is damaged or of another format.</exception>
    public static DataDirectoryIdentity? TryRead(string directory)
    {
        string path = Path.Combine(directory, FileName);
        return File.Exists(path) ? Parse(path, File.ReadAllBytes(path)) : null;
    }

    /// <summary>Locks the directory against other processes; creates it if missing.</summary>
    /// <exception cref="DataDirectoryException">It is in use, or cannot be a directory.</exception>
    public static IDisposable Hold(string directory)
    {
        try
        {
            return DataDirectory.Lock(LocalDisk.Shared, directory);
        }
        catch (DataDirectoryRefusedException error)
        {
            throw new DataDirectoryException(error.Message, error);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw Unusable(directory, error);
        }
    }

    public static DataDirectoryException Unusable(string directory, Exception error) =>
        new($"Cannot use the data directory {directory}: {OneLine.Of(error.Message)}", error);

    /// <summary>Replaces the record durably and atomically.</summary>
    public void Write(string directory)
    {
        StringBuilder text = new();
        text.Append(CultureInfo.InvariantCulture, $$"""
            {
              "format": {{Format}},
              "clusterId": {{JsonSerializer.Serialize(ClusterId)}},
              "nodeId": {{NodeId}},
              "partitions": {{Partitions}},
              "voters": [{{Voters}}],
              "directoryId": "{{DirectoryId:x16}}",
              "logId": "{{LogId:x16}}",
              "logMade": {{(LogMade ? "true" : "false")}},
              "voting": "{{NameOf(Voting)}}"
            """);
        if (StateStore is StateStoreChoice store)
        {
            text.Append(CultureInfo.InvariantCulture, $",\n  \"stateStore\": \"{StateStoreSelection.NameOf(store)}\"");
        }

        if (HasPromised)
        {
            text.Append(",\n  \"hasPromised\": true");
        }

        if (Dropping)
        {
            text.Append(",\n  \"dropping\": true");
        }

        StableFile.Write(Path.Combine(directory, FileName), Encoding.UTF8.GetBytes(text.Append("\n}\n").ToString()));
    }

    private static DataDirectoryIdentity ReadHeld(string directory) =>
        TryRead(directory)
            ?? throw new DataDirectoryException(
                $"{Path.Combine(directory, FileName)} is gone; somebody removed it while the node was running.");

    /// <summary>
    /// Refuses a log without a record. The record is written first, so that it was lost or the log belongs to something
    /// else.
    /// </summary>
    private static void RefuseLogOfUnknown(string directory)
    {
        if (DirectoryContent.HasLog(directory))
        {
            throw new DataDirectoryException(
                $"The data directory {directory} holds a log but no {FileName}: somebody removed the file, or the log "
                    + $"is not this node's. Put the file back. "
                + "If the majority of the other nodes is intact, you can also start this node with "
                + "--rebuild; they then restore it.");
        }
    }

    private static ulong DrawId()
    {
        Span<byte> bytes = stackalloc byte[sizeof(ulong)];
        ulong id = 0;
        while (id == 0)
        {
            RandomNumberGenerator.Fill(bytes);
            id = BinaryPrimitives.ReadUInt64LittleEndian(bytes);
        }

        return id;
    }

    /// <summary>Removes half-written files of a process that was killed while it replaced one.</summary>
    private static void RemoveRemains(string directory)
    {
        foreach (string remains in Directory.EnumerateFiles(directory, "*.json.*.tmp"))
        {
            File.Delete(remains);
        }
    }

    private static DataDirectoryIdentity Parse(string path, byte[] content)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(content);
            JsonElement root = document.RootElement;
            int format = JsonFields.Need(root, "format", static field => field.GetInt32());
            if (format != Format)
            {
                throw new DataDirectoryException(
                    $"{path} has format {format}; this version understands format {Format} only.");
            }

            return new DataDirectoryIdentity(
                JsonFields.Need(root, "clusterId", JsonFields.Text),
                new NodeId(JsonFields.Need(root, "nodeId", static field => field.GetUInt16())),
                JsonFields.Need(root, "partitions", static field => field.GetInt32()),
                JsonFields.Need(root, "voters", static field =>
                    new VoterSet(field.EnumerateArray().Select(static id => new NodeId(id.GetUInt16())))))
            {
                DirectoryId = JsonFields.Need(root, "directoryId", JsonFields.Id),
                LogId = JsonFields.Need(root, "logId", JsonFields.Id),
                LogMade = JsonFields.Need(root, "logMade", static field => field.GetBoolean()),
                Voting = JsonFields.Need(root, "voting", ReadName<VotingState>),
                StateStore = root.TryGetProperty("stateStore", out _)
                    ? JsonFields.Need(root, "stateStore", ReadName<StateStoreChoice>)
                    : null,
                HasPromised = root.TryGetProperty("hasPromised", out _)
                    && JsonFields.Need(root, "hasPromised", static field => field.GetBoolean()),
                Dropping = root.TryGetProperty("dropping", out _)
                    && JsonFields.Need(root, "dropping", static field => field.GetBoolean()),
            };
        }
        catch (JsonException error)
        {
            throw new DataDirectoryException(
                $"{path} is damaged: {OneLine.Of(error.Message)} It says what this data directory is. "
                + StorageException.WayOut,
                error);
        }
    }

    private static string NameOf<T>(T value)
        where T : struct, Enum => value.ToString().ToLowerInvariant();

    private static T ReadName<T>(JsonElement element)
        where T : struct, Enum
    {
        string? text = element.GetString();
        foreach (T candidate in Enum.GetValues<T>())
        {
            // A recorded store is never Auto.
            if (NameOf(candidate) == text && !candidate.Equals(StateStoreChoice.Auto))
            {
                return candidate;
            }
        }

        throw new JsonException($"'{text}' is no {typeof(T).Name}.");
    }

    private void Check(NodeOptions options)
    {
        CheckOwner(options);
        if (options.PartitionsGiven && Partitions != options.Partitions)
        {
            throw Mismatch(options, $"{Partitions} partitions", $"{options.Partitions} partitions");
        }
    }

    /// <summary>Checks that the directory was created for this node of this cluster, with these nodes.</summary>
    /// <exception cref="DataDirectoryException">It was not.</exception>
    public void CheckOwner(NodeOptions options)
    {
        if (ClusterId != options.ClusterId)
        {
            throw Mismatch(options, $"cluster '{ClusterId}'", $"cluster '{options.ClusterId}'");
        }

        if (NodeId != options.NodeId)
        {
            throw Mismatch(options, $"node {NodeId}", $"node {options.NodeId}");
        }

        if (!Voters.Equals(options.Voters))
        {
            throw new DataDirectoryException(
                $"The data directory {options.DataDirectory} was created for a cluster of the nodes {Voters}, but "
                    + $"this node is started with {OptionSetting.Peers.Flag} for the nodes {options.Voters}; correct "
                    + $"{OptionSetting.Peers.Flag}. "
                + "A node's address may change; nodes cannot be added or removed.");
        }
    }

    private static DataDirectoryException Mismatch(NodeOptions options, string recorded, string asked) =>
        new(
            $"The data directory {options.DataDirectory} was created for {recorded}, but this node is started with "
                + $"{asked}; correct the option or use another directory.");
}
