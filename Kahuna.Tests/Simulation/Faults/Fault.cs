namespace Kahuna.Tests.Simulation.Faults;

/// <summary>
/// One fault of a run: when, what, for how long, and the numbers that its details are drawn from. Immutable, so that a
/// run can be repeated with some of them left out.
/// </summary>
internal sealed record Fault(int Number, long AtNs, FaultClass Class, long LastsNs, ulong Draw)
{
    public override string ToString() =>
        FormattableString.Invariant($"#{Number} {Class} at {AtNs / 1e9:0.000} s for {LastsNs / 1e9:0.000} s");
}
