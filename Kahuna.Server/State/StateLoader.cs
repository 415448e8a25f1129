namespace Kahuna.Server.State;

/// <summary>
/// Builds a state from what views handed out: every key's newest record once, in any order, then <see cref="Finish"/>. Owned by whoever loads; not
/// thread-safe.
/// </summary>
internal sealed class StateLoader(StateLimits limits, StateSummary summary)
{
    private readonly StateLimits _limits = limits;
    private readonly KeyStore _store = new(limits);
    private readonly StateSummary _summary = summary;

    /// <summary>Adds one record, without its length.</summary>
    /// <exception cref="InvalidDataException">The record is damaged, or its key was there before.</exception>
    public void Add(ReadOnlySpan<byte> record)
    {
        if (!KeyRecord.TryLoad(record, _store, in _summary))
        {
            throw new InvalidDataException($"a record of the stored state is damaged ({record.Length} bytes)");
        }
    }

    /// <summary>The loaded state.</summary>
    /// <exception cref="InvalidDataException">It is not the state that was stored: its digest is another one.</exception>
    public StateMachine Finish()
    {
        if (_store.Loaded != _summary.Rows)
        {
            throw new InvalidDataException($"the stored state is incomplete: it has {_store.Loaded} of {_summary.Rows} keys");
        }

        _store.FinishLoading(_summary.NextHistoryNumber);
        if (_store.Digest != _summary.Digest)
        {
            throw new InvalidDataException($"the stored state is damaged: its digest is {_store.Digest:x16}, and {_summary.Digest:x16} was stored with it");
        }

        return new StateMachine(_store, _summary.TimeMs, _limits);
    }
}
