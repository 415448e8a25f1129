using System.Runtime.CompilerServices;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Client;

/// <summary>An application's logger that blocks or throws stops nothing but itself.</summary>
public sealed class HostileLoggerTests
{
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(1);

    private readonly FakeCluster _cluster = new();

    [Fact]
    public async Task A_logger_that_blocks_keeps_no_holder_from_being_told()
    {
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim end = new();
        _cluster.Loggers = new Logger(text =>
        {
            if (text.Contains("neither disposed nor kept", StringComparison.Ordinal))
            {
                begun.Set();
                end.Wait(Wait.Longest * 4);
            }
        });
        await using KahunaClient client = await ConnectedAsync();
        await ForgetAsync(client);
        await WaitForAsync(begun);

        // Told by the alarm and not by a look at the clock.
        LockHandle other = await Wait.ForAsync(
            client.Locks.AcquireAsync("b", s_lease, s_lease, new LockOptions { AutoRenew = false }));
        TaskCompletionSource told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using CancellationTokenRegistration registration = other.LostToken.Register(told.SetResult);
        await told.Task.WaitAsync(Wait.Longest);
        end.Set();
    }

    [Fact]
    public async Task A_logger_that_throws_ends_neither_links_nor_leases()
    {
        using ManualResetEventSlim begun = new();
        _cluster.Loggers = new Logger(text =>
        {
            if (text.Contains("neither disposed nor kept", StringComparison.Ordinal))
            {
                begun.Set();
            }

            throw new InvalidOperationException("no logger");
        });
        await using KahunaClient client = await ConnectedAsync();
        await ForgetAsync(client);
        await WaitForAsync(begun);
        _cluster[1].Break();
        Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
        LockHandle other = await Wait.ForAsync(
            client.Locks.AcquireAsync("b", s_lease, s_lease, new LockOptions { AutoRenew = false }));
        TaskCompletionSource told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using CancellationTokenRegistration registration = other.LostToken.Register(told.SetResult);
        await told.Task.WaitAsync(Wait.Longest);
    }

    /// <summary>
    /// What is forgotten late, because frames of the call are still on a stack, is found at a later renewal.
    /// </summary>
    private static Task WaitForAsync(ManualResetEventSlim begun) => Wait.UntilAsync(async () =>
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        await Task.Delay(20);
        return begun.IsSet;
    });

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static async Task ForgetAsync(KahunaClient client) =>
        _ = await Wait.ForAsync(client.Locks.AcquireAsync("a", s_lease, s_lease));

    private Task<KahunaClient> ConnectedAsync()
    {
        _cluster[1].Answer = static request => new FakeReply(OutcomeStatus.Applied, 7, 50_000 + request.LeaseMs);
        return _cluster.ConnectedAsync();
    }

    private sealed class Logger(Action<string> log) : ILoggerFactory, ILogger
    {
        public void AddProvider(ILoggerProvider provider)
        {
        }

        public ILogger CreateLogger(string categoryName) => this;

        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => null;

        public bool IsEnabled(LogLevel logLevel) => true;

        public void Log<TState>(
            LogLevel logLevel,
            EventId eventId,
            TState state,
            Exception? exception,
            Func<TState, Exception?, string> formatter) =>
            log(formatter(state, exception));

        public void Dispose()
        {
        }
    }
}
