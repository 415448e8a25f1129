using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Rules;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// All operations of all callers of a run, and what can be said of them at once: nobody reads a revision older than one
/// acknowledged before. Owned by one run.
/// </summary>
internal sealed class CallLog(Func<ClusterRules> rules)
{
    private readonly List<Call> _calls = [];
    private readonly Dictionary<string, long> _acknowledged = [];
    private readonly Dictionary<string, Call> _latest = [];
    private readonly Dictionary<Call, long> _floors = [];
    private long _values;

    public IReadOnlyList<Call> Calls => _calls;

    /// <summary>Operations that have not come back.</summary>
    public int Open => _floors.Count;

    public long NextValue() => ++_values;

    /// <summary>The operation on a key that came back last.</summary>
    public Call? LatestOf(string key) => _latest.GetValueOrDefault(key);

    public Call Begin(Call call, SimScheduler scheduler)
    {
        _calls.Add(call);
        _floors[call] = _acknowledged.GetValueOrDefault(call.Name);
        scheduler.Note(SimEvent.Call, 0, call.Process, (long)call.Kind, call.Name);
        return call;
    }

    public void End(Call call, SimScheduler scheduler)
    {
        call.ReturnNs = scheduler.NowNs;
        _floors.Remove(call, out long floor);
        scheduler.Note(SimEvent.Return, 0, call.Process, ((long)call.Outcome << 32) + (call.Revision ?? 0), call.Error);
        if (call.Outcome != CallOutcome.Ok)
        {
            return;
        }

        if (call.AtRevision is not null)
        {
            return;
        }

        _latest[call.Name] = call;
        if (call.Revision is { } revision && call.Done)
        {
            if (revision < floor)
            {
                rules().Break(
                    "nobody reads what is older than acknowledged",
                    $"{call.Kind} of {call.Name} by {call.Process} gives revision {revision}, and {floor} was "
                        + $"acknowledged before it began");
            }

            if (revision > _acknowledged.GetValueOrDefault(call.Name))
            {
                _acknowledged[call.Name] = revision;
            }
        }
    }
}
