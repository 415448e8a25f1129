using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// The keys that a pessimistic transaction holds (docs/adr/0042-pessimistic-transactions.md): takes them one by one,
/// and lets all of them go. Owned by one <see cref="Transaction"/>; not thread-safe.
/// </summary>
internal sealed class PessimisticHolds
{
    /// <summary>
    /// How long the leader may delay its answer. A node that has gone is noticed after this; the place in the queue
    /// stays.
    /// </summary>
    private const int WaitMs = 2_000;

    /// <summary>The least time between two requests of one place, in ms.</summary>
    private const int PauseMs = 50;

    /// <summary>How long the end of a transaction waits until its keys are free.</summary>
    private static readonly TimeSpan s_releaseTime = TimeSpan.FromSeconds(1);

    private readonly ClusterConnection _connection;
    private readonly TransactionBook _book;
    private readonly TransactionAge _age;
    private readonly byte[] _id = new byte[TransactionId.Bytes];
    private readonly Dictionary<(string Name, Durability Durability), HoldMode> _held = [];
    private readonly HashSet<(string Name, Durability Durability)> _doubtful = [];

    public PessimisticHolds(ClusterConnection connection, TransactionBook book, TransactionAge age)
    {
        _connection = connection;
        _book = book;
        _age = age;
        age.Id.Write(_id);
    }

    /// <summary>The transaction's id.</summary>
    public ReadOnlyMemory<byte> Id => _id;

    /// <summary>The key for which an older transaction was there; null while there is none.</summary>
    public RefusedHold? Refused { get; private set; }

    /// <summary>Holds a key, to write it.</summary>
    public async ValueTask TakeToWriteAsync(TransactionKey key, CancellationToken ct)
    {
        if (!Has(key, HoldMode.Exclusive))
        {
            await TakeAsync(key, HoldMode.Exclusive, HoldFlags.WithoutValue, ct)
                .ConfigureAwait(_connection.CapturesContext);
        }
    }

    /// <summary>Holds a key, and reads it.</summary>
    /// <param name="key">The key.</param>
    /// <param name="toWrite">It may be written later.</param>
    /// <param name="withValue">The value is wanted.</param>
    /// <param name="ct">Ends the wait. The key may be held all the same.</param>
    public ValueTask<GetResult> ReadAsync(TransactionKey key, bool toWrite, bool withValue, CancellationToken ct) =>
        TakeAsync(
            key,
            toWrite ? HoldMode.Exclusive : HoldMode.Shared,
            withValue ? HoldFlags.None : HoldFlags.WithoutValue,
            ct);

    /// <summary>The key is held to be written.</summary>
    public bool HoldsToWrite(TransactionKey key) => Has(key, HoldMode.Exclusive);

    /// <summary>
    /// Takes the hold that an earlier try was refused, before this one holds anything: it may wait for it now.
    /// </summary>
    public async ValueTask TakeAgainAsync(RefusedHold refused, CancellationToken ct) =>
        await TakeAsync(
            new TransactionKey(refused.Name, refused.Durability), refused.Mode, HoldFlags.WithoutValue, ct)
            .ConfigureAwait(_connection.CapturesContext);

    /// <summary>
    /// The transaction is committed, which has freed what it held. Lets go of what the commit did not know. Never
    /// fails.
    /// </summary>
    public Task CommittedAsync()
    {
        _held.Clear();
        return ReleaseAsync();
    }

    /// <summary>Lets all keys go. Never fails; a group that cannot be reached lets go when the time is over.</summary>
    public async Task ReleaseAsync()
    {
        if (_held.Count + _doubtful.Count == 0)
        {
            return;
        }

        Dictionary<int, (string Name, Durability Durability)> groups = [];
        foreach ((string name, Durability durability) in _held.Keys.Concat(_doubtful))
        {
            int route = _connection.Routes.Map.RouteOf(Utf8Text.Strict.GetBytes(name), durability);
            groups.TryAdd(route, (name, durability));
        }

        _held.Clear();
        _doubtful.Clear();
        Task[] releases = [.. groups.Values.Select(ReleaseAsync)];
        await Task.WhenAll(releases).ConfigureAwait(_connection.CapturesContext);
    }

