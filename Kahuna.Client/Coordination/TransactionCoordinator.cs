using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Runs transactions on any keys: as one command when they lie in one group, otherwise as two-phase commits. Owned by a
/// client or a node; any thread.
/// </summary>
internal sealed class TransactionCoordinator(ClusterConnection connection, ConnectionPorts ports)
{
    /// <summary>
    /// Commits that are finished while their callers go on. With more, callers wait: they are faster than the cluster.
    /// </summary>
    private const int DetachedMax = 1_000;

    private readonly RetryPause _pause = new(connection, ports.Seed);
    private int _detached;

    /// <summary>The connection.</summary>
    public ClusterConnection Connection => connection;

    /// <summary>Commits that are being finished while their callers go on.</summary>
    public int Detached => Volatile.Read(ref _detached);

    /// <summary>Runs a transaction.</summary>
    /// <returns>
    /// Whether the conditions held, with the outcomes of the conditions and of the list that was carried out; with
    /// <see cref="CommitRequest.IsVerdictEnough"/> of several groups only those of the conditions.
    /// </returns>
    public async Task<TransactionReply> RunAsync(CommitRequest request, CancellationToken ct)
    {
        bool captures = connection.CapturesContext;
        bool isOneBucket = TransactionParts.AreOneBucket(request.Body.Span[TransactionBody.HeaderBytes..]);
        CommitDeadline time = new(connection, request.Patience);
        for (int tries = 1; ; tries++)
        {
            TransactionParts? parts = isOneBucket
                ? null
                : TransactionParts.OfTransaction(request.Body, await SlotsAsync(ct).ConfigureAwait(captures));
            KahunaException? failure;
            if (parts is null || parts.All.Count == 1)
            {
                try
                {
                    TimeSpan? patience = tries > 1 ? time.LeftForStep : request.Patience;
                    return await connection.Run(ToOneCommand(request, patience), ct).ConfigureAwait(captures);
                }
                catch (KahunaException stale) when (SpreadKeys.IsRefused(stale))
                {
                    failure = stale;
                }
            }
            else
            {
                Check(request, parts);
                CommitAttempt attempt = new(connection, request, parts, NewName(parts), time);
                if (await attempt.RunAsync(ct).ConfigureAwait(captures) is { } reply)
                {
                    await DetachAsync(attempt.Rest).ConfigureAwait(captures);
                    return reply;
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
            ?? (parts.NamesTwice ? TransactionCheck.NamedTwice : null)
            ?? (request.Fence is null
                ? null
                : "a fence needs keys of one durability that lie in one partition; keys of one bucket, which is the "
                    + "part before the last /, always do");
        if (sentence is not null)
        {
            throw OperationErrors.BadArgument(sentence + "; nothing was written");
        }
    }

    private static Operation<TransactionReply> ToOneCommand(CommitRequest request, TimeSpan? patience)
    {
        ReadOnlySpan<byte> items = request.Body.Span[TransactionBody.HeaderBytes..];
        CommandList.TryTake(ref items, out Command first);
        Operation<TransactionReply> operation = Operation<TransactionReply>.Rent();
        operation.Request.Begin(CommandKind.Transaction, first.Durability, Utf8Text.Strict.GetString(first.Key));
        operation.Request.SetValue(request.Body);
        operation.Request.Patience = patience;
        request.Fence?.ApplyTo(ref operation.Request);
        return operation;
    }

    private CommitName NewName(TransactionParts parts) => new(
        new TransactionId(ports.NewSessionId(), ports.NewSessionId()),
        connection.Time.GetUtcNow().ToUnixTimeSeconds(),
        parts.Anchor.KeyText);

    /// <summary>Lets the rest of a commit run by itself, unless too many do.</summary>
    private Task DetachAsync(Task rest)
    {
        if (rest.IsCompleted)
        {
            return Task.CompletedTask;
        }

        if (Interlocked.Increment(ref _detached) > DetachedMax)
        {
            Interlocked.Decrement(ref _detached);
            return rest;
        }

        _ = EndAsync(rest);
        return Task.CompletedTask;
    }

    private async Task EndAsync(Task rest)
    {
        await rest.ConfigureAwait(connection.CapturesContext);
        Interlocked.Decrement(ref _detached);
    }
}
