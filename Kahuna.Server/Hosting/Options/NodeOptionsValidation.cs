using System.Globalization;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Parses the texts of the options into <see cref="NodeOptions"/> and collects every error, one line each. Used once by
/// one thread.
/// </summary>
/// <param name="values">The given options.</param>
/// <param name="errors">Receives the errors.</param>
/// <param name="isComplete">Whether everything given could be read. If not, missing options are not reported, because
/// they may be among the rest.</param>
internal sealed class NodeOptionsValidation(
    IReadOnlyDictionary<OptionSetting, GivenValue> values, List<string> errors, bool isComplete = true)
{
    /// <summary>The smallest log that holds a few segments.</summary>
    private const long LogLimitBytesMin = 1_000_000;

    /// <summary>Less would be overwritten while a node restarts.</summary>
    private const long LogKeepBytesMin = 16_000_000;

    /// <summary>Each group has at least two segments of its change log in any case.</summary>
    private const long WatchHistoryBytesMin = 1_000_000;

    /// <summary>Less than the nearly empty tables of some partitions is a mistake.</summary>
    private const long EphemeralBytesMin = 16_000_000;

    /// <summary>Tables of a few partitions, and some data.</summary>
    private const long PersistentBytesMin = 64_000_000;

    /// <summary>Less could not keep up with any use of the cluster.</summary>
    private const long BackgroundRateMin = 1_000_000;

    private const int ClusterIdCharactersMax = 64;

    /// <summary>Less than the wait of a member without data would give data up before its owner is known.</summary>
    private static readonly TimeSpan s_ephemeralPatienceMin = TimeSpan.FromSeconds(10);

    /// <summary>A longer time means no limit, and has a word for that.</summary>
    private static readonly TimeSpan s_ephemeralPatienceMax = TimeSpan.FromDays(365);

    /// <summary>The parsed options; valid only without errors.</summary>
    public NodeOptions Read()
    {
        string clusterId = ReadClusterId();
        NodeId nodeId = new((ushort)ReadNumber(OptionSetting.NodeId, 1, ushort.MaxValue, 1));
        AddressOptions addresses = new(values, errors, isComplete);
        IReadOnlyList<PeerNode> peers = addresses.ReadPeers(nodeId);
        IReadOnlyList<Uri> listen = addresses.ReadListen(addresses.ReadAnnounced(nodeId, peers));
        Uri advertise = addresses.ReadAdvertise(nodeId, listen, peers);
        addresses.CheckReachable(listen, advertise);
        if (peers.Count == 0)
        {
            peers = [new PeerNode(nodeId, advertise)];
        }

        CheckTogether(peers);
        long logLimit = ReadSize(
            OptionSetting.LogLimit, LogLimitBytesMin, long.MaxValue, NodeOptions.LogLimitBytesDefault);
        return new NodeOptions
        {
            NodeId = nodeId,
            ClusterId = clusterId,
            Listen = listen,
            Advertise = advertise,
            Peers = peers,
            DataDirectory = ReadDataDirectory(clusterId, nodeId),
            Partitions = ReadNumber(
                OptionSetting.Partitions,
                1,
                NodeOptions.PartitionsMax,
                NodeOptions.PartitionsFor(Environment.ProcessorCount)),
            PartitionsGiven = values.ContainsKey(OptionSetting.Partitions),
            LeaderPlacement = ReadName(OptionSetting.Leaders, LeaderPlacement.Together),
            StateStore = ReadName(OptionSetting.StateStore, StateStoreChoice.Auto),
            LogLimitBytes = logLimit,
            LogKeepBytes = ReadLogKeep(logLimit),
            LogWrites = ReadName(OptionSetting.LogWrites, LogWrites.Direct),
            Reads = ReadName(OptionSetting.Reads, ReadConfirmation.Round),
            PersistentBytesMax = ReadPersistentLimit(),
            EphemeralBytesMax = ReadSize(
                OptionSetting.EphemeralLimit, EphemeralBytesMin, long.MaxValue, NodeOptions.EphemeralBytesDefault),
            EphemeralPolicy = ReadName(OptionSetting.EphemeralPolicy, EphemeralPolicy.Refuse),
            EphemeralPatience = ReadEphemeralPatience(),
            WatchHistoryBytes = ReadWatchHistory(),
            BackgroundBytesPerSecond = ReadBackgroundRate(),
            FeatureLevelMax = ReadFeatureLevelMax(),
            ValueBytesMax = ReadMaxValueBytes(),
            CertificatePath = ReadFile(OptionSetting.Certificate),
            CertificateKeyPath = ReadFile(OptionSetting.CertificateKey),
            TrustedCaPath = ReadFile(OptionSetting.TrustedCa),
            ClusterSecretFile = ReadFile(OptionSetting.ClusterSecretFile),
            PeerTls = ReadName(OptionSetting.PeerTls, PeerTlsMode.Secret),
            ConnectionsPerAddress = ReadConnections(),
            DirectLinks = ReadNumber(OptionSetting.DirectLinks, 0, 1_000, NodeOptions.DirectLinksDefault),
            Access = new AccessOptionsReader(values, errors, isComplete).Read(listen, advertise),
            LogLevel = ReadName(OptionSetting.LogLevel, LogLevel.Information),
            LogFormat = ReadName(OptionSetting.LogFormat, LogFormat.Text),
            TracePath = ReadTrace(),
            Metrics = new MetricsOptionsReader(values, errors).Read(),
            Rebuild = values.ContainsKey(OptionSetting.Rebuild),
            RebuildConfirmed = values.ContainsKey(OptionSetting.Yes),
            ConfigPath = ReadConfigPath(),
        };
    }

    private int ReadMaxValueBytes() => (int)ReadSize(
        OptionSetting.MaxValueBytes, 1, Limits.ValueBytesCeiling, Limits.ValueBytesDefault);

    private int ReadConnections() => ReadNumber(
        OptionSetting.ConnectionsPerAddress, 0, 10_000_000, NodeOptions.ConnectionsPerAddressDefault);

    private string? ReadConfigPath() =>
        values.TryGetValue(OptionSetting.Config, out GivenValue config) ? Path.GetFullPath(config.Text) : null;

    private TimeSpan ReadEphemeralPatience() => ReadTime(
        OptionSetting.EphemeralPatience,
        s_ephemeralPatienceMin,
        s_ephemeralPatienceMax,
        NodeOptions.EphemeralPatienceDefault);

    private long ReadWatchHistory() => ReadSize(
        OptionSetting.WatchHistory, WatchHistoryBytesMin, long.MaxValue, NodeOptions.WatchHistoryBytesDefault);

    private FeatureLevel? ReadFeatureLevelMax()
    {
        int level = ReadNumber(OptionSetting.FeatureLevelMax, 1, ushort.MaxValue, 0);
        return level == 0 ? null : new FeatureLevel(level);
    }

    private long ReadBackgroundRate() => ReadSize(
        OptionSetting.BackgroundRate,
        BackgroundRateMin,
        long.MaxValue,
        NodeOptions.BackgroundBytesPerSecondDefault);

    /// <summary>The per-user default directory; null if the user has none.</summary>
    public static string? DefaultDataDirectory(string clusterId, NodeId nodeId)
    {
        // XDG_DATA_HOME or ~/.local/share on Linux; empty for a user without a home.
        string user = Environment.GetFolderPath(
            Environment.SpecialFolder.LocalApplicationData, Environment.SpecialFolderOption.DoNotVerify);
        return Path.IsPathRooted(user) ? Path.Combine(user, "kahuna", "data", $"{clusterId}-{nodeId}") : null;
    }

    private void CheckTogether(IReadOnlyList<PeerNode> peers)
    {
        if (!isComplete)
        {
            return;
        }

        Require(OptionSetting.Certificate, OptionSetting.CertificateKey);
        Require(OptionSetting.CertificateKey, OptionSetting.Certificate);
        if (peers.Count > 1 && !values.ContainsKey(OptionSetting.ClusterSecretFile))
        {
            errors.Add(
                $"{Origin(OptionSetting.Peers)} with other nodes needs {OptionSetting.ClusterSecretFile.Flag}: a file "
                    + $"with a secret that all nodes share.");
        }

        if (!values.ContainsKey(OptionSetting.Peers)
            && values.TryGetValue(OptionSetting.ClusterSecretFile, out GivenValue secret))
        {
            errors.Add($"{secret.Origin} needs {OptionSetting.Peers.Flag}; a standalone node has no peers.");
        }

        PeerTlsCheck.Check(values, peers, errors);
        if (values.ContainsKey(OptionSetting.Rebuild) && peers.Count == 1)
        {
            errors.Add(
                $"{OptionSetting.Rebuild.Flag}: a standalone node has no other node to restore its data from. To "
                    + $"start empty, name another directory with {OptionSetting.Data.Flag}.");
        }

        if (values.ContainsKey(OptionSetting.Yes) && !values.ContainsKey(OptionSetting.Rebuild))
        {
            errors.Add($"{OptionSetting.Yes.Flag} confirms {OptionSetting.Rebuild.Flag} and needs it.");
        }
    }

    private void Require(OptionSetting given, OptionSetting needed)
    {
        if (values.ContainsKey(given) && !values.ContainsKey(needed))
        {
            errors.Add($"{Origin(given)} needs {needed.Flag} as well.");
        }
    }

    private string ReadClusterId()
    {
        if (!values.TryGetValue(OptionSetting.ClusterId, out GivenValue value))
        {
            return NodeOptions.ClusterIdDefault;
        }

        if (value.Text.Length > ClusterIdCharactersMax
            || value.Text[0] is '.' or '-'
            || !value.Text.All(character => char.IsAsciiLetterOrDigit(character) || character is '-' or '_' or '.'))
        {
            errors.Add(
                $"{value.Origin}: '{OneLine.Of(value.Text)}' is not a cluster id; use 1 to {ClusterIdCharactersMax} "
                    + $"of a-z, A-Z, 0-9, '-', '_' and '.', and begin with a letter, a digit or '_'.");
        }

        return value.Text;
    }

    private string ReadDataDirectory(string clusterId, NodeId nodeId)
    {
        if (values.TryGetValue(OptionSetting.Data, out GivenValue value))
        {
            string path = Path.GetFullPath(value.Text);
            if (File.Exists(path))
            {
                errors.Add($"{value.Origin}: {path} is a file, not a directory.");
            }

            return path;
        }

        string? directory = errors.Count == 0 ? DefaultDataDirectory(clusterId, nodeId) : string.Empty;
        if (directory is null)
        {
            errors.Add($"This user has no directory for application data; name one with {OptionSetting.Data.Flag}.");
        }

        return directory ?? string.Empty;
    }

    private string? ReadFile(OptionSetting setting)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return null;
        }

        string path = Path.GetFullPath(value.Text);
        if (!File.Exists(path))
        {
            errors.Add($"{value.Origin}: there is no file {path}.");
        }

        return path;
    }

    private string? ReadTrace()
    {
        if (!values.TryGetValue(OptionSetting.Trace, out GivenValue value))
        {
            return null;
        }

        string path = Path.GetFullPath(value.Text);
        if (Directory.Exists(path))
        {
            errors.Add($"{value.Origin}: {path} is a directory, not a file.");
        }
        else if (Path.GetDirectoryName(path) is { } directory && !Directory.Exists(directory))
        {
            errors.Add($"{value.Origin}: there is no directory {directory}.");
        }

        return path;
    }

    private int ReadNumber(OptionSetting setting, int min, int max, int otherwise)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return otherwise;
        }

        if (int.TryParse(value.Text, NumberStyles.None, CultureInfo.InvariantCulture, out int number)
            && number >= min
            && number <= max)
        {
            return number;
        }

        errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not a whole number from {min} to {max}.");
        return otherwise;
    }

    private long ReadSize(OptionSetting setting, long min, long max, long otherwise)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return otherwise;
        }

        if (!ByteSize.TryParse(value.Text, out long bytes))
        {
            errors.Add(
                $"{value.Origin}: '{OneLine.Of(value.Text)}' is not a size; write it as 4096, 500KB, 64MiB or 16GB.");
        }
        else if (bytes < min || bytes > max)
        {
            string limits = max == long.MaxValue ? $"at least {min}" : $"from {min} to {max}";
            errors.Add(string.Create(
                CultureInfo.InvariantCulture, $"{value.Origin}: {bytes} bytes; it must be {limits} bytes."));
        }
        else
        {
            return bytes;
        }

        return otherwise;
    }

    private long ReadPersistentLimit()
    {
        long machineBytes = GC.GetGCMemoryInfo().TotalAvailableMemoryBytes;
        long limit = ReadSize(
            OptionSetting.PersistentLimit,
            PersistentBytesMin,
            long.MaxValue,
            NodeOptions.PersistentBytesDefault(machineBytes));
        if (values.TryGetValue(OptionSetting.PersistentLimit, out GivenValue given) && limit > machineBytes)
        {
            errors.Add(string.Create(
                CultureInfo.InvariantCulture,
                $"{given.Origin}: {limit} bytes; the machine, or the container, has {machineBytes} bytes of memory."));
        }

        return limit;
    }

    private TimeSpan ReadTime(OptionSetting setting, TimeSpan min, TimeSpan max, TimeSpan otherwise)
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return otherwise;
        }

        if (!Duration.TryParse(value.Text, out TimeSpan time))
        {
            errors.Add(
                $"{value.Origin}: '{OneLine.Of(value.Text)}' is not a time; write it as 90s, 10min, "
                    + $"1h, 7d or {Duration.Forever}.");
        }
        else if (time < min || (time > max && time != TimeSpan.MaxValue))
        {
            errors.Add(string.Create(
                CultureInfo.InvariantCulture,
                $"{value.Origin}: {time.TotalSeconds} s; it must be from {min.TotalSeconds} s to "
                    + $"{max.TotalDays} d, or {Duration.Forever}."));
        }
        else
        {
            return time;
        }

        return otherwise;
    }

    private long ReadLogKeep(long logLimit)
    {
        long keep = ReadSize(OptionSetting.LogKeep, LogKeepBytesMin, long.MaxValue, NodeOptions.LogKeepBytesDefault);
        if (values.TryGetValue(OptionSetting.LogKeep, out GivenValue given) && keep >= logLimit)
        {
            errors.Add(string.Create(
                CultureInfo.InvariantCulture,
                $"{given.Origin}: {keep} bytes; it must be less than "
                    + $"{OptionSetting.LogLimit.Flag}, which is {logLimit} bytes."));
        }

        return keep;
    }

    private T ReadName<T>(OptionSetting setting, T otherwise)
        where T : struct, Enum
    {
        if (!values.TryGetValue(setting, out GivenValue value))
        {
            return otherwise;
        }

        foreach (T candidate in Enum.GetValues<T>())
        {
            if (string.Equals(candidate.ToString(), value.Text, StringComparison.OrdinalIgnoreCase))
            {
                return candidate;
            }
        }

        string names = string.Join(", ", Enum.GetNames<T>().Select(name => name.ToLowerInvariant()));
        errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not one of {names}.");
        return otherwise;
    }

    private string Origin(OptionSetting setting) =>
        values.TryGetValue(setting, out GivenValue value) ? value.Origin : setting.Flag;
}