    private async Task ReleaseAsync((string Name, Durability Durability) group)
    {
        Operation<ReleaseReply> operation = Operation<ReleaseReply>.Rent();
        operation.Request.Begin(CommandKind.TransactionRelease, group.Durability, group.Name);
        operation.Request.SetValue(_id);
        operation.Request.Patience = s_releaseTime;
        try
        {
            await _connection.Run(operation, CancellationToken.None).ConfigureAwait(_connection.CapturesContext);
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // What is not released ends with the transaction's time.
        }
    }

    private async ValueTask<GetResult> TakeAsync(
        TransactionKey key, HoldMode mode, HoldFlags flags, CancellationToken ct)
    {
        (string, Durability) name = (key.Name, key.Durability);
        bool captures = _connection.CapturesContext;
        while (true)
        {
            long asked = _connection.Time.GetTimestamp();
            HoldReply reply;
            try
            {
                reply = await _connection.Run(ToHold(key, mode, flags), ct).ConfigureAwait(captures);
            }
            catch (KahunaException older) when (older.Code == KahunaErrorCode.TransactionConflict)
            {
                Refused = new RefusedHold(key.Name, key.Durability, mode);
                _book.Conflict();
                await ReleaseAsync().ConfigureAwait(captures);
                throw;
            }
            catch (Exception)
            {
                // The request may have arrived.
                _doubtful.Add(name);
                throw;
            }

            if (!reply.IsQueued)
            {
                _held[name] = Has(key, HoldMode.Exclusive) ? HoldMode.Exclusive : mode;
                return reply.Read;
            }

            _doubtful.Add(name);
            _book.RequireOpen();
            TimeSpan pause = TimeSpan.FromMilliseconds(PauseMs) - _connection.Time.GetElapsedTime(asked);
            if (pause > TimeSpan.Zero)
            {
                await PauseAsync(pause, ct).ConfigureAwait(captures);
            }
        }
    }

    private async Task PauseAsync(TimeSpan pause, CancellationToken ct)
    {
        try
        {
            await Task.Delay(pause, _connection.Time, ct).ConfigureAwait(_connection.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    private Operation<HoldReply> ToHold(TransactionKey key, HoldMode mode, HoldFlags flags)
    {
        long leftMs = Math.Clamp((long)_book.Left.TotalMilliseconds, 1, Limits.TransactionHoldMsMax);
        flags |= _held.Count > 0 ? HoldFlags.HoldsOthers : HoldFlags.None;
        Operation<HoldReply> operation = Operation<HoldReply>.Rent();
        operation.Request.Begin(CommandKind.TransactionHold, key.Durability, key.Name);
        operation.Request.SetValue(new HoldBody(_age.Id, _age.Begun, (uint)leftMs, mode, flags).ToBytes());
        operation.Request.SetHold(Math.Min(leftMs, WaitMs));
        return operation;
    }

    private bool Has(TransactionKey key, HoldMode mode) =>
        _held.TryGetValue((key.Name, key.Durability), out HoldMode held) && held >= mode;
}

/// <summary>Who a pessimistic transaction is for the groups. A value.</summary>
/// <param name="Id">Its id, new in each try.</param>
/// <param name="Begun">When it was first tried, in microseconds since 1970 by the client's clock.</param>
internal readonly record struct TransactionAge(TransactionId Id, long Begun)
{
    /// <summary>The moment now, as an age.</summary>
    public static long At(TimeProvider time) => (time.GetUtcNow() - DateTimeOffset.UnixEpoch).Ticks / 10;
}

/// <summary>A hold that an older transaction stood in the way of. Immutable.</summary>
internal sealed record RefusedHold(string Name, Durability Durability, HoldMode Mode);
