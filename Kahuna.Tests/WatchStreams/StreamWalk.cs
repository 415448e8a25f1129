using System.Globalization;

namespace Kahuna.Tests.WatchStreams;

/// <summary>
/// Follows one watch, event by event: what it was told must be every change behind its start, once and in order. What
/// the changes say is <see cref="ToldChanges"/>' business. Used once, by one thread.
/// </summary>
internal sealed class StreamWalk(WatchStream stream, WrittenChanges changes, ToldChanges told, StartPoint start)
{
    private readonly Dictionary<string, KeyState> _keys = new(StringComparer.Ordinal);
    private readonly Dictionary<string, WrittenChange> _latestOfBuckets = new(StringComparer.Ordinal);
    private readonly HashSet<string> _reported = new(StringComparer.Ordinal);
    private StartPoint _start = start;
    private bool _isState = stream.From == WatchStream.State;
    private bool _mayTellState = stream.From == WatchStream.State;

    public List<WatchFinding> Findings { get; } = [];

    /// <summary>Where other watches may begin, by the names of the positions.</summary>
    public Dictionary<string, StartPoint> Positions { get; } = new(StringComparer.Ordinal);

    public void Run()
    {
        foreach (StreamEvent each in stream.Events)
        {
            Take(each);
            if (each.Position is { } position)
            {
                Positions[position] = new StartPoint
                {
                    Revisions = _keys.Where(static pair => pair.Value.IsExact)
                        .ToDictionary(static pair => pair.Key, static pair => pair.Value.Revision!.Value),
                    NotBeforeNs = _start.NotBeforeNs,
                    CompleteFromNs = _start.CompleteFromNs,
                    Teller = stream,
                    ToldNs = each.AtNs,
                };
            }
        }
    }

    private void Take(StreamEvent each)
    {
        switch (each.Kind)
        {
            case StreamEventKind.Current:
                TakeCurrent(each);
                break;
            case StreamEventKind.CurrentEnd:
                EndState(each);
                break;
            case StreamEventKind.Progress when each.AsOfNs is { } asOf:
                RequireAllBefore(asOf);
                break;
            case StreamEventKind.Compacted or StreamEventKind.Epoch:
                Break(each);
                break;
            default:
                if (each.IsChange)
                {
                    TakeChange(each);
                }

                break;
        }
    }

    private void TakeCurrent(StreamEvent each)
    {
        if (!_isState && _mayTellState)
        {
            _keys.Clear();
            _isState = true;
        }

        if (!_isState)
        {
            Find("state", $"{each.Key} is current, and no state was to come");
        }

        RequireScope(each);
        if (!_keys.TryAdd(each.Key, new KeyState(each.Revision, IsExact: true)))
        {
            Find("duplicate", $"{each.Key} is twice in one state");
        }
    }

    /// <summary>The state is of a moment after the call: no write is missing that was acknowledged before.</summary>
    private void EndState(StreamEvent end)
    {
        if (!_isState)
        {
            Find("state", "a state ends that has not begun");
        }

        (_isState, _mayTellState) = (false, false);
        foreach (string key in changes.Keys.Where(stream.Covers))
        {
            WrittenChange? newest = changes.Known(key)
                .LastOrDefault(change => change.Operation.ReturnNs < stream.CallNs);
            if (newest is null)
            {
                continue;
            }

            if (_keys.TryGetValue(key, out KeyState current))
            {
                if (current.Revision < newest.Revision)
                {
                    Find("state", $"{key} is at {current.Revision}, before {Text(newest)}");
                }
            }
            else if (newest.Kind == StreamEventKind.Set
                && !changes.MayBeGone(key, newest, end.AtNs)
                && !told.IsRemovedAfter(key, newest.Revision))
            {
                Find("state", $"{key} is not in the state, which {Text(newest)} has set");
            }
        }

        _start = new StartPoint { NotBeforeNs = stream.CallNs, CompleteFromNs = end.AtNs };
    }

    /// <summary>
    /// Changes are missing, and the watch says so: what was called afterwards is not among them. In a new epoch there
    /// are no keys.
    /// </summary>
    private void Break(StreamEvent each)
    {
        _start = new StartPoint { CompleteFromNs = each.AtNs };
        _latestOfBuckets.Clear();
        _mayTellState = stream.From == WatchStream.State;
        foreach ((string key, KeyState state) in _keys.ToArray())
        {
            _keys[key] = each.Kind == StreamEventKind.Epoch ? default : state with { IsExact = false };
        }
    }

