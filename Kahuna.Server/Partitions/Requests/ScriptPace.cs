namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// How much work of scripts a leader takes on, in steps of the interpreter. A script is a small command and may be some
/// milliseconds of work on every node, so an entry full of them would stop a partition for seconds.
/// </summary>
internal sealed class ScriptPace() : WorkPace(StepsAtOnce, StepsPerMs)
{
    /// <summary>Steps that may come at once, and part of one script beyond them.</summary>
    public const int StepsAtOnce = 50_000;

    /// <summary>Steps that come back in a millisecond: about half of it on a slow machine.</summary>
    public const int StepsPerMs = 2_500;
}
