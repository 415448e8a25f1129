namespace Kahuna.Server.State.Rows;

/// <summary>
/// Hears of every change of a partition's keys, in the order of the log. Called by the owner of the state while a
/// command is applied: it copies what it needs, and neither reads nor changes the state.
/// </summary>
internal interface IChangeSink
{
    /// <summary>A key has changed.</summary>
    void Changed(in ChangePosition position, scoped in Change change);
}
