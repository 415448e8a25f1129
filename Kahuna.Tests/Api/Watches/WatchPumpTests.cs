using System.Diagnostics;
using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>A stream that waits for more changes is woken each time.</summary>
public sealed class WatchPumpTests
{
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(60);

    private readonly LoggedChanges _changes = new(partitions: 1);
    private long _now = 1_000;

    [Fact]
    public async Task Every_change_is_sent_also_while_the_stream_waits_for_more()
    {
        using WatchHub hub = new(_changes.Logs, () => new NodeTime(Volatile.Read(ref _now)), new ReplyRoom());
        CountingPump pump = new(hub);
        pump.Wake();
        await UntilAsync(() => pump.HasBegun);
        int waited = 0;
        for (int i = 1; i <= 200; i++)
        {
            waited += pump.Waits ? 1 : 0;
            _changes.Set(_changes.Log(0), "a", "value");
            await UntilAsync(() => pump.Changes == i);
            Interlocked.Add(ref _now, 2);
        }

        Assert.True(waited > 100, $"{waited} changes waited");
        await pump.EndAsync();
    }

    private static async Task UntilAsync(Func<bool> condition)
    {
        long began = Stopwatch.GetTimestamp();
        while (!condition())
        {
            Assert.True(Stopwatch.GetElapsedTime(began) < s_patience, "the stream was not woken");
            await Task.Delay(1);
        }
    }

    private sealed class CountingPump(WatchHub hub) : WatchPump(hub, access: null)
    {
        private volatile bool _hasBegun;
        private int _changes;

        public bool HasBegun => _hasBegun;

        public int Changes => Volatile.Read(ref _changes);

        public bool Waits => WaitsForMore;

        protected override bool TakeRequests(WatchReader reader)
        {
            if (!_hasBegun)
            {
                Assert.Null(reader.Take(new WatchRequest
                {
                    Operation = WatchOperation.Begin,
                    Durability = Durability.Persistent,
                    Scope = WatchScope.Key,
                    Id = 1,
                    Points = [],
                    Name = Encoding.UTF8.GetBytes("a"),
                }));
                _hasBegun = true;
            }

            return true;
        }

        protected override int WriteOwn() => 0;

        protected override void Write(ByteBuffer frame) =>
            Interlocked.Add(
                ref _changes,
                WatchSaid.ReadSent(frame.Written).Count(
                    static said => said.Frame == Kahuna.Wire.Frames.FrameKind.Changes));

        protected override ValueTask<bool> SendAsync() => new(true);

        protected override void CancelSending()
        {
        }

        protected override void OnFailed(Exception error)
        {
        }
    }
}
