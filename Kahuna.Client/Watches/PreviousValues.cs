using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Watches;

/// <summary>
/// Reads the values before changes, for the events that wait together. Owned by one <see cref="Watch"/>; not
/// thread-safe.
/// </summary>
internal sealed class PreviousValues(ClientWatches watches, Durability durability)
{
    private const int BatchMax = 64;

    private readonly Queue<WatchEvent> _ready = new();

    /// <summary>Takes an event whose value before was read.</summary>
    public bool TryTake(out WatchEvent taken) => _ready.TryDequeue(out taken);

    /// <summary>Reads the previous values of an event and of the waiting ones. Returns the first event.</summary>
    /// <param name="first">The event.</param>
    /// <param name="queue">What waits; null: only the first.</param>
    /// <param name="ct">Ends the wait.</param>
    public async Task<WatchEvent> ReadAsync(WatchEvent first, WatchQueue? queue, CancellationToken ct)
    {
        List<WatchEvent> batch = [first];
        while (queue is not null
            && batch.Count < BatchMax
            && batch[^1].Kind is not (WatchEventKind.Compacted or WatchEventKind.EpochBegan)
            && queue.TryTakeMore(out WatchEvent next))
        {
            batch.Add(next);
        }

        WatchEvent[] read = await Task.WhenAll(batch.Select(one => ReadAsync(one, ct)))
            .ConfigureAwait(watches.Connection.CapturesContext);
        foreach (WatchEvent one in read.AsSpan(1))
        {
            _ready.Enqueue(one);
        }

        return read[0];
    }

    private async Task<WatchEvent> ReadAsync(WatchEvent change, CancellationToken ct)
    {
        if (!change.IsPreviousKept || change.Revision.Value <= 1)
        {
            return change;
        }

        GetResult before = default;
        await watches.PersistAsync(
            async () =>
            {
                try
                {
                    Operation<GetResult> operation = Operation<GetResult>.Rent();
                    operation.Request.Begin(CommandKind.Get, durability, change.Key);
                    operation.Request.AddReadRevision(new Revision(change.Revision.Value - 1));
                    before = await watches.Connection.Run(operation, ct)
                        .ConfigureAwait(watches.Connection.CapturesContext);
                }
                catch (KahunaException gone) when (gone.Code == KahunaErrorCode.RevisionCompacted)
                {
                    // History has lost it since.
                }
            },
            ct).ConfigureAwait(watches.Connection.CapturesContext);
        return before.Found ? change.WithPrevious(before.Value) : change;
    }
}
