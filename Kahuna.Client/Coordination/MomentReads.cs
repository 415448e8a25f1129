using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Reads any keys at one moment. Keys of one group are read by one command. Those of several groups are read twice:
/// when the second reading finds the revisions of the first, the keys were as they were read at each moment between the
/// two, because a key never comes back to a revision: deleted keys keep counting, and a key that is created after it
/// was forgotten begins above every revision that its partition has forgotten. Only an absent key that the partition
/// does not know has no revision; with such a key, and for keys that do not rest, the reads are run as a transaction.
/// Stateless, any thread.
/// </summary>
internal static class MomentReads
{
    private const int TriesMax = 3;

    /// <summary>Reads keys.</summary>
    /// <param name="coordinator">The coordinator.</param>
    /// <param name="items">The reads as a <see cref="CommandList"/>; they were checked one by one.</param>
    /// <param name="patience">How long the caller waits; null for the request timeout.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The outcomes of the reads, in their order.</returns>
    public static async Task<TransactionReply> RunAsync(
        TransactionCoordinator coordinator, ReadOnlyMemory<byte> items, TimeSpan? patience, CancellationToken ct)
    {
        ClusterConnection connection = coordinator.Connection;
        bool captures = connection.CapturesContext;
        bool isOneBucket = TransactionParts.AreOneBucket(items.Span);
        CommitDeadline time = new(connection, patience);
        for (int tries = 1; ; tries++)
        {
            TransactionParts? parts = isOneBucket
                ? null
                : TransactionParts.OfReads(items, await coordinator.SlotsAsync(ct).ConfigureAwait(captures));
            try
            {
                if (parts is null || parts.All.Count == 1)
                {
                    return await connection.Run(ToGetMany(items, patience), ct).ConfigureAwait(captures);
                }

                Check(items, parts);
                byte[] first = await ReadAsync(connection, parts, time.LeftForStep, ct).ConfigureAwait(captures);
                if (HasUnknownKey(first) || tries > TriesMax)
                {
                    return await AsTransactionAsync(coordinator, items, time.LeftForStep, ct).ConfigureAwait(captures);
                }

                TransactionParts looks = TransactionParts.OfReads(
                    AsLooks(items.Span), await coordinator.SlotsAsync(ct).ConfigureAwait(captures));
                byte[] second = await ReadAsync(connection, looks, time.LeftForStep, ct).ConfigureAwait(captures);
                if (AreSame(first, second))
                {
                    return new TransactionReply { Holds = true, Outcomes = first };
                }
            }
            catch (KahunaException stale) when (SpreadKeys.IsRefused(stale) && time.Left > TimeSpan.Zero)
            {
                await coordinator.PauseAsync(tries, ct).ConfigureAwait(captures);
            }
        }
    }

    /// <summary>Reads any keys once, those of one partition at one moment.</summary>
    /// <param name="coordinator">The coordinator.</param>
    /// <param name="items">The reads as a <see cref="CommandList"/>, at most 1,000.</param>
    /// <param name="time">Until when.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The outcomes of the reads, in their order.</returns>
    public static async Task<TransactionReply> EachAsync(
        TransactionCoordinator coordinator, ReadOnlyMemory<byte> items, CommitDeadline time, CancellationToken ct)
    {
        bool captures = coordinator.Connection.CapturesContext;
        for (int tries = 1; ; tries++)
        {
            TransactionParts parts = TransactionParts.OfReads(
                items, await coordinator.SlotsAsync(ct).ConfigureAwait(captures));
            try
            {
                byte[] outcomes = await ReadAsync(coordinator.Connection, parts, time.LeftForStep, ct)
                    .ConfigureAwait(captures);
                return new TransactionReply { Holds = true, Outcomes = outcomes };
            }
            catch (KahunaException stale) when (SpreadKeys.IsRefused(stale) && time.Left > TimeSpan.Zero)
            {
                await coordinator.PauseAsync(tries, ct).ConfigureAwait(captures);
            }
        }
    }

    /// <summary>Reads each part once, and joins the outcomes.</summary>
    private static async Task<byte[]> ReadAsync(
        ClusterConnection connection, TransactionParts parts, TimeSpan patience, CancellationToken ct)
    {
        Task<TransactionReply>[] reads = new Task<TransactionReply>[parts.All.Count];
        for (int i = 0; i < reads.Length; i++)
        {
            ByteBuffer list = ByteBuffer.Rent();
            parts.All[i].WriteItems(list);
            reads[i] = ReadAsync(connection, list.Written.ToArray(), patience, ct);
            list.Return();
        }

        TransactionReply[] replies = await Task.WhenAll(reads).ConfigureAwait(connection.CapturesContext);
        long bytes = 0;
        for (int i = 0; i < replies.Length; i++)
        {
            parts.All[i].Outcomes = replies[i].Outcomes;
            bytes += ValueBytes(replies[i].Outcomes.Span);
        }

        if (bytes > Limits.TransactionBytesMax)
        {
            throw TransactionErrors.Impossible(OutcomeStatus.ReplyTooLarge, 0);
        }

        ByteBuffer outcomes = ByteBuffer.Rent();
        parts.Join(outcomes, 1, static part => part.Outcomes ?? default, OutcomeStatus.Unknown);
        byte[] joined = outcomes.Written.ToArray();
        outcomes.Return();
        return joined;
    }

