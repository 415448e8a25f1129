namespace Kahuna.Server.State.Rows;

/// <summary>Whether the revision that a write replaces is kept, and the cluster time that is noted with it.</summary>
internal readonly record struct HistoryChoice(bool IsKept, long TimeMs)
{
    /// <summary>What is replaced is forgotten.</summary>
    public static HistoryChoice NotKept => default;

    public static HistoryChoice KeptAt(long timeMs) => new(true, timeMs);
}