    private void TakeChange(StreamEvent each)
    {
        if (_isState)
        {
            Find("state", $"{each.Key} changes before the state is complete");
        }

        RequireScope(each);
        KeyState state = StateOf(each.Key);
        RequireNext(each, state);
        if (changes.At(each.Key, each.Revision) is { } written)
        {
            if (state.Revision is null && written.Operation.ReturnNs < _start.For(each.Key).NotBeforeNs)
            {
                Find("before the start", $"{Text(written)} was acknowledged before the watch was asked for");
            }

            RequireOrder(written);
        }

        _keys[each.Key] = new KeyState(each.Revision, IsExact: true);
    }

    private void RequireNext(StreamEvent each, KeyState state)
    {
        if (state.Revision == each.Revision)
        {
            Find("duplicate", $"{each.Key} at {each.Revision} was told twice, or was before the start");
        }
        else if (state.Revision > each.Revision)
        {
            Find("order", $"{each.Key} at {each.Revision} comes after {state.Revision}");
        }
        else if (state.IsExact && state.Revision + 1 != each.Revision)
        {
            Find("gap", $"{each.Key} at {each.Revision} follows {state.Revision}");
        }
        else if (!state.IsExact && Missing(each.Key, state, each.Revision, long.MaxValue) is { } missing)
        {
            Find("gap", $"{Text(missing)} was not told before {each.Revision}");
        }
    }

    /// <summary>In a bucket, and so in a partition, changes come in an order that writers could have seen.</summary>
    private void RequireOrder(WrittenChange written)
    {
        string bucket = WatchStream.BucketOf(written.Operation.Key);
        WrittenChange? latest = _latestOfBuckets.GetValueOrDefault(bucket);
        if (written.Operation.ReturnNs < latest?.Operation.CallNs)
        {
            Find("order", $"{Text(written)} was acknowledged before {Text(latest)} was called, and was told after it");
        }

        if (latest is null || latest.Operation.CallNs < written.Operation.CallNs)
        {
            _latestOfBuckets[bucket] = written;
        }
    }

    /// <summary>Nothing that was acknowledged before this time is still to come.</summary>
    private void RequireAllBefore(long asOfNs)
    {
        foreach (string key in changes.Keys.Where(stream.Covers))
        {
            if (Missing(key, StateOf(key), long.MaxValue, asOfNs) is { } missing && _reported.Add(key))
            {
                Find("not told", $"{Text(missing)} was acknowledged before {asOfNs}, of which a progress says all");
            }
        }
    }

    /// <summary>A write behind the start that was not told: above what was told last, and below another one.</summary>
    private WrittenChange? Missing(string key, KeyState state, long below, long acknowledgedBeforeNs)
    {
        long from = _start.For(key).CompleteFromNs;
        return changes.Known(key).FirstOrDefault(change =>
            change.Revision > (state.Revision ?? 0)
            && change.Revision < below
            && (acknowledgedBeforeNs == long.MaxValue || change.Operation.ReturnNs < acknowledgedBeforeNs)
            && (state.IsExact || change.Operation.CallNs > from));
    }

    private KeyState StateOf(string key)
    {
        if (_keys.TryGetValue(key, out KeyState state))
        {
            return state;
        }

        long? revision = _start.For(key).Revision;
        return new KeyState(revision, IsExact: revision is not null);
    }

    private void RequireScope(StreamEvent each)
    {
        if (!stream.Covers(each.Key))
        {
            Find("scope", $"{each.Key} is no key of this watch");
        }
    }

    private void Find(string rule, FormattableString sentence) =>
        Findings.Add(new WatchFinding(rule, sentence.ToString(CultureInfo.InvariantCulture), stream));

    private void Find(string rule, string sentence) => Findings.Add(new WatchFinding(rule, sentence, stream));

    private static string Text(WrittenChange? change) => change is null
        ? ""
        : string.Create(
            CultureInfo.InvariantCulture,
            $"{change.Operation.Key} at {change.Revision} (line {change.Operation.Line})");

    /// <summary>What was told of a key last.</summary>
    /// <param name="Revision">The revision; null: unknown.</param>
    /// <param name="IsExact">The next change of the key is the next revision.</param>
    private readonly record struct KeyState(long? Revision, bool IsExact);
}