    /// <summary>A task that goes on in the context of the connection.</summary>
    private static async Task<TransactionReply> ReadAsync(
        ClusterConnection connection, ReadOnlyMemory<byte> items, TimeSpan patience, CancellationToken ct) =>
        await connection.Run(ToGetMany(items, patience), ct).ConfigureAwait(connection.CapturesContext);

    private static async Task<TransactionReply> AsTransactionAsync(
        TransactionCoordinator coordinator, ReadOnlyMemory<byte> items, TimeSpan patience, CancellationToken ct)
    {
        // A list of a transaction has a key once.
        List<int> places = [];
        ByteBuffer body = ByteBuffer.Rent(items.Length + TransactionBody.HeaderBytes);
        try
        {
            int count = WriteOnce(items.Span, body, places);
            CommitRequest request = new() { Body = body.WrittenMemory, Patience = patience };
            TransactionReply reply = await coordinator.RunAsync(request, ct)
                .ConfigureAwait(coordinator.Connection.CapturesContext);
            return count == places.Count ? reply : reply with { Outcomes = Spread(reply.Outcomes, places) };
        }
        finally
        {
            body.Return();
        }
    }

    /// <summary>Appends a transaction of the reads. Returns how many it has; adds the place of each in it.</summary>
    private static int WriteOnce(ReadOnlySpan<byte> items, ByteBuffer body, List<int> places)
    {
        Dictionary<(Durability, ulong), int> known = [];
        ByteBuffer once = ByteBuffer.Rent(items.Length);
        while (CommandList.TryTake(ref items, out Command item))
        {
            (Durability, ulong) key = (item.Durability, XxHash64.Hash(item.Key));
            if (!known.TryGetValue(key, out int place))
            {
                place = known.Count;
                known.Add(key, place);
                CommandList.Append(once, in item);
            }

            places.Add(place);
        }

        TransactionBody.WriteHeader(body, 0, known.Count, 0);
        body.Append(once.Written);
        once.Return();
        return known.Count;
    }

    private static byte[] Spread(ReadOnlyMemory<byte> outcomes, List<int> places)
    {
        List<ReadOnlyMemory<byte>> each = [];
        while (!outcomes.IsEmpty)
        {
            ReadOnlySpan<byte> rest = outcomes.Span;
            if (!OutcomeList.TryTake(ref rest, out _))
            {
                throw OperationErrors.UnknownDescription("a batch");
            }

            each.Add(outcomes[..^rest.Length]);
            outcomes = outcomes[^rest.Length..];
        }

        return [.. places.SelectMany(place => each[place].ToArray())];
    }

    /// <summary>The same reads without values.</summary>
    private static byte[] AsLooks(ReadOnlySpan<byte> items)
    {
        ByteBuffer looks = ByteBuffer.Rent(items.Length);
        while (CommandList.TryTake(ref items, out Command item))
        {
            item.Kind = CommandKind.Exists;
            CommandList.Append(looks, in item);
        }

        byte[] bytes = looks.Written.ToArray();
        looks.Return();
        return bytes;
    }

    /// <summary>A key that its partition does not know has no revision that would tell whether it changed.</summary>
    private static bool HasUnknownKey(ReadOnlySpan<byte> outcomes)
    {
        bool isUnknown = false;
        while (OutcomeList.TryTake(ref outcomes, out Outcome outcome))
        {
            isUnknown |= outcome.Revision == 0;
        }

        return isUnknown;
    }

    private static bool AreSame(ReadOnlySpan<byte> first, ReadOnlySpan<byte> second)
    {
        bool areSame = true;
        while (OutcomeList.TryTake(ref first, out Outcome one))
        {
            areSame &= OutcomeList.TryTake(ref second, out Outcome other)
                && one.Status == other.Status
                && one.Revision == other.Revision;
        }

        return areSame;
    }

    private static long ValueBytes(ReadOnlySpan<byte> outcomes)
    {
        long bytes = 0;
        while (OutcomeList.TryTake(ref outcomes, out Outcome outcome))
        {
            bytes += outcome.Value.Length;
        }

        return bytes;
    }

    private static void Check(ReadOnlyMemory<byte> items, TransactionParts parts)
    {
        string? sentence = TransactionCheck.SizeRefusal(items.Length)
            ?? TransactionCheck.CountRefusal(parts.CountMax);
        if (sentence is null && parts.NamesTwice && AreAtRevisions(items.Span))
        {
            sentence = TransactionCheck.NamedTwice;
        }

        if (sentence is not null)
        {
            throw OperationErrors.BadArgument(sentence);
        }
    }

    private static bool AreAtRevisions(ReadOnlySpan<byte> items)
    {
        bool any = false;
        while (CommandList.TryTake(ref items, out Command item))
        {
            any |= item.Has(CommandFlags.AtRevision);
        }

        return any;
    }

    private static Operation<TransactionReply> ToGetMany(ReadOnlyMemory<byte> items, TimeSpan? patience)
    {
        ReadOnlySpan<byte> list = items.Span;
        CommandList.TryTake(ref list, out Command first);
        Operation<TransactionReply> operation = Operation<TransactionReply>.Rent();
        operation.Request.Begin(CommandKind.GetMany, first.Durability, Utf8Text.Strict.GetString(first.Key));
        operation.Request.SetValue(items);
        operation.Request.Patience = patience;
        return operation;
    }
}
