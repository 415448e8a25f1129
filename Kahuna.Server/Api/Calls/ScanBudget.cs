using Grpc.Core;
using Kahuna.Server.Api.Errors;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// What the scans of foreign clients may take of a node at a time: pages that are being read, streams, and the memory
/// of pages that were read and not passed on yet. Any thread.
/// </summary>
internal sealed class ScanBudget
{
    /// <summary>
    /// Pages that all calls of the node read at a time; further ones wait. A page takes about half a millisecond, so
    /// that it waits 30 ms behind them.
    /// </summary>
    public const int PagesMax = 64;

    /// <summary>Streams of the node. At 8 partitions each, their pages fill the memory.</summary>
    public const int StreamsMax = 256;

    /// <summary>Streams of a connection, so that it takes 16 connections to take them all.</summary>
    public const int StreamsPerConnectionMax = 16;

    /// <summary>
    /// Consistent scans of the node, of which each has a cut in every partition: half of the cuts that a partition
    /// keeps.
    /// </summary>
    public const int MomentsMax = 8;

    /// <summary>Bytes of pages that were read and not passed on: as much as may wait in replies.</summary>
    private const long BytesMax = 128L << 20;

    /// <summary>A connection gets this fraction of the free bytes, 42 MiB of an unused node.</summary>
    private const int Shares = 2;

    private readonly SemaphoreSlim _pages = new(PagesMax, PagesMax);
    private long _bytes;
    private int _streams;
    private int _moments;

    /// <summary>Bytes of pages that were read and not passed on. For tests.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>Pages that are being read. For tests.</summary>
    public int Pages => PagesMax - _pages.CurrentCount;

    /// <summary>Open streams. For tests.</summary>
    public int Streams => Volatile.Read(ref _streams);

    /// <summary>Begins a call.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the call streams, and there are as many streams as may be.
    /// </exception>
    public ScanCall Begin(ServerCallContext context, bool isStream)
    {
        ScanShare share = context.GetHttpContext().Features.Get<ConnectionQuota>()?.Scans ?? new ScanShare();
        if (!isStream)
        {
            return new ScanCall(this, share, context, isStream: false);
        }

        bool hasShare = share.AddStream(1) <= StreamsPerConnectionMax;
        if (Interlocked.Increment(ref _streams) <= StreamsMax && hasShare)
        {
            return new ScanCall(this, share, context, isStream: true);
        }

        EndStream(share);
        throw OutcomeErrors.Build(
            StatusCode.ResourceExhausted,
            hasShare
                ? $"The node has {StreamsMax} open streams of keys, its limit; this one was not opened. Try again "
                    + "later."
                : $"The connection has {StreamsPerConnectionMax} open streams of keys, its limit; this one was not "
                    + "opened. End others first, or use another connection.",
            OutcomeErrors.DidNotHappen);
    }

    /// <summary>Begins the consistent part of a call, which ends with <see cref="EndMoment"/>.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: there are as many consistent scans as may be.</exception>
    public void BeginMoment()
    {
        if (Interlocked.Increment(ref _moments) > MomentsMax)
        {
            EndMoment();
            throw OutcomeErrors.Build(
                StatusCode.ResourceExhausted,
                $"The node has {MomentsMax} consistent scans of gRPC clients, its limit; this one was not begun. Try "
                    + "again later.",
                OutcomeErrors.DidNotHappen);
        }
    }

    public void EndMoment() => Interlocked.Decrement(ref _moments);

    /// <summary>Waits until a page may be read.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection holds its share of pages, or the node all.
    /// </exception>
    public async Task EnterAsync(ScanShare share, CancellationToken ct)
    {
        await _pages.WaitAsync(ct).ConfigureAwait(false);
        long free = BytesMax - Bytes;
        if (share.Bytes <= free / Shares)
        {
            return;
        }

        Leave();
        string held = free < 0
            ? $"The node's scans hold {BytesMax >> 20} MiB of keys that were not sent, its limit"
            : $"The connection's scans hold {share.Bytes >> 10} KiB of keys that were not sent, its share";
        throw OutcomeErrors.Build(
            StatusCode.ResourceExhausted,
            $"{held}; this one ends. Nothing was changed. Read the others first, or go on later.",
            OutcomeErrors.DidNotHappen);
    }

