using System.Globalization;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.WatchStreams;

/// <summary>
/// What all watches of a history were told, by key and revision: one content each, which a write explains that was
/// called before. Used once, by one thread.
/// </summary>
internal sealed class ToldChanges
{
    private readonly Dictionary<(string Key, long Revision), (WatchStream Stream, StreamEvent Event)> _first = [];
    private readonly Dictionary<string, long> _removals = new(StringComparer.Ordinal);
    private readonly List<WatchFinding> _findings = [];
    private readonly CheckerOptions _options;

    public ToldChanges(IReadOnlyList<WatchStream> streams, CheckerOptions options)
    {
        _options = options;
        foreach (WatchStream stream in streams)
        {
            foreach (StreamEvent told in stream.Events)
            {
                if (told.IsChange || told.Kind == StreamEventKind.Current)
                {
                    Add(stream, told);
                }
            }
        }
    }

    /// <summary>Whether a watch was told that the key was removed after a revision.</summary>
    public bool IsRemovedAfter(string key, long revision) => _removals.GetValueOrDefault(key) > revision;

    /// <summary>What no write explains.</summary>
    public List<WatchFinding> Check(WrittenChanges changes)
    {
        foreach (IGrouping<string, (WatchStream Stream, StreamEvent Event)> ofKey in
            _first.Values.GroupBy(static each => each.Event.Key, StringComparer.Ordinal))
        {
            List<(WatchStream Stream, StreamEvent Event)> unexplained = [];
            foreach ((WatchStream stream, StreamEvent told) in ofKey)
            {
                if (changes.At(told.Key, told.Revision) is { } written)
                {
                    Compare(stream, told, written);
                }
                else if (told.Kind == StreamEventKind.Expired)
                {
                    CheckExpiry(stream, told, changes);
                }
                else if (told.Kind != StreamEventKind.Evicted)
                {
                    unexplained.Add((stream, told));
                }
            }

            Explain(ofKey.Key, unexplained, changes);
        }

        return _findings;
    }

    private void Add(WatchStream stream, StreamEvent told)
    {
        if (told.Kind is StreamEventKind.Deleted or StreamEventKind.Expired or StreamEventKind.Evicted)
        {
            _removals[told.Key] = Math.Max(told.Revision, _removals.GetValueOrDefault(told.Key));
        }

        if (!_first.TryGetValue((told.Key, told.Revision), out (WatchStream Stream, StreamEvent Event) before))
        {
            _first[(told.Key, told.Revision)] = (stream, told);
            return;
        }

        if (Content(told.Kind) != Content(before.Event.Kind)
            || (told.HasValue && before.Event.HasValue && told.Value != before.Event.Value))
        {
            Find("content", stream, $"{Text(told)} is {Text(before.Event)} for the watch of line {before.Stream.Line}");
        }

        if (told.AtNs < before.Event.AtNs)
        {
            _first[(told.Key, told.Revision)] = (stream, told);
        }
    }

    private void Compare(WatchStream stream, StreamEvent told, WrittenChange written)
    {
        if (!written.Fits(told))
        {
            Find("content", stream, $"{Text(told)} is not what line {written.Operation.Line} has written");
        }
        else if (written.Operation.CallNs > told.AtNs)
        {
            Find("future", stream, $"{Text(told)} was told before line {written.Operation.Line} was called");
        }
    }

    private void CheckExpiry(WatchStream stream, StreamEvent told, WrittenChanges changes)
    {
        if (changes.At(told.Key, told.Revision - 1) is not { } written || changes.IsExtended(told.Key))
        {
            return;
        }

        if (!written.HasTtl)
        {
            Find("expiry", stream, $"{Text(told)}, and line {written.Operation.Line} gave it no time to live");
            return;
        }

        TimeSpan life = TimeSpan.FromMilliseconds(written.Operation.Arguments.TtlMs!.Value) - _options.TtlSlack;
        if (told.AtNs < written.Operation.CallNs + (life.Ticks * TimeSpan.NanosecondsPerTick))
        {
            Find("expiry", stream, $"{Text(told)} before the time to live of line {written.Operation.Line} was over");
        }
    }

    /// <summary>Each of them needs a write of its own that may have happened at any revision.</summary>
    private void Explain(
        string key, List<(WatchStream Stream, StreamEvent Event)> unexplained, WrittenChanges changes)
    {
        WrittenChange[] candidates = [.. changes.Candidates(key)];
        int[] taken = [.. candidates.Select(static _ => -1)];
        for (int i = 0; i < unexplained.Count; i++)
        {
            if (TryExplain(i, new bool[candidates.Length]))
            {
                continue;
            }

            (WatchStream stream, StreamEvent told) = unexplained[i];
            if (changes.Failed(key).FirstOrDefault(write => write.Fits(told)) is { } failed)
            {
                Find("not committed", stream, $"{Text(told)} is of line {failed.Operation.Line}, which failed");
            }
            else
            {
                Find("never written", stream, $"no write of the history explains {Text(told)}");
            }
        }

        bool TryExplain(int at, bool[] isTried)
        {
            StreamEvent told = unexplained[at].Event;
            for (int i = 0; i < candidates.Length; i++)
            {
                bool fits = !isTried[i]
                    && candidates[i].Fits(told)
                    && candidates[i].Operation.CallNs <= told.AtNs;
                isTried[i] |= fits;
                if (fits && (taken[i] < 0 || TryExplain(taken[i], isTried)))
                {
                    taken[i] = at;
                    return true;
                }
            }

            return false;
        }
    }

    private static StreamEventKind Content(StreamEventKind kind) =>
        kind == StreamEventKind.Current ? StreamEventKind.Set : kind;

    private static string Text(StreamEvent told)
    {
        string value = told.HasValue ? $" to {told.Value ?? "null"}" : "";
        string kind = Content(told.Kind).ToString().ToLowerInvariant();
        return string.Create(CultureInfo.InvariantCulture, $"{told.Key} at {told.Revision}, {kind}{value}");
    }

    private void Find(string rule, WatchStream stream, FormattableString sentence) =>
        _findings.Add(new WatchFinding(rule, sentence.ToString(CultureInfo.InvariantCulture), stream));
}
