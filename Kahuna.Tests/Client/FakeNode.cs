using System.Collections.Concurrent;
using Kahuna.Client.Connection;
using Kahuna.Tests.Client.Watches;
using Kahuna.Wire;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Protos;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Client;

/// <summary>
/// A node that speaks the frame protocol over memory and answers as the test says: by <see cref="Answer"/>, or, where
/// that gives nothing, when the test replies to what it takes from <see cref="Held"/>. Owned by a
/// <see cref="FakeCluster"/>.
/// </summary>
internal sealed class FakeNode(FakeCluster cluster, int id, Uri endpoint)
{
    private readonly ConcurrentQueue<FakeConnection> _connections = new();

    public int Id => id;

    public Uri Endpoint => endpoint;

    /// <summary>Refuses connections.</summary>
    public bool IsDown { get; set; }

    /// <summary>Shows a certificate that no client trusts.</summary>
    public bool IsUntrusted { get; set; }

    /// <summary>Why a client with the header is not let in; null: it is.</summary>
    public Func<string?, StreamStatus?> Admit { get; set; } = static _ => null;

    /// <summary>The same for streams of watches.</summary>
    public Func<string?, StreamStatus?> AdmitWatches { get; set; } = static _ => null;

    /// <summary>The headers that streams were opened with, let in or not.</summary>
    public ConcurrentQueue<string?> Shown { get; } = new();

    /// <summary>The same for streams of watches.</summary>
    public ConcurrentQueue<string?> ShownForWatches { get; } = new();

    /// <summary>Answers a unary call with a header.</summary>
    public Func<UnaryCall, string?, CallAnswer> OnCall { get; set; } =
        static (_, _) => throw new CallLostException("Connection refused", wasSent: false);

    /// <summary>Takes connections, but does not greet.</summary>
    public bool IsMute { get; set; }

    /// <summary>No write to it ends on the thread on which it began, as over a network.</summary>
    public bool TakesLate { get; set; }

    /// <summary>The version that it states.</summary>
    public ushort Version { get; set; } = Limits.WireVersion;

    public string ClusterId { get; set; } = "fake";

    /// <summary>Its own view of the leader of each partition; null: the cluster's.</summary>
    public (int Leader, ulong Term)[]? View { get; set; }

    /// <summary>Its map of slots; null: it says nothing of slots.</summary>
    public SlotMap? Slots { get; set; }

    /// <summary>Answers a request at once; null holds it.</summary>
    public Func<FakeRequest, FakeReply?> Answer { get; set; } = static _ => null;

    /// <summary>Everything that was received, in order.</summary>
    public ConcurrentQueue<FakeRequest> Received { get; } = new();

    /// <summary>Requests that wait for the test's reply.</summary>
    public BlockingCollection<FakeRequest> Held { get; } = [];

    public int FramesReceived;

    public int Connects;

    /// <summary>Greetings of clients that were received, answered or not.</summary>
    public int Hellos;

    /// <summary>Connections that clients have tried, in vain or not.</summary>
    public int Attempts;

    /// <summary>Streams of watches that clients have tried to open.</summary>
    public int WatchAttempts;

    /// <summary>Streams of watches, the newest last.</summary>
    public ConcurrentQueue<FakeWatchStream> WatchStreams { get; } = new();

    /// <summary>What it does when a watch is to begin; null: it does not begin it.</summary>
    public Action<FakeWatchStream, AskedWatch>? OnWatch { get; set; } =
        static (stream, watch) => stream.Notice(Kahuna.Wire.Watches.WatchNoticeCode.Begun, watch.Id);

    /// <summary>The newest stream.</summary>
    public FakeConnection Connection => _connections.Last();

    public FakeConnection Accept()
    {
        Interlocked.Increment(ref Connects);
        FakeConnection connection = new(this);
        _connections.Enqueue(connection);
        return connection;
    }

    public FakeWatchStream AcceptWatches()
    {
        FakeWatchStream stream = new(this);
        WatchStreams.Enqueue(stream);
        return stream;
    }

    /// <summary>Takes the next held request; fails the test when none comes.</summary>
    public FakeRequest Next() =>
        Held.TryTake(out FakeRequest? request, Wait.Longest) ? request : throw new TimeoutException("No request came.");

    /// <summary>Sends its view on every open stream.</summary>
    public void SendMap()
    {
        foreach (FakeConnection connection in _connections.Where(connection => !connection.IsEnded))
        {
            connection.SendMap();
        }
    }

    public void Break()
    {
        foreach (FakeConnection connection in _connections)
        {
            connection.Break();
        }

        foreach (FakeWatchStream stream in WatchStreams)
        {
            stream.Break();
        }
    }

    public DescribeClusterResponse Describe()
    {
        DescribeClusterResponse map =
            new() { ClusterId = ClusterId, NodeId = (uint)id, ServerVersion = "1.2.3", Ready = true };
        map.Nodes.AddRange(
            cluster.Nodes.Select(node => new Node { Id = (uint)node.Id, Endpoint = node.Endpoint.ToString() }));
        (int Leader, ulong Term)[] view = View ?? cluster.Leaders;
        map.Partitions.AddRange(
            view.Select((entry, i) =>
                new PartitionLeader { Partition = (uint)i, LeaderNodeId = (uint)entry.Leader, Term = entry.Term }));
        map.SlotMapVersion = Slots?.Version ?? 0;
        map.SlotRuns.AddRange((Slots?.Ranges() ?? []).Select(static range =>
            new SlotRun { First = range.First, Last = range.Last, Partition = range.Partition }));
        return map;
    }

    public void OnHello(FakeConnection connection)
    {
        bool isMute = IsMute;
        Interlocked.Increment(ref Hellos);
        if (!isMute)
        {
            connection.SendEmpty(FrameKind.Hello, Version);
            connection.SendMap();
        }
    }

    public void OnRequests(FakeConnection connection, List<FakeRequest> requests)
    {
        Interlocked.Increment(ref FramesReceived);
        List<(FakeRequest, FakeReply)> replies = [];
        foreach (FakeRequest request in requests)
        {
            Received.Enqueue(request);
            if (Answer(request) is { } reply)
            {
                replies.Add((request, reply));
            }
            else
            {
                Held.Add(request);
            }
        }

        if (replies.Count > 0)
        {
            connection.Reply(replies);
        }
    }
}
