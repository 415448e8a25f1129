using System.Text;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting;

/// <summary>A data directory keeps what it was created for.</summary>
public sealed class DataDirectoryIdentityTests : IDisposable
{
    /// <summary>All that a record must have, but for whether it votes.</summary>
    private const string Whole = """{ "format": 2, "clusterId": "kahuna", "nodeId": 1, "partitions": 3, "voters": [1], "directoryId": "11", "logId": "12", "logMade": true""";

    private readonly TemporaryDirectory _directory = new();

    private NodeOptions Options => new()
    {
        DataDirectory = Path.Combine(_directory.Path, "new", "data"),
        Partitions = 3,
        PartitionsGiven = true,
        StateStore = StateStoreChoice.Files,
    };

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void The_first_start_records_and_later_ones_read()
    {
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(Options);
        DataDirectoryIdentity second = DataDirectoryIdentity.Open(
            Options with { Partitions = 1, PartitionsGiven = false });

        Assert.Equal(
            new DataDirectoryIdentity("kahuna", new NodeId(1), 3, new VoterSet([new NodeId(1)]))
            {
                DirectoryId = first.DirectoryId,
                LogId = first.LogId,
                StateStore = StateStoreChoice.Files,
                Voting = VotingState.Yes,
            },
            first);
        Assert.NotEqual(0ul, first.DirectoryId);
        Assert.NotEqual(0ul, first.LogId);
        Assert.NotEqual(first.DirectoryId, first.LogId);
        Assert.Equal(first, second);
        Assert.Equal(
            ["LOCK", DataDirectoryIdentity.FileName],
            Directory.EnumerateFiles(Options.DataDirectory).Select(Path.GetFileName).Order());
        Assert.Equal(
            $"{{\n  \"format\": 2,\n  \"clusterId\": \"kahuna\",\n  \"nodeId\": 1,\n  \"partitions\": 3,\n  "
                + $"\"voters\": [1],\n  \"directoryId\": \"{first.DirectoryId:x16}\",\n"
            + $"  \"logId\": \"{first.LogId:x16}\",\n  \"logMade\": false,\n"
            + "  \"voting\": \"yes\",\n  \"stateStore\": \"files\"\n}\n",
            File.ReadAllText(Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName)));
    }

    [Fact]
    public void A_directory_remembers_for_ever_that_its_node_may_have_promised()
    {
        Assert.False(DataDirectoryIdentity.Open(Options).HasPromised);
        NodeOptions leases = Options with { Reads = ReadConfirmation.Lease };
        Assert.True(DataDirectoryIdentity.Open(leases).HasPromised);
        Assert.True(DataDirectoryIdentity.Open(Options).HasPromised);
        Assert.EndsWith(
            "\n  \"hasPromised\": true\n}\n",
            File.ReadAllText(Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName)),
            StringComparison.Ordinal);
        Assert.True(MemberRegistry.Open(Options, DataDirectoryIdentity.Open(Options)).HasPromised);
        DataDirectoryIdentity rebuilt = DataDirectoryIdentity.New(Options) with { Voting = VotingState.Rejoining };
        Assert.True(MemberRegistry.Open(Options, rebuilt).HasPromised);
        Assert.False(MemberRegistry.Open(Options, DataDirectoryIdentity.New(Options)).HasPromised);
    }

    [Fact]
    [System.Runtime.Versioning.UnsupportedOSPlatform("windows")]
    public void Every_directory_that_is_made_is_made_by_the_disk_that_syncs_its_name()
    {
        // The class library syncs nothing, and lets others read what it makes. The name of /proc/self is found, and
        // cannot be synced.
        DataDirectoryIdentity.Open(Options);
        Assert.Equal(
            UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute,
            File.GetUnixFileMode(Path.Combine(_directory.Path, "new")));
        Assert.Contains(
            "syncing directory /proc failed",
            Assert.Throws<DataDirectoryException>(() => DataDirectoryIdentity.Hold("/proc/self")).Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public void Other_values_are_refused_with_a_sentence()
    {
        DataDirectoryIdentity.Open(Options);

        Refused(
            Options with { ClusterId = "green" },
            "was created for cluster 'kahuna', but this node is started with cluster 'green'");
        Refused(
            Options with { NodeId = new NodeId(2) }, "was created for node 1, but this node is started with node 2");
        Refused(
            Options with { Partitions = 4 },
            "was created for 3 partitions, but this node is started with 4 partitions");
    }

    [Fact]
    public void Other_voters_are_refused_and_other_addresses_are_not()
    {
        NodeOptions three = Options with { Peers = Nodes("a", 1, 2, 3) };
        DataDirectoryIdentity.Open(three);

        Refused(
            Options,
            "was created for a cluster of the nodes 1, 2, 3, but this node is started with --peers for the nodes 1; "
                + "correct --peers. A node's address may change; nodes cannot be added or removed.");
        Refused(three with { Peers = Nodes("a", 1, 2, 4) }, "this node is started with --peers for the nodes 1, 2, 4");
        Refused(
            three with { Peers = Nodes("a", 1, 2, 3, 4, 5) },
            "this node is started with --peers for the nodes 1, 2, 3, 4, 5");
        DataDirectoryIdentity.Open(three with { Peers = Nodes("elsewhere", 3, 2, 1) });
    }

    [Fact]
    public void What_is_found_is_made_sure_again()
    {
        DataDirectoryIdentity.Open(Options);
        string path = Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName);
        DateTime before = new(2020, 1, 1, 0, 0, 0, DateTimeKind.Utc);
        File.SetLastWriteTimeUtc(path, before);
        DataDirectoryIdentity.Open(Options);

        Assert.NotEqual(before, File.GetLastWriteTimeUtc(path));
    }

    [Fact]
    public void A_log_without_a_record_of_its_directory_is_refused()
    {
        Directory.CreateDirectory(Path.Combine(Options.DataDirectory, "log"));
        File.WriteAllText(Path.Combine(Options.DataDirectory, "log", "00000000000000000002.seg"), "");

        Refused(Options, "holds a log but no node.json");
        Assert.False(File.Exists(Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName)));
    }

    [Theory]
    [InlineData("""{ "format": 1, "clusterId": "kahuna", "nodeId": 1, "partitions": 3 }""", "has format 1; this version understands format 2 only.")]
    [InlineData("""{ "format": 2 }""", "is damaged: 'clusterId' is missing. It says what this data directory is. If the majority of the other nodes is intact, start this node with --rebuild")]
    [InlineData("", "is damaged: ")]
    [InlineData("[]", "is damaged: 'format' is missing.")]
    [InlineData("""{ "format": 2, "clusterId": "kahuna", "nodeId": 100000 }""", "is damaged: 'nodeId' is of another type or out of range.")]
    [InlineData(Whole + """, "voting": "perhaps" }""", "is damaged: 'perhaps' is no VotingState.")]
    [InlineData(Whole + """, "voting": "yes", "stateStore": "auto" }""", "is damaged: 'auto' is no StateStoreChoice.")]
    [InlineData(Whole + """, "voting": "yes", "logId": "12345678123456781" }""", "is damaged: 'logId' is of another type or out of range.")]
    [InlineData(Whole + """, "voting": "yes", "directoryId": "0" }""", "is damaged: 'directoryId' is of another type or out of range.")]
    [InlineData(Whole + """, "voting": "yes", "voters": 3 }""", "is damaged: 'voters' is of another type or out of range.")]
    public void Other_formats_and_damage_are_refused(string content, string expected)
    {
        Directory.CreateDirectory(Options.DataDirectory);
        File.WriteAllText(Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName), content);

        Refused(Options, expected);
    }

    [Fact]
    public void Remains_of_a_write_that_was_cut_off_are_removed()
    {
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(Options);
        string remains = Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName) + ".1-2.tmp";
        File.WriteAllText(remains, "cut off");

        Assert.Equal(first, DataDirectoryIdentity.Open(Options));
        Assert.False(File.Exists(remains));
    }

    [Fact]
    public void Another_state_store_is_refused_and_auto_takes_what_is_recorded()
    {
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(Options);

        Refused(
            Options with { StateStore = StateStoreChoice.RocksDb },
            "keeps its state in 'files', but this node is started with --state-store rocksdb; leave the option out");
        Assert.Equal(
            first,
            DataDirectoryIdentity.Open(
                Options with { StateStore = StateStoreChoice.Auto }, line => Assert.Fail(line.ToString())));
    }

    [Fact]
    public void A_directory_in_use_is_refused()
    {
        using IDisposable held = DataDirectoryIdentity.Hold(Options.DataDirectory);
        Refused(Options, "is in use");
    }

    [Fact]
    public void A_place_that_cannot_be_a_directory_is_refused() =>
        Refused(
            Options with { DataDirectory = Path.Combine(_directory.File("file", "x"), "data") },
            "Cannot use the data directory");

    [Theory]
    [InlineData("0123456789abcdef\n", 16)]
    [InlineData("0123456789abcdef0123 \r\n\n", 20)]
    public void A_secret_ends_before_the_last_newline(string content, int bytes) =>
        Assert.Equal(bytes, Assert.Single(ClusterSecret.Read(_directory.File("secret", content))).Length);

    [Fact]
    public void A_file_may_have_two_secrets()
    {
        byte[][] secrets = ClusterSecret.Read(_directory.File("two", "0123456789abcdef\r\n\n fedcba9876543210 \n"));
        Assert.Equal(["0123456789abcdef", "fedcba9876543210"], secrets.Select(Encoding.ASCII.GetString));
    }

    [Fact]
    public void Bad_secrets_are_refused()
    {
        Assert.Contains(
            "has 3 lines; it may have 2",
            Assert.Throws<InvalidDataException>(
                () => ClusterSecret.Read(_directory.File("three", string.Join('\n', "abc".Select(OfSixteen))))).Message,
            StringComparison.Ordinal);
        Assert.Contains(
            "has 3 bytes; it needs at least 16",
            Assert.Throws<InvalidDataException>(
                () => ClusterSecret.Read(_directory.File("second", "0123456789abcdef\nabc\n"))).Message,
            StringComparison.Ordinal);
        Assert.Contains(
            "needs at least 16",
            Assert.Throws<InvalidDataException>(
                () => ClusterSecret.Read(_directory.File("short", "0123456789abcde\n"))).Message,
            StringComparison.Ordinal);
        Assert.Contains(
            "is longer than 4096",
            Assert.Throws<InvalidDataException>(
                () => ClusterSecret.Read(_directory.File("long", new string('x', 5000)))).Message,
            StringComparison.Ordinal);
        Assert.Contains(
            "Cannot read",
            Assert.Throws<InvalidDataException>(
                () => ClusterSecret.Read(Path.Combine(_directory.Path, "none"))).Message,
            StringComparison.Ordinal);
    }

    private static string OfSixteen(char letter) => new(letter, 16);

    private static PeerNode[] Nodes(string host, params ushort[] ids) => [.. ids.Select(id => new PeerNode(new NodeId(id), new Uri($"https://{host}{id}:8082")))];

    private static void Refused(NodeOptions options, string expected)
    {
        string message = Assert.Throws<DataDirectoryException>(() => DataDirectoryIdentity.Open(options)).Message;
        Assert.Contains(expected, message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', message);
    }
}
