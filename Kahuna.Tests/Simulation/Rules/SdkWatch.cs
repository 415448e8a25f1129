using Kahuna.Client.Watches;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// What one watch of the shipped client returns: every change once and in order behind where it began, and a state
/// that is what the changes made. Owned by its caller.
/// </summary>
/// <param name="cluster">The run.</param>
/// <param name="keys">What it has to be told.</param>
/// <param name="options">How it was asked for.</param>
/// <param name="callNs">When.</param>
internal sealed class SdkWatch(SimCluster cluster, WatchedKeys keys, WatchOptions options, long callNs)
{
    public const string StateRule = "a watch with state returns what its changes made";
    public const string NowRule = "a watch from now begins between the call and its first event";

    private readonly Dictionary<string, (long Revision, string? Value)> _state = [];
    private bool _isState = options.WithState;

    public WatchedKeys Keys => keys;

    /// <summary>Events that it was told.</summary>
    public long Events { get; private set; }

    /// <summary>States that it was told.</summary>
    public long States { get; private set; }

    /// <summary>How often it was told that it was slow, that changes are gone, and that an epoch began.</summary>
    public (long Lagging, long Compacted, long Epochs) Breaks { get; private set; }

    /// <summary>Where a watch may go on.</summary>
    public WatchPosition? Position { get; private set; }

    /// <summary>It is not in the middle of a state.</summary>
    public bool IsWhole => !_isState && Position is not null;

    /// <summary>Where a watch from now began, when it was asked for and when it had begun; null for others.</summary>
    public (long CallNs, long BegunNs, WatchPosition At)? Began { get; private set; }

    public void Hear(in WatchEvent told)
    {
        Events++;
        switch (told.Kind)
        {
            case WatchEventKind.Current:
                Require(_isState, StateRule, $"{told.Key} is current, and no state was to come");
                Require(_state.TryAdd(told.Key, (told.Revision.Value, Text(in told))), StateRule, $"{told.Key} twice");
                break;
            case WatchEventKind.CurrentEnd:
                _isState = false;
                States++;
                keys.StartAt(told.Position!);
                keys.CheckState(_state);
                _state.Clear();
                break;
            case WatchEventKind.Lagging:
                Breaks = Breaks with { Lagging = Breaks.Lagging + 1 };
                break;
            case WatchEventKind.Compacted:
                Breaks = Breaks with { Compacted = Breaks.Compacted + 1 };
                BeginStateAgain(in told);
                break;
            case WatchEventKind.EpochBegan:
                Breaks = Breaks with { Epochs = Breaks.Epochs + 1 };
                BeginStateAgain(in told);
                break;
            case WatchEventKind.Progress when Events == 1 && options is { WithState: false }:
                keys.StartAt(told.Position!);
                Began = options.From is null ? (callNs, cluster.Scheduler.NowNs, told.Position!) : null;
                break;
            case WatchEventKind.Progress when _isState:
                Require(false, StateRule, "progress comes before the state is complete");
                break;
            default:
                HearChange(in told);
                break;
        }

        Position = told.Position ?? Position;
    }

    private void HearChange(in WatchEvent told)
    {
        if (!_isState)
        {
            keys.Hear(in told);
            return;
        }

        if (told.Kind == WatchEventKind.Set)
        {
            _state[told.Key] = (told.Revision.Value, Text(in told));
        }
        else
        {
            _state.Remove(told.Key);
        }
    }

    /// <summary>With state the keys are told again behind it.</summary>
    private void BeginStateAgain(in WatchEvent told)
    {
        if (options.WithState)
        {
            _isState = true;
            _state.Clear();
        }
        else
        {
            keys.Hear(in told);
        }
    }

    private string? Text(in WatchEvent told) =>
        options.KeysOnly || told.Value.IsNull ? null : told.Value.AsString();

    private void Require(bool holds, string rule, string words)
    {
        if (!holds)
        {
            cluster.Rules.Break(rule, $"{keys}: {words}");
        }
    }
}
