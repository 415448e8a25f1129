using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State;

/// <summary>
/// Builds a state from what views handed out: every key's newest record once, in any order, then <see cref="Finish"/>.
/// Owned by the loader; not thread-safe.
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
        if (!TryLoad(record))
        {
            throw new InvalidDataException($"a record of the stored state is damaged ({record.Length} bytes)");
        }
    }

    /// <summary>The loaded state.</summary>
    /// <exception cref="InvalidDataException">It is not the state that was stored: its digest is another
    /// one.</exception>
    public StateMachine Finish()
    {
        if (_store.Loaded != _summary.Rows)
        {
            throw new InvalidDataException(
                $"the stored state is incomplete: it has {_store.Loaded} of {_summary.Rows} keys");
        }

        _store.FinishLoading(_summary.NextHistoryNumber);
        if (_store.Digest != _summary.Digest)
        {
            throw new InvalidDataException(
                $"the stored state is damaged: its digest is {_store.Digest:x16}, and "
                    + $"{_summary.Digest:x16} was stored with it");
        }

        return new StateMachine(_store, _summary.Time, _limits);
    }

    /// <summary>
    /// Adds what a record says in the row it had. False when the bytes are no record, the key or the row is there, or
    /// the state has no such row; the store is of no use then.
    /// </summary>
    private bool TryLoad(ReadOnlySpan<byte> record)
    {
        if (!KeyRecordReader.TryBegin(record, out KeyRecordReader reader) || reader.Row.Value > _summary.Rows)
        {
            return false;
        }

        Row key = reader.Row;
        if (!_store.TryLoad(key, reader.Key, reader.Value, reader.Revision, reader.Flags, reader.Deadline))
        {
            return false;
        }

        _store.Charge(key, reader.Account);
        while (reader.TryNext())
        {
            if (reader.Number >= _summary.FirstHistoryNumber)
            {
                _store.LoadReplaced(
                    key, reader.Value, reader.Revision, reader.ReplacedAt, reader.Number, reader.Flags);
            }
        }

        return reader.IsWhole;
    }
}
