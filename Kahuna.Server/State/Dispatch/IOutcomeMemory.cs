using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Dispatch;

/// <summary>
/// Remembers the outcome of the numbered command that is being applied. Owned by the state; not thread-safe.
/// </summary>
internal interface IOutcomeMemory
{
    /// <summary>Keeps the outcome under the command's number.</summary>
    void Remember(scoped in Outcome outcome);
}
