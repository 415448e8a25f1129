namespace Kahuna.Client.Wire;

/// <summary>Every limit of the wire and of the data model, each with its reason. Constants only; no owner, any thread.</summary>
internal static class Limits
{
    /// <summary>Longest name in bytes of UTF-8 (docs/guarantees.md).</summary>
    public const int KeyBytesMax = 1024;

    /// <summary>Largest value by default.</summary>
    public const int ValueBytesDefault = 1 << 20;

    /// <summary>Largest value that a server may be configured to accept.</summary>
    public const int ValueBytesCeiling = 16 << 20;

    /// <summary>100 years: far above any use, far below overflow when added to a timestamp.</summary>
    public const long TtlMsMax = 100L * 365 * 24 * 3600 * 1000;

    /// <summary>Names with this prefix belong to the system.</summary>
    public static ReadOnlySpan<byte> ReservedPrefix => "__kahuna"u8;

    /// <summary>Version of the frame, command and outcome layouts; stated by both sides in the stream's handshake.</summary>
    public const int WireVersion = 3;

    /// <summary>A writer closes a frame at this size: large enough that headers vanish, small enough that a frame does not hold up its successor.</summary>
    public const int FrameBytesTarget = 256 * 1024;

    /// <summary>Largest frame that a reader accepts: the target plus one command that carries the largest value twice (value and compared value).</summary>
    public const int FrameBytesMax = FrameBytesTarget + (2 * ValueBytesCeiling) + (64 * 1024);

    /// <summary>Operations that one stream may have in flight; more wait in the client. A frame with more of them is malformed: it bounds the work, and the refusals, of one frame.</summary>
    public const int InFlightPerStreamMax = 16 * 1024;

    /// <summary>Longest life of a command, from the call to the last attempt, and so also the longest that an attempt may wait on its way to the log: five minutes. Sessions are remembered for longer.</summary>
    public const int CommandWaitMsMax = 300_000;

    /// <summary>Longest name of a lock's owner in bytes of UTF-8.</summary>
    public const int OwnerBytesMax = 256;

    /// <summary>Longest note that a lock's owner leaves with it.</summary>
    public const int NoteBytesMax = 1024;

    /// <summary>Longest lease, an hour: who wants more renews it. It bounds how long an ephemeral group that lost its data grants nothing.</summary>
    public const long LeaseMsMax = 3_600_000;

    /// <summary>Longest wait for a lock: a day.</summary>
    public const long LockWaitMsMax = 86_400_000;

    /// <summary>Permits of a semaphore.</summary>
    public const int PermitsMax = 10_000;

    /// <summary>Claims of one lock, held and waiting together: more than there are processes that share one, and some 45 MB of state.</summary>
    public const int ClaimsPerLockMax = 131_072;

    /// <summary>For so long an answer about a lock may be held back until there is something to say.</summary>
    public const int LockHoldMsMax = 30_000;

    /// <summary>Numbers of one session that may be without an answer at a time: the width of its window.</summary>
    public const int SessionWindow = 4096;
}
