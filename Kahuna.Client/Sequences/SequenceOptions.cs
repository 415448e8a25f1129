namespace Kahuna.Client.Sequences;

/// <summary>
/// Options for taking values from a sequence. Immutable, so one instance may serve many concurrent calls.
/// </summary>
public sealed record SequenceOptions
{
    /// <summary>
    /// Names this allocation with 1 to 256 bytes of UTF-8: a repeated call with the same key returns the same values,
    /// from any process. The key is kept for an hour after its last use. A call with the same key and another count
    /// fails with <see cref="KahunaErrorCode.InvalidArgument"/>.
    /// <para>
    /// When a partition has used three quarters of its one million sessions, it drops keys earlier, but not within six
    /// minutes of their last use. Deleting the sequence drops its keys. Null for none; the client's own retries need
    /// none.
    /// </para>
    /// </summary>
    public string? IdempotencyKey { get; init; }

    /// <summary>
    /// Whether each call takes its own values, or the client takes blocks. Default <see cref="SequenceMode.Gapless"/>.
    /// </summary>
    public SequenceMode Mode { get; init; } = SequenceMode.Gapless;

    /// <summary>
    /// The number of values that <see cref="SequenceMode.Fast"/> takes at a time: 2 to 1,000,000. Default 100.
    /// </summary>
    public int BlockSize { get; init; } = 100;
}

/// <summary>What a sequence guarantees besides unique values.</summary>
public enum SequenceMode
{
    /// <summary>
    /// Each call is one replicated command: values follow the order of the calls, and none is skipped.
    /// </summary>
    Gapless = 0,

    /// <summary>
    /// The client takes blocks of values and hands them out itself, mostly without a request to the cluster. Values of
    /// different clients are not in the order of their calls. Values that a client did not hand out before it ended are
    /// never used.
    /// <para>
    /// A block is kept for at most one minute. A client keeps blocks for at most 4,096 names and takes the values of
    /// further names one by one.
    /// </para>
    /// </summary>
    Fast = 1,
}
