using Kahuna.Server.Transport;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Tests.Transport;

/// <summary>How many TLS handshakes go on at a time, by the middleware alone.</summary>
public sealed class HandshakeLimiterTests
{
    [Fact]
    public async Task A_few_handshakes_go_on_at_a_time()
    {
        HandshakeLimiter pace = new(Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan, Unexpected);
        TaskCompletionSource hello = new();
        int begun = 0;
        ConnectionDelegate handshake = pace.Waiting(async connection =>
        {
            Interlocked.Increment(ref begun);
            await hello.Task;
            await HandshakeLimiter.Done(static _ => Task.CompletedTask)(connection);
        });
        Task[] all = [.. Enumerable.Range(0, 500).Select(_ => handshake(new DefaultConnectionContext()))];
        Assert.Equal(HandshakeLimiter.ConcurrentMax, begun);
        hello.SetResult();
        await Task.WhenAll(all).WaitAsync(LastNet.Span);
        Assert.Equal(500, begun);
    }

    [Fact]
    public async Task Silent_clients_keep_their_places_for_a_moment_only()
    {
        HandshakeLimiter pace = new(TimeSpan.FromMilliseconds(10), Timeout.InfiniteTimeSpan, Unexpected);
        TaskCompletionSource never = new();
        ConnectionDelegate silent = pace.Waiting(_ => never.Task);
        Task[] held =
        [
            .. Enumerable.Range(0, 10 * HandshakeLimiter.ConcurrentMax)
                .Select(_ => silent(new DefaultConnectionContext())),
        ];
        await pace.Waiting(static _ => Task.CompletedTask)(new DefaultConnectionContext()).WaitAsync(LastNet.Span);
        never.SetResult();
        await Task.WhenAll(held).WaitAsync(LastNet.Span);
    }

    [Fact]
    public async Task Nobody_is_kept_out_by_those_who_hold_places()
    {
        HandshakeLimiter pace = new(Timeout.InfiniteTimeSpan, TimeSpan.FromMilliseconds(1), Unexpected);
        TaskCompletionSource never = new();
        int begun = 0;
        Task[] held =
        [
            .. Enumerable.Range(0, HandshakeLimiter.ConcurrentMax)
                .Select(_ => pace.Waiting(_ => never.Task)(new DefaultConnectionContext())),
        ];
        for (int i = 0; i < 10; i++)
        {
            await pace.Waiting(_ =>
            {
                begun++;
                return Task.CompletedTask;
            })(new DefaultConnectionContext()).WaitAsync(LastNet.Span);
        }

        Assert.Equal(10, begun);
        never.SetResult();
        await Task.WhenAll(held).WaitAsync(LastNet.Span);
    }

    [Fact]
    public async Task A_place_is_left_after_the_handshake_and_not_at_the_end_of_the_connection()
    {
        HandshakeLimiter pace = new(Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan, Unexpected);
        int places = 0;
        TaskCompletionSource end = new();
        List<Task> connections = [];
        for (int i = 0; i < 3 * HandshakeLimiter.ConcurrentMax; i++)
        {
            connections.Add(pace.Waiting(HandshakeLimiter.Done(_ =>
            {
                places++;
                return end.Task;
            }))(new DefaultConnectionContext()));

            // Without waiting for a timer: the place is free when the handshake is done.
            Assert.Equal(i + 1, places);
        }

        end.SetResult();
        await Task.WhenAll(connections).WaitAsync(LastNet.Span);
    }

    [Fact]
    public async Task A_client_that_goes_while_it_waits_is_let_go()
    {
        HandshakeLimiter pace = new(Unexpected);
        TaskCompletionSource never = new();
        using CancellationTokenSource gone = new();
        await gone.CancelAsync();
        bool called = false;
        await pace.Waiting(_ =>
        {
            called = true;
            return never.Task;
        })(new DefaultConnectionContext { ConnectionClosed = gone.Token }).WaitAsync(LastNet.Span);
        Assert.False(called);
    }

    [Theory]
    [InlineData(false, true, true)]
    [InlineData(false, false, false)]
    [InlineData(true, true, false)]
    public async Task Only_a_hello_that_cannot_be_read_is_told(bool done, bool outside, bool isTold)
    {
        List<string> told = [];
        HandshakeLimiter pace = new(
            Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan, error => told.Add(error.Message));
        ConnectionDelegate fails =
            _ => throw (outside ? new IndexOutOfRangeException("planted") : new InvalidOperationException("planted"));
        for (int i = 0; i < 2 * HandshakeLimiter.ConcurrentMax; i++)
        {
            Task connection = pace.Waiting(done ? HandshakeLimiter.Done(fails) : fails)(new DefaultConnectionContext())
                .WaitAsync(LastNet.Span);
            if (isTold)
            {
                await connection;
            }
            else
            {
                Assert.Equal("planted", (await Assert.ThrowsAnyAsync<Exception>(() => connection)).Message);
            }
        }

        Assert.Equal(isTold ? 2 * HandshakeLimiter.ConcurrentMax : 0, told.Count);
    }

    private static void Unexpected(Exception error) => Assert.Fail(error.Message);
}
