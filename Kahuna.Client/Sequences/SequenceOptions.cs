namespace Kahuna.Client.Sequences;

/// <summary>How values are taken from a sequence. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record SequenceOptions
{
    /// <summary>
    /// 1 to 256 bytes of text that names this one allocation: a call with the same key, by whomever and within an hour after the one before, gets the same values, and one that asks for another count is refused
    /// (<see cref="KahunaErrorCode.InvalidArgument"/>). Where a partition remembers three quarters of the million sessions that it has room for, keys go earlier, six minutes after their last use at the earliest. A sequence that was deleted and created again knows none of its
    /// earlier keys. Null: none; the client's own retries need none.
    /// </summary>
    public string? IdempotencyKey { get; init; }

    /// <summary>Whether each value is taken by itself, or many at a time for this client.</summary>
    public SequenceMode Mode { get; init; } = SequenceMode.Gapless;

    /// <summary>Values that <see cref="SequenceMode.Fast"/> takes at a time; 2 to 1,000,000. Default 100.</summary>
    public int BlockSize { get; init; } = 100;
}

/// <summary>What a sequence promises besides that no value comes twice.</summary>
public enum SequenceMode
{
    /// <summary>Each call is one replicated command: values are in the order of the calls, and there is none that nobody got.</summary>
    Gapless = 0,

    /// <summary>
    /// The client takes blocks of values and hands them out itself, most of the time without asking the cluster. Values of different clients are not in the order of their calls, and those of a block that
    /// its client did not hand out when it ended are never used. A block is kept for a minute at most; near the end of the sequence it is what is left. A client keeps blocks of at most 4,096 names at a
    /// time, and takes the values of further ones one by one.
    /// </summary>
    Fast = 1,
}