    public void Leave() => _pages.Release();

    /// <summary>Adds to the bytes that are held; a negative number releases them.</summary>
    public void Hold(ScanShare share, long bytes)
    {
        Interlocked.Add(ref _bytes, bytes);
        share.Hold(bytes);
    }

    public void EndStream(ScanShare share)
    {
        Interlocked.Decrement(ref _streams);
        share.AddStream(-1);
    }
}

/// <summary>What the scans of one connection take up. Any thread.</summary>
internal sealed class ScanShare
{
    private long _bytes;
    private int _streams;

    /// <summary>Bytes of pages that were read and not passed on.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    public void Hold(long bytes) => Interlocked.Add(ref _bytes, bytes);

    /// <summary>Adds to the open streams and returns how many there are.</summary>
    public int AddStream(int streams) => Interlocked.Add(ref _streams, streams);
}

/// <summary>
/// One scan or count of a foreign client: reads a few partitions at a time, and counts the pages that it holds until it
/// is disposed. Owned by the call; its pages are read concurrently.
/// </summary>
internal sealed class ScanCall(ScanBudget budget, ScanShare share, ServerCallContext context, bool isStream)
    : IDisposable
{
    /// <summary>Pages that a call reads at a time.</summary>
    private const int PagesAtOnce = 4;

    private readonly GuardedCall _guard = GuardedCall.Of(context);
    private long _bytes;

    /// <summary>Time until the deadline; null without one.</summary>
    public TimeSpan? TimeLeft => _guard.TimeLeft;

    /// <summary>
    /// Does something for each part, a few at a time. The first failure, and the end of the call, cancel the others.
    /// </summary>
    public Task EachAsync<T>(IEnumerable<T> parts, Func<T, CancellationToken, Task> read) => Parallel.ForEachAsync(
        parts,
        new ParallelOptions
        {
            MaxDegreeOfParallelism = PagesAtOnce,
            CancellationToken = context.CancellationToken,
        },
        async (part, ct) => await read(part, ct).ConfigureAwait(false));

    /// <summary>Does the call's work and gives the end of the call its status.</summary>
    /// <exception cref="RpcException">DEADLINE_EXCEEDED; UNAVAILABLE: the node stops; or what the work has thrown.
    /// </exception>
    public async Task GuardAsync(Func<Task> work)
    {
        try
        {
            await work().ConfigureAwait(false);
        }
        catch (Exception e) when (
            context.CancellationToken.IsCancellationRequested && e is OperationCanceledException or RpcException)
        {
            throw _guard.IsStopping
                ? OutcomeErrors.Build(
                    StatusCode.Unavailable, "The node is stopping; nothing was changed.", OutcomeErrors.DidNotHappen)
                : OutcomeErrors.Build(
                    StatusCode.DeadlineExceeded,
                    "The deadline passed before all keys were read; nothing was changed.",
                    OutcomeErrors.DidNotHappen);
        }
    }

    /// <summary>Reads a page when it is its turn. Its bytes count until they are released.</summary>
    public async Task<byte[]> ReadAsync(Func<Task<byte[]>> read, CancellationToken ct)
    {
        await budget.EnterAsync(share, ct).ConfigureAwait(false);
        try
        {
            byte[] page = await read().ConfigureAwait(false);
            Interlocked.Add(ref _bytes, page.Length);
            budget.Hold(share, page.Length);
            return page;
        }
        finally
        {
            budget.Leave();
        }
    }

    /// <summary>A page was passed on.</summary>
    public void Release(int bytes)
    {
        Interlocked.Add(ref _bytes, -bytes);
        budget.Hold(share, -bytes);
    }

    /// <summary>Ends the call: nothing of it is held.</summary>
    public void Dispose()
    {
        budget.Hold(share, -Interlocked.Exchange(ref _bytes, 0));
        if (isStream)
        {
            budget.EndStream(share);
        }
    }
}
