using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting;

/// <summary>A data directory keeps what it was created for.</summary>
public sealed class DataDirectoryIdentityTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    private NodeOptions Options => new() { DataDirectory = Path.Combine(_directory.Path, "new", "data"), Partitions = 3, PartitionsGiven = true, StateStore = StateStoreChoice.Files };

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void The_first_start_records_and_later_ones_read()
    {
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(Options);
        DataDirectoryIdentity second = DataDirectoryIdentity.Open(Options with { Partitions = 1, PartitionsGiven = false });

        Assert.Equal(
            new DataDirectoryIdentity("kahuna", new NodeId(1), 3) { DirectoryId = first.DirectoryId, StateStore = StateStoreChoice.Files, Voting = VotingState.Yes },
            first);
        Assert.NotEqual(0ul, first.DirectoryId);
        Assert.Equal(first, second);
        Assert.Equal(["LOCK", DataDirectoryIdentity.FileName], Directory.EnumerateFiles(Options.DataDirectory).Select(Path.GetFileName).Order());
        Assert.Equal(
            $"{{\n  \"format\": 1,\n  \"clusterId\": \"kahuna\",\n  \"nodeId\": 1,\n  \"partitions\": 3,\n  \"directoryId\": \"{first.DirectoryId:x16}\",\n"
            + "  \"voting\": \"yes\",\n  \"stateStore\": \"files\"\n}\n",
            File.ReadAllText(Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName)));
    }

    [Fact]
    public void Other_values_are_refused_with_a_sentence()
    {
        DataDirectoryIdentity.Open(Options);

        Refused(Options with { ClusterId = "green" }, "was created for cluster 'kahuna', but this node is started with cluster 'green'");
        Refused(Options with { NodeId = new NodeId(2) }, "was created for node 1, but this node is started with node 2");
        Refused(Options with { Partitions = 4 }, "was created for 3 partitions, but this node is started with 4 partitions");
    }

    [Theory]
    [InlineData("""{ "format": 2, "clusterId": "kahuna", "nodeId": 1, "partitions": 3 }""", "has format 2; this version understands format 1 only.")]
    [InlineData("""{ "format": 1 }""", "is damaged: ")]
    [InlineData("", "is damaged: ")]
    [InlineData("""{ "format": 1, "clusterId": "kahuna", "nodeId": 100000, "partitions": 3 }""", "is damaged: ")]
    [InlineData("""{ "format": 1, "clusterId": "kahuna", "nodeId": 1, "partitions": 3, "voting": "perhaps" }""", "is damaged: 'perhaps' is no VotingState.")]
    [InlineData("""{ "format": 1, "clusterId": "kahuna", "nodeId": 1, "partitions": 3, "stateStore": "auto" }""", "is damaged: 'auto' is no StateStoreChoice.")]
    [InlineData("""{ "format": 1, "clusterId": "kahuna", "nodeId": 1, "partitions": 3, "directoryId": "12345678123456781" }""", "is damaged: ")]
    public void Other_formats_and_damage_are_refused(string content, string expected)
    {
        Directory.CreateDirectory(Options.DataDirectory);
        File.WriteAllText(Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName), content);

        Refused(Options, expected);
    }

    [Fact]
    public void What_an_earlier_version_did_not_record_is_added()
    {
        Directory.CreateDirectory(Options.DataDirectory);
        string path = Path.Combine(Options.DataDirectory, DataDirectoryIdentity.FileName);
        File.WriteAllText(path, """{ "format": 1, "clusterId": "kahuna", "nodeId": 1, "partitions": 3 }""");
        File.WriteAllText(path + ".1-2.tmp", "cut off");
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(Options);

        Assert.NotEqual(0ul, first.DirectoryId);
        Assert.Equal((VotingState.Yes, StateStoreChoice.Files), (first.Voting, first.StateStore));
        Assert.Equal(first, DataDirectoryIdentity.Open(Options));
        Assert.False(File.Exists(path + ".1-2.tmp"));
    }

    [Fact]
    public void Another_state_store_is_refused_and_auto_takes_what_is_recorded()
    {
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(Options);

        Refused(Options with { StateStore = StateStoreChoice.RocksDb }, "keeps its state in 'files', but this node is started with --state-store rocksdb; leave the option out");
        Assert.Equal(first, DataDirectoryIdentity.Open(Options with { StateStore = StateStoreChoice.Auto }, Assert.Fail));
    }

    [Fact]
    public void A_directory_in_use_is_refused()
    {
        using IDisposable held = DataDirectoryIdentity.Hold(Options.DataDirectory);
        Refused(Options, "is in use");
    }

    [Fact]
    public void A_place_that_cannot_be_a_directory_is_refused() =>
        Refused(Options with { DataDirectory = Path.Combine(_directory.File("file", "x"), "data") }, "Cannot use the data directory");

    [Theory]
    [InlineData("0123456789abcdef\n", 16)]
    [InlineData("0123456789abcdef0123 \r\n\n", 20)]
    public void A_secret_ends_before_the_last_newline(string content, int bytes) =>
        Assert.Equal(bytes, ClusterSecret.Read(_directory.File("secret", content)).Length);

    [Fact]
    public void Bad_secrets_are_refused()
    {
        Assert.Contains("needs at least 16", Assert.Throws<InvalidDataException>(() => ClusterSecret.Read(_directory.File("short", "0123456789abcde\n"))).Message, StringComparison.Ordinal);
        Assert.Contains("is longer than 4096", Assert.Throws<InvalidDataException>(() => ClusterSecret.Read(_directory.File("long", new string('x', 5000)))).Message, StringComparison.Ordinal);
        Assert.Contains("Cannot read", Assert.Throws<InvalidDataException>(() => ClusterSecret.Read(Path.Combine(_directory.Path, "none"))).Message, StringComparison.Ordinal);
    }

    private static void Refused(NodeOptions options, string expected)
    {
        string message = Assert.Throws<DataDirectoryException>(() => DataDirectoryIdentity.Open(options)).Message;
        Assert.Contains(expected, message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', message);
    }
}
