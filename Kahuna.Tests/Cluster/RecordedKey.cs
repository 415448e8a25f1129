namespace Kahuna.Tests.Cluster;

/// <summary>
/// What one writer knows of one key: its last acknowledged value and the values whose writes ended without an answer.
/// After such a write the writer leaves the key alone, because the write may still take effect later. Owned by its
/// writer.
/// </summary>
internal sealed class RecordedKey(string name)
{
    public string Name => name;

    /// <summary>Acknowledged writes; the values are 1, 2, 3, ….</summary>
    public long Acknowledged { get; private set; }

    public long Revision { get; private set; }

    /// <summary>A write whose outcome is not known, 0 when there is none.</summary>
    public long Open { get; private set; }

    private long _lastAcknowledgedValue;
    private long _lastValue;

    public long NextValue() => ++_lastValue;

    public void Acknowledge(long value, long revision)
    {
        Acknowledged++;
        _lastAcknowledgedValue = value;
        if (revision <= Revision)
        {
            throw new InvalidOperationException($"{name}: revision {revision} after {Revision}.");
        }

        Revision = revision;
    }

    public void LeaveOpen(long value) => Open = value;

    /// <summary>
    /// Null when what was read agrees with what was acknowledged; a value that was said not to have happened does not.
    /// </summary>
    public string? Check(bool found, string? value, long revision)
    {
        if (!found)
        {
            return Acknowledged == 0
                ? null
                : $"{name}: not found; {_lastAcknowledgedValue} was acknowledged at revision {Revision}";
        }

        if (!long.TryParse(value, out long number)
            || (number != _lastAcknowledgedValue && (Open == 0 || number != Open)))
        {
            return $"{name}: holds {value}; acknowledged was {_lastAcknowledgedValue}, open {Open}";
        }

        return revision >= Revision ? null : $"{name}: revision {revision}; {Revision} was acknowledged";
    }
}
