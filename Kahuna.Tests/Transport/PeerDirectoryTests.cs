using System.Net.Security;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Hosting.Membership;

namespace Kahuna.Tests.Transport;

/// <summary>Links between nodes whose data directories were wiped, rebuilt, or came back.</summary>
public sealed class PeerDirectoryTests : IDisposable
{
    private static readonly TimeSpan s_limit = LastNet.Span;

    private readonly TemporaryDirectory _certificates = new();
    private readonly Directories _directories = new();
    private readonly NodeTls _tls;

    public PeerDirectoryTests() =>
        _tls = new DevelopmentCertificates(_certificates.Path, TimeProvider.System).Ensure([]);

    public void Dispose()
    {
        _directories.Dispose();
        _certificates.Dispose();
    }

    [Fact]
    public async Task The_first_links_of_a_cluster_prove_its_directories()
    {
        MemberRegistry[] known = [.. Enumerable.Range(1, 3).Select(id => _directories.Start((ushort)id))];
        int proven = 0;
        Array.ForEach(known, node => node.Confirmed += () => Interlocked.Increment(ref proven));
        await using TestNode one = await TestNode.StartAsync(Options(1, known[0]));
        await using TestNode two = await TestNode.StartAsync(Options(2, known[1], one.Address));
        one.Frames.WaitChanges(true);
        Assert.Equal(0, Volatile.Read(ref proven));
        PeerLinksOptions third = Options(3, known[2], one.Address);
        await using TestNode three = await TestNode.StartAsync(
            third with { Peers = [third.Peers[0], new(new NodeId(2), two.Address), third.Peers[2]] });
        one.Frames.WaitChanges(true, true);
        two.Frames.WaitChanges(true, true);
        three.Frames.WaitChanges(true, true);

        Assert.Equal(3, Volatile.Read(ref proven));
        Assert.All(new ushort[] { 1, 2, 3 }, id => Assert.Equal(VotingState.Yes, _directories.Recorded(id).Voting));
    }

    /// <summary>Node 2 connects, node 1 is connected to.</summary>
    [Theory]
    [InlineData(1, 2)]
    [InlineData(2, 1)]
    public async Task A_wiped_directory_is_refused_and_told_so(ushort wiped, ushort other)
    {
        Directories.Shake(1, _directories.Start(1), 2, _directories.Start(2));
        _directories.Wipe(wiped);
        Dictionary<ushort, MemberRegistry> known = new() { [1] = _directories.Start(1), [2] = _directories.Start(2) };
        TaskCompletionSource<string> refused = new(TaskCreationOptions.RunContinuationsAsynchronously);
        known[wiped].Refused += sentence => refused.TrySetResult(sentence);
        known[other].Refused += Assert.Fail;
        await using TestNode one = await TestNode.StartAsync(Options(1, known[1]));
        await using TestNode two = await TestNode.StartAsync(Options(2, known[2], one.Address));

        Assert.StartsWith(
            $"Node {other} knows another data directory of this node",
            await refused.Task.WaitAsync(s_limit),
            StringComparison.Ordinal);
        await (other == 1 ? one : two).Log.WaitFor(
            $"node {wiped} shows the data directory {known[wiped].OwnDirectoryId:x16}, and another one is known here");
        await (other == 1 ? two : one).Log.WaitFor("it knows another data directory of this node");
        Assert.Empty(one.Frames.Changes);
        Assert.Empty(two.Frames.Changes);
    }

    [Fact]
    public async Task A_rebuilt_directory_is_taken_and_the_old_one_is_refused_afterwards()
    {
        string old = Path.Combine(_certificates.Path, "old");
        MemberRegistry first = _directories.Start(1);
        List<NodeId> replaced = [];
        first.MemberReplaced += replaced.Add;
        await using TestNode one = await TestNode.StartAsync(Options(1, first));
        await using (await TestNode.StartAsync(Options(2, _directories.Start(2), one.Address)))
        {
            one.Frames.WaitChanges(true);
        }

        one.Frames.WaitChanges(true, false);
        Directory.Move(_directories.PathOf(2), old);
        _directories.Rebuild(2);
        await using (await TestNode.StartAsync(Options(2, _directories.Start(2), one.Address)))
        {
            one.Frames.WaitChanges(true, false, true);
        }

        one.Frames.WaitChanges(true, false, true, false);
        Assert.Equal([new NodeId(2)], replaced);
        _directories.Wipe(2);
        Directory.Move(old, _directories.PathOf(2));
        MemberRegistry back = _directories.Start(2);
        TaskCompletionSource<string> refused = new(TaskCreationOptions.RunContinuationsAsynchronously);
        back.Refused += sentence => refused.TrySetResult(sentence);
        await using TestNode two = await TestNode.StartAsync(Options(2, back, one.Address));

        await refused.Task.WaitAsync(s_limit);
        Assert.Empty(two.Frames.Changes);
    }

    [Fact]
    public async Task A_node_is_replaced_after_its_old_link_and_before_the_new_one()
    {
        MemberRegistry first = _directories.Start(1);
        await using TestNode one = await TestNode.StartAsync(Options(1, first));
        List<int> changesBefore = [];
        first.MemberReplaced += _ => changesBefore.Add(one.Frames.Changes.Count);
        using SslStream old = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(old, Options(2, _directories.Start(2)));
        one.Frames.WaitChanges(true);
        _directories.Rebuild(2);
        using SslStream rebuilt = await RawPeer.DialTls(one.Address);
        RawPeer.Prove(rebuilt, Options(2, _directories.Start(2)));
        one.Frames.WaitChanges(true, false, true);

        Assert.Equal([2], changesBefore);
        await RawPeer.AssertEnds(old);
    }

    private PeerLinksOptions Options(ushort id, MemberRegistry known, Uri? node1 = null) =>
        TestNode.Options(id, _tls, node1) with { Directory = known };
}
