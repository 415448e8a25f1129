using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Hosting.Membership;

/// <summary>Which directories vote, and what nodes remember of each other.</summary>
public sealed class MemberRegistryTests : IDisposable
{
    private static readonly NodeId s_one = new(1);
    private static readonly NodeId s_two = new(2);
    private static readonly NodeId s_three = new(3);

    private readonly Directories _directories = new();

    public void Dispose() => _directories.Dispose();

    [Fact]
    public void The_word_of_all_others_proves_a_new_directory_once_and_for_ever()
    {
        MemberRegistry one = _directories.Start(1);
        int proven = 0;
        one.Confirmed += () => proven++;
        Assert.Equal(VotingState.Unproven, one.Voting);
        one.Heard(s_two, PeerDirectoryAnswer.OnlyDirectory);
        one.Heard(s_two, PeerDirectoryAnswer.OnlyDirectory);
        Assert.Equal((VotingState.Unproven, 0), (one.Voting, proven));
        Assert.Equal(VotingState.Unproven, _directories.Recorded(1).Voting);
        one.Confirmed += () => Assert.Equal(VotingState.Yes, _directories.Recorded(1).Voting);

        one.Heard(s_three, PeerDirectoryAnswer.OnlyDirectory);
        one.Heard(s_three, PeerDirectoryAnswer.OnlyDirectory);
        one.Heard(s_two, PeerDirectoryAnswer.Known);

        Assert.Equal((VotingState.Yes, 1), (one.Voting, proven));
        Assert.Equal(VotingState.Yes, _directories.Start(1).Voting);
        Assert.Equal(one.OwnDirectoryId, _directories.Start(1).OwnDirectoryId);
    }

    [Fact]
    public void Words_of_an_earlier_life_do_not_count()
    {
        _directories.Start(1).Heard(s_two, PeerDirectoryAnswer.OnlyDirectory);
        MemberRegistry again = _directories.Start(1);
        again.Heard(s_three, PeerDirectoryAnswer.OnlyDirectory);

        Assert.Equal(VotingState.Unproven, again.Voting);
    }

    [Fact]
    public void A_node_without_peers_votes_at_once()
    {
        NodeOptions alone = _directories.Options(1) with { Peers = [new PeerNode(s_one, new Uri("https://node1:8082"))] };
        MemberRegistry members = MemberRegistry.Open(alone, DataDirectoryIdentity.Open(alone));

        Assert.Equal(VotingState.Yes, members.Voting);
        Assert.Equal(VotingState.Yes, _directories.Recorded(1).Voting);
        Assert.False(File.Exists(Path.Combine(alone.DataDirectory, MembersFile.FileName)));
    }

    [Fact]
    public void What_is_answered_is_recorded_before()
    {
        Assert.Equal(PeerDirectoryAnswer.OnlyDirectory, _directories.Start(1).Meet(s_two, 22, rebuilt: false));

        // The process ends here, before or after the answer is sent: the next one gives the same answer, and to another
        // directory none.
        MemberRegistry again = _directories.Start(1);
        Assert.Equal(PeerDirectoryAnswer.OnlyDirectory, again.Meet(s_two, 22, rebuilt: false));
        Assert.Equal(PeerDirectoryAnswer.AnotherDirectory, again.Meet(s_two, 23, rebuilt: false));
        Assert.Equal(
            "{\n  \"format\": 1,\n  \"fromTheBeginning\": true,\n  \"members\": [\n    { \"nodeId\": 2, "
                + "\"directoryId\": \"0000000000000016\", \"former\": [] }\n  ]\n}\n",
            File.ReadAllText(Path.Combine(_directories.PathOf(1), MembersFile.FileName)));
    }

    [Fact]
    public void A_record_that_cannot_be_written_is_not_answered()
    {
        MemberRegistry one = _directories.Start(1);
        _directories.Wipe(1);

        Assert.ThrowsAny<IOException>(() => one.Meet(s_two, 22, rebuilt: false));
        Directory.CreateDirectory(_directories.PathOf(1));
        Assert.Equal(PeerDirectoryAnswer.OnlyDirectory, one.Meet(s_two, 23, rebuilt: false));
    }

