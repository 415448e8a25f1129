using System.Text.Json;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.WatchStreams;

/// <summary>Reads the lines of a history that are watches (docs/histories.md). Stateless; any thread.</summary>
internal static class WatchHistoryReader
{
    private static readonly (string Name, WatchScopeKind Scope)[] s_scopes =
        [("key", WatchScopeKind.Key), ("bucket", WatchScopeKind.Bucket), ("prefix", WatchScopeKind.Prefix)];

    private static readonly (string Name, StreamEventKind Kind)[] s_kinds =
    [
        ("current", StreamEventKind.Current), ("currentEnd", StreamEventKind.CurrentEnd),
        ("set", StreamEventKind.Set), ("deleted", StreamEventKind.Deleted), ("expired", StreamEventKind.Expired),
        ("evicted", StreamEventKind.Evicted), ("progress", StreamEventKind.Progress),
        ("lagging", StreamEventKind.Lagging), ("compacted", StreamEventKind.Compacted),
        ("epoch", StreamEventKind.Epoch),
    ];

    /// <summary>The line is a watch.</summary>
    public static bool IsOne(JsonElement line) =>
        line.ValueKind == JsonValueKind.Object
        && line.TryGetProperty("op", out JsonElement op)
        && op.ValueKind == JsonValueKind.String
        && op.ValueEquals("watch");

    /// <summary>The word for a scope.</summary>
    public static string NameOf(WatchScopeKind scope) => s_scopes.First(each => each.Scope == scope).Name;

    /// <summary>The word for an event.</summary>
    public static string NameOf(StreamEventKind kind) => s_kinds.First(each => each.Kind == kind).Name;

    /// <exception cref="HistoryException">The line is malformed.</exception>
    public static WatchStream Read(JsonElement element, int number)
    {
        HistoryObject line = new(element, "", number);
        line.Require("process", line.Integer("process"));
        line.Text("op");
        HistoryObject args = line.Object("args");
        HistoryObject result = line.Object("result");
        WatchStream stream = new()
        {
            Name = line.Require("key", line.Text("key")),
            Scope = Word(args, "scope", s_scopes),
            From = args.Require("from", args.Text("from")),
            CallNs = line.Require("call", line.Integer("call")),
            Events = result.IsLeftOut ? [] : [.. ReadEvents(result.Items("events"), number)],
            Line = number,
        };
        Check(stream, line.Integer("return"), line.Require("outcome", line.Text("outcome")));
        args.RequireNothingElse();
        result.RequireNothingElse();
        line.RequireNothingElse();
        return stream;
    }

    private static IEnumerable<StreamEvent> ReadEvents(IEnumerable<JsonElement> events, int number)
    {
        int count = 0;
        foreach (JsonElement element in events)
        {
            HistoryObject fields = new(element, $"result.events[{count++}]", number);
            StreamEvent read = ReadEvent(fields);
            fields.RequireNothingElse();
            yield return read;
        }
    }

    private static StreamEvent ReadEvent(HistoryObject fields)
    {
        StreamEvent read = new()
        {
            Kind = Word(fields, "kind", s_kinds),
            AtNs = fields.Require("at", fields.Integer("at")),
            Position = fields.Text("position"),
        };
        if (read.IsChange || read.Kind == StreamEventKind.Current)
        {
            bool hasValue = (read.Kind is StreamEventKind.Set or StreamEventKind.Current) && fields.Has("value");
            read = read with
            {
                Key = fields.Require("key", fields.Text("key")),
                Revision = fields.Require("revision", fields.Integer("revision")),
                HasValue = hasValue,
                Value = hasValue ? fields.Text("value") : null,
            };
        }

        return read.Kind == StreamEventKind.Progress ? read with { AsOfNs = fields.Integer("asOf") } : read;
    }

    private static void Check(WatchStream stream, long? returnNs, string outcome)
    {
        if (outcome is not "ok" and not "unknown")
        {
            throw new HistoryException(stream.Line, "the outcome of a watch must be ok or unknown");
        }

        long before = stream.CallNs;
        foreach (StreamEvent told in stream.Events)
        {
            if (told.AtNs < before)
            {
                throw new HistoryException(stream.Line, "an event is before the call, or before the event before it");
            }

            if (told.AsOfNs > told.AtNs)
            {
                throw new HistoryException(stream.Line, "asOf is after at");
            }

            before = told.AtNs;
        }

        if (returnNs < before)
        {
            throw new HistoryException(stream.Line, "return is before call, or before the last event");
        }
    }

    private static TWord Word<TWord>(HistoryObject fields, string name, (string Name, TWord Word)[] words)
    {
        string found = fields.Require(name, fields.Text(name));
        foreach ((string word, TWord meaning) in words)
        {
            if (word == found)
            {
                return meaning;
            }
        }

        throw fields.Unknown(name, found, string.Join(", ", words.Select(static each => each.Name)));
    }
}
