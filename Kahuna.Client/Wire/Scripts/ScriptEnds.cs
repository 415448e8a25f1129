namespace Kahuna.Wire.Scripts;

/// <summary>
/// What the number of a ScriptFailed outcome says (docs/wire-format.md). 0: the script has ended with an error.
/// </summary>
internal static class ScriptEnds
{
    /// <summary>
    /// The script needs more than one partition has, or may use. Nothing was done; it may be run as a transaction.
    /// </summary>
    public const long TooWide = 1;

    /// <summary>
    /// The user's permissions do not cover the whole bucket. Nothing was done; the script may be run as a transaction,
    /// whose reads and writes are checked one by one.
    /// </summary>
    public const long NotAllowedHere = 2;
}