    [Fact]
    public void A_rebuilt_directory_takes_the_place_of_the_known_one_for_good()
    {
        MemberRegistry one = _directories.Start(1);
        List<NodeId> replaced = [];
        one.MemberReplaced += replaced.Add;
        one.Meet(s_two, 22, rebuilt: false);
        Assert.True(one.Linked(s_two, 22));

        Assert.Equal(PeerDirectoryAnswer.Known, one.Meet(s_two, 23, rebuilt: true));
        Assert.False(one.Linked(s_two, 22));
        Assert.Empty(replaced);
        Assert.True(one.Linked(s_two, 23));
        Assert.True(one.Linked(s_two, 23));
        Assert.Equal([s_two], replaced);
        Assert.Equal(PeerDirectoryAnswer.Known, one.Meet(s_two, 23, rebuilt: false));

        // Rebuilt again: the one between does not come back either, although it says that it is rebuilt.
        Assert.Equal(PeerDirectoryAnswer.Known, one.Meet(s_two, 24, rebuilt: true));
        foreach (MemberRegistry members in new[] { one, _directories.Start(1) })
        {
            Assert.Equal(PeerDirectoryAnswer.AnotherDirectory, members.Meet(s_two, 22, rebuilt: false));
            Assert.Equal(PeerDirectoryAnswer.AnotherDirectory, members.Meet(s_two, 23, rebuilt: true));
            Assert.Equal(PeerDirectoryAnswer.Known, members.Meet(s_two, 24, rebuilt: false));
        }
    }

    [Fact]
    public void A_word_counts_no_more_when_its_node_was_rebuilt()
    {
        MemberRegistry one = _directories.Start(1);
        one.Meet(s_two, 22, rebuilt: false);
        one.Heard(s_two, PeerDirectoryAnswer.OnlyDirectory);
        one.Meet(s_two, 23, rebuilt: true);
        one.Heard(s_three, PeerDirectoryAnswer.OnlyDirectory);

        Assert.Equal(VotingState.Unproven, one.Voting);
    }

    [Fact]
    public void A_fresh_cluster_is_proven_by_its_first_handshakes()
    {
        MemberRegistry[] nodes = [.. Enumerable.Range(1, 3).Select(id => _directories.Start((ushort)id))];
        ShakeAll(nodes);

        Assert.All(nodes, node => Assert.Equal(VotingState.Yes, node.Voting));
    }

