using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Hosting.Membership;

/// <summary>--rebuild drops what it says, and only then.</summary>
public sealed class DirectoryRebuildTests : IDisposable
{
    private readonly Directories _directories = new();

    private NodeOptions Options => _directories.Options(2) with { Rebuild = true };

    private string DataPath => _directories.PathOf(2);

    public void Dispose() => _directories.Dispose();

    [Fact]
    public void It_asks_and_drops_log_and_state_and_keeps_what_is_known_of_others()
    {
        DataDirectoryIdentity old = Fill(VotingState.Yes);
        StringWriter output = new();
        DirectoryRebuild.Run(Options, new StringReader("2\n"), output);

        string text = output.ToString();
        Assert.Contains($"Rebuild of node 2 of cluster 'kahuna' in {DataPath}", text, StringComparison.Ordinal);
        Assert.Contains(" 3,000 bytes", text, StringComparison.Ordinal);
        Assert.Contains(" 400 bytes", text, StringComparison.Ordinal);
        Assert.Contains("Type the node id to continue: ", text, StringComparison.Ordinal);
        Assert.Empty(Directory.EnumerateFileSystemEntries(Path.Combine(DataPath, "log")));
        Assert.Empty(Directory.EnumerateFileSystemEntries(Path.Combine(DataPath, "state")));
        Assert.True(File.Exists(Path.Combine(DataPath, "foreign.txt")));
        DataDirectoryIdentity rebuilt = _directories.Recorded(2);
        Assert.NotEqual(old.DirectoryId, rebuilt.DirectoryId);
        Assert.Equal(
            (VotingState.Rejoining, false, 3, null),
            (rebuilt.Voting, rebuilt.Dropping, rebuilt.Partitions, rebuilt.StateStore));
        Assert.Equal(
            PeerDirectoryAnswer.AnotherDirectory, _directories.Start(2).Meet(new NodeId(1), 12, rebuilt: false));
        Assert.Equal(PeerDirectoryAnswer.OnlyDirectory, _directories.Start(2).Meet(new NodeId(1), 11, rebuilt: false));
        using DataDirectory usable = DataDirectory.Open(new PosixDisk(), DataPath);
    }

    [Theory]
    [InlineData("3\n", "Nothing was dropped: that was not the node id.")]
    [InlineData("", "Nothing was dropped: that was not the node id.")]
    [InlineData(null, "Nothing was dropped: there is no terminal for the confirmation. Add --yes to confirm.")]
    public void Without_the_right_answer_nothing_is_dropped(string? answer, string expected)
    {
        DataDirectoryIdentity old = Fill(VotingState.Yes);

        Assert.Equal(expected, Refused(Options, answer is null ? null : new StringReader(answer)));
        Assert.Equal(old, _directories.Recorded(2));
        Assert.Equal(3000, DirectoryContent.BytesOf(DataPath, "log"));
        Assert.Equal(400, DirectoryContent.BytesOf(DataPath, "state"));
    }

    [Fact]
    public void With_yes_it_does_not_ask() =>
        Assert.DoesNotContain("Type", _directories.Rebuild(2), StringComparison.Ordinal);

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void A_missing_or_empty_directory_is_rebuilt(bool empty)
    {
        if (empty)
        {
            Directory.CreateDirectory(DataPath);
        }

        _directories.Rebuild(2);
        Assert.Equal(VotingState.Rejoining, _directories.Start(2).Voting);
    }

    [Fact]
    public void A_damaged_directory_is_rebuilt()
    {
        Fill(VotingState.Yes);
        foreach (string file in new[] { "node.json", "members.json", "FORMAT", "log/1" })
        {
            File.WriteAllText(Path.Combine(DataPath, file), "damage");
        }

        Assert.Contains("node.json is damaged", _directories.Rebuild(2), StringComparison.Ordinal);
        Assert.Equal(VotingState.Rejoining, _directories.Start(2).Voting);
        Assert.Equal(PeerDirectoryAnswer.Known, _directories.Start(2).Meet(new NodeId(1), 12, rebuilt: false));
        using DataDirectory usable = DataDirectory.Open(new PosixDisk(), DataPath);
    }

