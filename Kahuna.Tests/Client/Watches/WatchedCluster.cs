using System.Text;
using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Client.Watches;

/// <summary>
/// A <see cref="FakeCluster"/> whose first node leads everything and says where the changes are, and whose nodes begin
/// watches. Owned by one test.
/// </summary>
internal sealed class WatchedCluster
{
    public WatchedCluster(int nodes = 1, int partitions = 1)
    {
        Fake = new FakeCluster(nodes, partitions);
        Applied = [.. Enumerable.Range(1, partitions).Select(static group => WatchFrames.At(10, group: (uint)group))];
        Fake[1].Answer = Answer;
    }

    public FakeCluster Fake { get; }

    /// <summary>Where the changes of each partition are.</summary>
    public ChangePoint[] Applied { get; }

    /// <summary>Requests for the points of now.</summary>
    public int Nows;

    /// <summary>Answers reads other than those of the present position; null: the default answer.</summary>
    public Func<FakeRequest, RangeOfRequest, FakeReply?> OnRead { get; set; } = static (_, _) => null;

    /// <summary>The stream of watches that is open, once there is one.</summary>
    public FakeWatchStream Stream
    {
        get
        {
            FakeWatchStream? open = null;
            Wait.UntilAsync(() => (open = Open()) is not null).Wait();
            return open!;
        }
    }

    /// <summary>Waits until the stream carries this number of watches, and returns it.</summary>
    public async Task<FakeWatchStream> StreamAsync(int watches = 1, FakeWatchStream? except = null)
    {
        FakeWatchStream? open = null;
        await Wait.UntilAsync(
            () => (open = Open()) is not null && open != except && open.Watches.Count == watches);
        return open!;
    }

    /// <summary>An enumeration whose watch the node has begun: its first event is awaited.</summary>
    public static async Task<(IAsyncEnumerator<WatchEvent> Watch, Task<bool> First)> BeginAsync(
        KahunaClient client, string prefix, WatchOptions? options = null, CancellationToken ct = default)
    {
        await Task.CompletedTask;
        IAsyncEnumerator<WatchEvent> watch = client.KeyValues.WatchAsync(prefix, options).GetAsyncEnumerator(ct);
        return (watch, watch.MoveNextAsync().AsTask());
    }

    /// <summary>The next event; fails the test when none comes.</summary>
    public static async Task<WatchEvent> NextAsync(IAsyncEnumerator<WatchEvent> watch)
    {
        Assert.True(await Wait.ForAsync(watch.MoveNextAsync()));
        return watch.Current;
    }

    public static FakeReply Page(ChangePoint point, string? last, params ReadOnlySpan<(string Key, long Revision)> keys)
    {
        ByteBuffer page = ByteBuffer.Rent();
        RangePage.WriteHeader(page, Encoding.UTF8.GetBytes(last ?? ""), keys.Length);
        foreach ((string key, long revision) in keys)
        {
            RangePage.Append(page, Encoding.UTF8.GetBytes(key), "v"u8, isNull: false, revision);
        }

        FakeReply reply = new(OutcomeStatus.Found, 0, keys.Length, page.Written.ToArray()) { Point = point };
        page.Return();
        return reply;
    }

    private FakeWatchStream? Open() =>
        Fake.Nodes.SelectMany(static node => node.WatchStreams).LastOrDefault(static stream => !stream.IsEnded);

    private FakeReply? Answer(FakeRequest request)
    {
        if (request.Kind != CommandKind.KeyRange)
        {
            return OnRead(request, default);
        }

        Assert.True(Command.TryRead(request.Bytes, out Command command));
        Assert.True(command.Has(CommandFlags.Positioned));
        RangeRequest range = new(in command);
        if (range is { HasEnd: true, End.Length: 0 })
        {
            Interlocked.Increment(ref Nows);
            return Page(Applied[(int)range.Partition], null);
        }

        return OnRead(
            request,
            new RangeOfRequest(
                (int)range.Partition,
                Encoding.UTF8.GetString(range.Start),
                range.HasEnd ? Encoding.UTF8.GetString(range.End) : null,
                range.Flags));
    }
}

/// <summary>A request for a page of keys. A value.</summary>
internal readonly record struct RangeOfRequest(int Partition, string Start, string? End, RangeFlags Flags);
