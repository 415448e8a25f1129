using System.Globalization;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Runs transactions on any keys: as one command when they lie in one group, otherwise as two-phase commits. Owned by a
/// client or a node; any thread.
/// </summary>
/// <param name="connection">The connection.</param>
/// <param name="ports">Random numbers.</param>
/// <param name="attemptsMax">
/// Two-phase commits under way, with those that are finished while their callers go on. Further ones wait: the callers
/// are faster than the cluster.
/// </param>
internal sealed class TransactionCoordinator(
    ClusterConnection connection, ConnectionPorts ports, int attemptsMax = TransactionCoordinator.AttemptsMax)
{
    /// <summary>Of a client.</summary>
    private const int AttemptsMax = 4_096;

    private readonly RetryPause _pause = new(connection, ports.Seed);
    private readonly DecisionCleanup _cleanup = new(connection);
    private readonly SemaphoreSlim _attempts = new(attemptsMax, attemptsMax);

    /// <summary>The connection.</summary>
    public ClusterConnection Connection => connection;

    /// <summary>Runs a transaction.</summary>
    /// <returns>
    /// Whether the conditions held, with the outcomes of the conditions and of the list that was carried out; with
    /// <see cref="CommitRequest.IsVerdictEnough"/> of several groups only those of the conditions.
    /// </returns>
    public async Task<TransactionReply> RunAsync(CommitRequest request, CancellationToken ct)
    {
        bool captures = connection.CapturesContext;
        bool isOneBucket = TransactionParts.AreOneBucket(request.Body.Span[TransactionBody.HeaderBytes..]);
        byte[]? otherLock = LockOfAnotherBucket(request);
        CommitDeadline time = new(connection, request.Patience);
        for (int tries = 1; ; tries++)
        {
            TransactionParts? parts = isOneBucket && otherLock is null
                ? null
                : TransactionParts.OfTransaction(
                    request.Body, await SlotsAsync(ct).ConfigureAwait(captures), LockOf(request));
            KahunaException? failure;
            if (parts is null || (parts.All.Count == 1 && otherLock is null))
            {
                try
                {
                    TimeSpan? patience = tries > 1 ? time.LeftForStep : request.Patience;
                    return await connection.Run(ToOneCommand(request, parts, patience), ct).ConfigureAwait(captures);
                }
                catch (KahunaException stale) when (SpreadKeys.IsRefused(stale))
                {
                    failure = stale;
                }
            }
            else
            {
                Check(request, parts);
                await EnterAsync(ct).ConfigureAwait(captures);
                CommitAttempt attempt = new(connection, request, parts, NewName(parts), time, _cleanup);
                try
                {
                    if (await attempt.RunAsync(ct).ConfigureAwait(captures) is { } reply)
                    {
                        return reply;
                    }
                }
                finally
                {
                    _ = LeaveAsync(attempt.Rest);
                }

                failure = attempt.Failure;
            }

            TimeSpan pause = _pause.After(tries);
            if (pause >= time.Left)
            {
                throw failure is null
                    ? TransactionErrors.StillHeld(tries, time.Allowed)
                    : TransactionErrors.NothingWritten(failure);
            }

            await _pause.WaitAsync(pause, ct).ConfigureAwait(captures);
        }
    }

    /// <summary>An id that no other transaction has.</summary>
    public TransactionId NewId() => new(ports.NewSessionId(), ports.NewSessionId());

    /// <summary>Pauses before a try.</summary>
    public Task PauseAsync(int tries, CancellationToken ct) => _pause.WaitAsync(_pause.After(tries), ct);

    /// <summary>The newest known map of slots.</summary>
    public async ValueTask<SlotMap> SlotsAsync(CancellationToken ct) =>
        connection.Routes.Map.Slots ?? await connection.SlotsAsync(ct).ConfigureAwait(connection.CapturesContext);

    /// <summary>
    /// Has a transaction aborted, unless it is decided. Returns the decision that counts, which then never changes.
    /// </summary>
    /// <param name="text">The text form of its <see cref="CommitName"/>.</param>
    /// <param name="ct">Ends the wait.</param>
    public async Task<TransactionDecision> SettleAsync(string text, CancellationToken ct)
    {
        long now = connection.Time.GetUtcNow().ToUnixTimeSeconds();
        if (!CommitName.TryParse(text, out CommitName name))
        {
            throw OperationErrors.BadArgument("the text is no id of a transaction over several partitions");
        }

        if (now - name.Begun is < -CommitName.KnownSeconds or > CommitName.KnownSeconds)
        {
            throw OperationErrors.BadArgument(
                "the transaction began more than nine minutes ago, or in the future by this client's clock; the "
                    + "cluster may have forgotten its outcome");
        }

        Operation<DecideReply> operation = Operation<DecideReply>.Rent();
        operation.Request.Begin(CommandKind.TransactionDecide, Durability.Persistent, name.AnchorKey);
        operation.Request.AddNumber((long)TransactionDecision.Abort);
        byte[] id = new byte[TransactionId.Bytes];
        name.Id.Write(id);
        operation.Request.SetValue(id);
        DecideReply reply = await connection.Run(operation, ct).ConfigureAwait(connection.CapturesContext);
        return reply.Decision;
    }

    /// <summary>What is refused although each part could be prepared.</summary>
    private static void Check(CommitRequest request, TransactionParts parts)
    {
        string? sentence = TransactionCheck.SizeRefusal(request.Body.Length)
            ?? TransactionCheck.CountRefusal(parts.CountMax)
            ?? TransactionCheck.RangeCountRefusal(parts.Ranges)
            ?? (parts.NamesTwice ? TransactionCheck.NamedTwice : null)
            ?? FenceRefusal(request.Fence);
        if (sentence is not null)
        {
            throw OperationErrors.BadArgument(sentence + "; nothing was written");
        }
    }

    private static string? FenceRefusal(Fence? fence) =>
        fence is not { } given ? null
            : given.Token.Value < 1 ? "the fence's token must be 1 or greater"
            : LockName(given) is { Length: 0 or > Limits.KeyBytesMax } name ? string.Create(
                CultureInfo.InvariantCulture,
                $"the fence's resource has {name.Length:N0} bytes; it must have 1 to {Limits.KeyBytesMax:N0}")
            : null;

    private static byte[] LockName(Fence fence)
    {
        ArgumentNullException.ThrowIfNull(fence.Resource);
        try
        {
            return Utf8Text.Strict.GetBytes(fence.Resource);
        }
        catch (EncoderFallbackException)
        {
            throw OperationErrors.BadArgument("the fence's resource is no valid text; nothing was written");
        }
    }

    private static byte[]? LockOf(CommitRequest request) => request.Fence is { } fence ? LockName(fence) : null;

    /// <summary>The name of the fence's lock, unless it is in the bucket of the first key.</summary>
    private static byte[]? LockOfAnotherBucket(CommitRequest request)
    {
        ReadOnlySpan<byte> items = request.Body.Span[TransactionBody.HeaderBytes..];
        return LockOf(request) is { } name
            && CommandList.TryTake(ref items, out Command first)
            && !KeyRouting.Bucket(first.Key).SequenceEqual(KeyRouting.Bucket(name))
                ? name
                : null;
    }

    private static Operation<TransactionReply> ToOneCommand(
        CommitRequest request, TransactionParts? parts, TimeSpan? patience)
    {
        ReadOnlySpan<byte> items = request.Body.Span[TransactionBody.HeaderBytes..];
        CommandList.TryTake(ref items, out Command first);
        Operation<TransactionReply> operation = Operation<TransactionReply>.Rent();
        if (parts is { Ranges: > 0 })
        {
            operation.Request.Begin(CommandKind.Transaction, first.Durability, parts.All[0].KeyText);
            operation.Request.SetValue(parts.All[0].Encode());
        }
        else
        {
            operation.Request.Begin(CommandKind.Transaction, first.Durability, Utf8Text.Strict.GetString(first.Key));
            operation.Request.SetValue(request.Body);
        }

        operation.Request.Patience = patience;
        operation.Request.SetHolder(request.Holder);
        operation.Request.Account = request.Account;
        request.Fence?.ApplyTo(ref operation.Request);
        return operation;
    }

    private CommitName NewName(TransactionParts parts) => new(
        NewId(),
        connection.Time.GetUtcNow().ToUnixTimeSeconds(),
        parts.Anchor.KeyText);

    private async ValueTask EnterAsync(CancellationToken ct)
    {
        try
        {
            await _attempts.WaitAsync(ct).ConfigureAwait(connection.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <summary>The rest of an attempt runs by itself, and takes up its place until it ends.</summary>
    private async Task LeaveAsync(Task rest)
    {
        try
        {
            await rest.ConfigureAwait(connection.CapturesContext);
        }
        finally
        {
            _attempts.Release();
        }
    }
}
