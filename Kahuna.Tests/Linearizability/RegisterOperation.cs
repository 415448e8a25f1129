namespace Kahuna.Tests.Linearizability;

/// <summary>
/// One operation as the search reads it: values are numbers, times are bounds. Owned by one search; not changed after
/// it was made.
/// </summary>
internal sealed class RegisterOperation
{
    /// <summary>An expectation that is not there.</summary>
    public const int Anything = -1;

    public required OperationKind Kind { get; init; }

    /// <summary>It was answered; otherwise it may be left out, and has no end.</summary>
    public required bool IsKnown { get; init; }

    public required long CallNs { get; init; }

    /// <summary>The largest number when there is no end.</summary>
    public required long ReturnNs { get; init; }

    /// <summary>Set: the value.</summary>
    public int Value { get; init; }

    public bool OnlyIfAbsent { get; init; }

    public bool OnlyIfPresent { get; init; }

    /// <summary><see cref="Anything"/> without the condition.</summary>
    public int OnlyIfValue { get; init; } = Anything;

    /// <summary><see cref="Anything"/> without the condition.</summary>
    public long OnlyIfRevision { get; init; } = Anything;

    public long? TtlMs { get; init; }

    public long By { get; init; }

    public bool? Affirmed { get; init; }

    public int ExpectedValue { get; init; } = Anything;

    public long ExpectedRevision { get; init; } = Anything;

    /// <summary>It gives the key a time to live.</summary>
    public bool SetsDeadline => TtlMs > 0;

    /// <summary>For one that sets a time to live: no expiry is earlier, and none later.</summary>
    public long EarliestExpiryNs { get; init; }

    public long LatestExpiryNs { get; init; } = long.MaxValue;

    public bool HasCondition => OnlyIfAbsent || OnlyIfPresent || OnlyIfValue != Anything || OnlyIfRevision != Anything;

    /// <summary>By its answer it changed nothing, whatever it found.</summary>
    public bool ChangesNothing => Kind is OperationKind.Get or OperationKind.Exists || Affirmed == false;

    /// <summary>The value that the answer says was there, <see cref="Anything"/> if it does not say.</summary>
    public int SeenValue => Kind == OperationKind.Get ? ExpectedValue : Affirmed == true ? OnlyIfValue : Anything;

    /// <summary>What was there before does not matter afterwards, except for the revision.</summary>
    public bool Overwrites => Kind == OperationKind.Set && !HasCondition;

    /// <summary>
    /// The key's revision just before the operation took effect was no higher than this: what the answer says of a
    /// counter that only grows.
    /// </summary>
    public long RevisionBeforeMax()
    {
        if (!IsKnown)
        {
            return long.MaxValue;
        }

        bool countsUp = Kind is OperationKind.Set or OperationKind.Delete or OperationKind.Increment;
        long max = ExpectedRevision == Anything ? long.MaxValue
            : Affirmed == true && countsUp ? ExpectedRevision - 1

            // A refusal for lack of a key answers 0, whatever the key's revision is, and so does a read of a key that
            // was forgotten.
            : ExpectedRevision == 0 ? long.MaxValue
            : ExpectedRevision;
        return Affirmed == true && OnlyIfRevision != Anything ? Math.Min(max, OnlyIfRevision) : max;
    }
}