    [Fact]
    public void A_rebuild_that_was_cut_off_is_ended_by_the_next_start()
    {
        DataDirectoryIdentity cut = Fill(VotingState.Rejoining) with { Dropping = true };
        cut.Write(DataPath);

        Assert.Equal(VotingState.Rejoining, _directories.Start(2).Voting);
        Assert.Equal(0, DirectoryContent.BytesOf(DataPath, "log"));
        Assert.Equal(0, DirectoryContent.BytesOf(DataPath, "state"));
        Assert.False(_directories.Recorded(2).Dropping);
        Assert.Equal(cut.DirectoryId, _directories.Recorded(2).DirectoryId);
    }

    [Fact]
    public void A_start_drops_nothing()
    {
        Fill(VotingState.Yes);
        _directories.Start(2);

        Assert.Equal(3000, DirectoryContent.BytesOf(DataPath, "log"));
        Assert.Equal(400, DirectoryContent.BytesOf(DataPath, "state"));
    }

    [Fact]
    public void The_record_of_a_directory_that_never_voted_is_no_proof()
    {
        Fill(VotingState.Unproven);
        _directories.Rebuild(2);

        MemberRegistry members = _directories.Start(2);
        Assert.Equal(PeerDirectoryAnswer.Known, members.Meet(new NodeId(1), 11, rebuilt: false));
        Assert.Equal(PeerDirectoryAnswer.AnotherDirectory, members.Meet(new NodeId(1), 12, rebuilt: false));
    }

    [Fact]
    public void A_running_nodes_directory_is_not_touched()
    {
        DataDirectoryIdentity old = Fill(VotingState.Yes);
        using IDisposable held = DataDirectoryIdentity.Hold(DataPath);

        Assert.Contains("is in use", Refused(Options with { RebuildConfirmed = true }, null), StringComparison.Ordinal);
        Assert.Equal(old, _directories.Recorded(2));
    }

    [Fact]
    public void The_directory_of_another_node_is_not_touched()
    {
        Fill(VotingState.Yes);

        Assert.Contains(
            "was created for node 2, but this node is started with node 3",
            Refused(Options with { NodeId = new NodeId(3), RebuildConfirmed = true }, null),
            StringComparison.Ordinal);
        Assert.Equal(3000, DirectoryContent.BytesOf(DataPath, "log"));
    }

    [Fact]
    public void A_node_without_peers_has_nobody_to_come_back_from()
    {
        NodeOptions alone = Options with { Peers = [new PeerNode(new NodeId(2), new Uri("https://node2:8082"))], RebuildConfirmed = true };

        Assert.StartsWith("Nothing was dropped: a standalone node", Refused(alone, null), StringComparison.Ordinal);
        Assert.False(Directory.Exists(DataPath));
    }

    [Fact]
    public void A_log_on_another_disk_is_emptied_and_stays_there()
    {
        Fill(VotingState.Yes);
        string log = Path.Combine(DataPath, "log");
        string other = Path.Combine(DataPath, "other-disk");
        Directory.Move(log, other);
        Directory.CreateSymbolicLink(log, other);
        _directories.Rebuild(2);

        Assert.Equal(other, new DirectoryInfo(log).LinkTarget);
        Assert.Empty(Directory.EnumerateFileSystemEntries(other));
    }

    private static string Refused(NodeOptions options, TextReader? terminal)
    {
        string message = Assert.Throws<DataDirectoryException>(
            () => DirectoryRebuild.Run(options, terminal, new StringWriter())).Message;
        Assert.DoesNotContain('\n', message);
        return message;
    }

    /// <summary>A directory with 3000 bytes of log and 400 of state that knows directory 11 of node 1.</summary>
    private DataDirectoryIdentity Fill(VotingState voting)
    {
        DataDirectoryIdentity identity = DataDirectoryIdentity.Open(_directories.Options(2) with { Partitions = 3 });
        MemberRegistry.Open(_directories.Options(2), identity).Meet(new NodeId(1), 11, rebuilt: false);
        DataDirectoryIdentity.WithVoting(DataPath, voting);
        Directory.CreateDirectory(Path.Combine(DataPath, "log"));
        Directory.CreateDirectory(Path.Combine(DataPath, "state", "inner"));
        File.WriteAllBytes(Path.Combine(DataPath, "log", "1"), new byte[3000]);
        File.WriteAllBytes(Path.Combine(DataPath, "state", "a"), new byte[300]);
        File.WriteAllBytes(Path.Combine(DataPath, "state", "inner", "b"), new byte[100]);
        File.WriteAllText(Path.Combine(DataPath, "FORMAT"), "kahuna-data 2\n");
        File.WriteAllText(Path.Combine(DataPath, "foreign.txt"), "somebody's");
        return _directories.Recorded(2);
    }
}