    [Fact]
    public void A_wiped_directory_is_never_proven_and_hears_what_to_do()
    {
        ShakeAll([.. Enumerable.Range(1, 3).Select(id => _directories.Start((ushort)id))]);
        _directories.Wipe(1);
        MemberRegistry wiped = _directories.Start(1);
        List<string> sentences = [];
        wiped.Refused += sentences.Add;
        Directories.Shake(1, wiped, 2, _directories.Start(2));

        string sentence = Assert.Single(sentences);
        Assert.StartsWith(
            $"Node 2 knows another data directory of this node: {_directories.PathOf(1)} has been emptied",
            sentence,
            StringComparison.Ordinal);
        Assert.Contains("--rebuild", sentence, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', sentence);
        Assert.Equal(VotingState.Unproven, wiped.Voting);
    }

    [Fact]
    public void A_rebuilt_directory_votes_when_it_is_restored_and_not_before()
    {
        ShakeAll([.. Enumerable.Range(1, 3).Select(id => _directories.Start((ushort)id))]);
        _directories.Wipe(1);
        _directories.Rebuild(1);
        MemberRegistry rebuilt = _directories.Start(1);
        rebuilt.Refused += Assert.Fail;
        rebuilt.Confirmed += () => Assert.Fail("proven");
        Assert.True(rebuilt.Rebuilt);
        Directories.Shake(1, rebuilt, 2, _directories.Start(2));
        Directories.Shake(1, rebuilt, 3, _directories.Start(3));
        Assert.Equal(VotingState.Rejoining, rebuilt.Voting);

        rebuilt.Rejoined();
        Assert.False(rebuilt.Rebuilt);
        Assert.Equal(VotingState.Yes, _directories.Start(1).Voting);
        Directories.Shake(1, _directories.Start(1), 2, _directories.Start(2));
    }

    [Fact]
    public void Only_a_rejoining_directory_rejoins()
    {
        MemberRegistry one = _directories.Start(1);
        one.Rejoined();

        Assert.Equal(VotingState.Unproven, one.Voting);
    }

    [Fact]
    public void Who_has_forgotten_vouches_for_nobody()
    {
        // Node 1 is rebuilt without its record; node 2 is new, for all it can tell.
        _directories.Rebuild(1);
        MemberRegistry one = _directories.Start(1);
        Assert.Equal(PeerDirectoryAnswer.Known, one.Meet(s_two, 22, rebuilt: false));
        one.Rejoined();
        Assert.Equal(PeerDirectoryAnswer.Known, _directories.Start(1).Meet(s_two, 22, rebuilt: false));

        MemberRegistry two = _directories.Start(2);
        List<string> sentences = [];
        two.Refused += sentences.Add;
        two.Heard(s_one, PeerDirectoryAnswer.Known);
        Assert.Contains(
            "is new, and node 1 cannot confirm that this node never had another one",
            Assert.Single(sentences),
            StringComparison.Ordinal);
    }

    [Fact]
    public void A_directory_that_lost_its_record_of_the_others_votes_and_vouches_for_nobody()
    {
        ulong id = _directories.Start(1).OwnDirectoryId;
        DataDirectoryIdentity.WithVoting(_directories.PathOf(1), VotingState.Yes);
        File.Delete(Path.Combine(_directories.PathOf(1), MembersFile.FileName));
        MemberRegistry one = _directories.Start(1);

        Assert.Equal(VotingState.Yes, one.Voting);
        Assert.Equal(id, one.OwnDirectoryId);
        Assert.Equal(PeerDirectoryAnswer.Known, one.Meet(s_two, 22, rebuilt: false));
    }

    [Theory]
    [InlineData("")]
    [InlineData("{}")]
    [InlineData("""{ "format": 1, "fromTheBeginning": true, "members": [ { "nodeId": 2, "directoryId": "x", "former": [] } ] }""")]
    [InlineData("""{ "format": 1, "fromTheBeginning": true, "members": [ { "nodeId": 2, "directoryId": null, "former": [] } ] }""")]
    [InlineData("""{ "format": 1, "fromTheBeginning": true, "members": [ { "nodeId": 2, "directoryId": "16", "former": [] }, { "nodeId": 2, "directoryId": "17", "former": [] } ] }""")]
    public void A_damaged_record_is_refused_with_a_sentence(string content)
    {
        _directories.Start(1);
        File.WriteAllText(Path.Combine(_directories.PathOf(1), MembersFile.FileName), content);

        string message = Assert.Throws<DataDirectoryException>(() => _directories.Start(1)).Message;
        Assert.Contains("members.json is damaged: ", message, StringComparison.Ordinal);
        Assert.Contains("--rebuild", message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', message);
        _directories.Rebuild(1);
        Assert.Equal(PeerDirectoryAnswer.Known, _directories.Start(1).Meet(s_two, 22, rebuilt: false));
    }

    [Fact]
    public void What_is_found_is_made_sure_again()
    {
        _directories.Start(1);
        string path = Path.Combine(_directories.PathOf(1), MembersFile.FileName);
        DateTime before = new(2020, 1, 1, 0, 0, 0, DateTimeKind.Utc);
        File.SetLastWriteTimeUtc(path, before);
        _directories.Start(1);

        Assert.NotEqual(before, File.GetLastWriteTimeUtc(path));
    }

    [Fact]
    public void A_record_of_a_later_format_is_refused()
    {
        _directories.Start(1);
        File.WriteAllText(Path.Combine(_directories.PathOf(1), MembersFile.FileName), """{ "format": 2 }""");

        Assert.EndsWith(
            "has format 2; this version understands format 1 only.",
            Assert.Throws<DataDirectoryException>(() => _directories.Start(1)).Message,
            StringComparison.Ordinal);
    }

    private static void ShakeAll(MemberRegistry[] nodes)
    {
        Directories.Shake(1, nodes[0], 2, nodes[1]);
        Directories.Shake(1, nodes[0], 3, nodes[2]);
        Directories.Shake(2, nodes[1], 3, nodes[2]);
    }
}
