using System.Diagnostics;
using System.Globalization;
using System.Security.Cryptography;
using System.Text.Json;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>
/// Writes a trace of the node, one JSON line per event (docs/simulation.md). Events come from its partitions and from
/// decorators of its log and its links (<see cref="Around(ILogStore)"/>, <see cref="Around(IPeerTransport)"/>). Owned
/// by the node; any thread.
/// </summary>
internal sealed class NodeTrace : IPartitionTrace, IDisposable
{
    private readonly Lock _gate = new();
    private readonly TraceFile _file;
    private readonly Utf8JsonWriter _json;
    private readonly NodeId _node;
    private readonly string _run = RandomNumberGenerator.GetHexString(8, lowercase: true);

    private NodeTrace(TraceFile file, NodeId node)
    {
        _file = file;
        _node = node;
        _json = new Utf8JsonWriter(file.Buffer, new JsonWriterOptions { SkipValidation = true });
    }

    /// <summary>The trace can no longer be written, so that later events would look wrong in it. Raised once.</summary>
    public event Action<Exception>? Failed
    {
        add => _file.Failed += value;
        remove => _file.Failed -= value;
    }

    /// <summary>Opens the trace of a node.</summary>
    /// <exception cref="IOException">The file cannot be written; the message is one line.</exception>
    public static NodeTrace Open(string path, NodeId node) => new(TraceFile.Open(path), node);

    /// <summary>True for the groups of persistent keys, which the trace covers.</summary>
    public static bool Follows(GroupId group) => !group.IsMeta && !group.IsEphemeral && group != GroupId.Node;

    public ILogStore Around(ILogStore log) => new TracedLog(log, this);

    public IPeerTransport Around(IPeerTransport links) => new TracedTransport(links, this, _node);

    /// <summary>Writes the first line of a run.</summary>
    public void Started(int voters, int groups, ulong directoryId)
    {
        lock (_gate)
        {
            Begin("start");
            _json.WriteNumber("voters", voters);
            _json.WriteNumber("groups", groups);
            WriteHex("directory", directoryId);
            _json.WriteString("version", ProductVersion.Text);
            End();
        }

        Flush();
    }

    // ---- Events of the partitions

    public void Recovered(GroupId group, in RecoveredGroup found, LogIndex commit)
    {
        lock (_gate)
        {
            Begin("recover", group);
            _json.WriteNumber("start", found.Start.Value);
            _json.WriteNumber("startTerm", found.StartTerm.Value);
            _json.WriteNumber("last", found.LastIndex.Value);
            _json.WriteStartArray("terms");
            foreach (TermRun run in found.Terms)
            {
                _json.WriteStartArray();
                _json.WriteNumberValue(run.First.Value);
                _json.WriteNumberValue(run.Term.Value);
                _json.WriteEndArray();
            }

            _json.WriteEndArray();
            _json.WriteNumber("term", found.HardState.Term.Value);
            _json.WriteNumber("vote", found.HardState.Vote.Value);
            _json.WriteNumber("commit", commit.Value);
            End();
        }
    }

    public void Replayed(GroupId group, LogIndex first, ReadOnlySpan<byte> entries)
    {
        lock (_gate)
        {
            Begin("replay", group);
            WriteEntries(first, entries);
            End();
        }
    }

    public void StateLoaded(GroupId group, LogIndex index, Term term, ulong digest)
    {
        lock (_gate)
        {
            Begin("state", group);
            _json.WriteNumber("index", index.Value);
            _json.WriteNumber("term", term.Value);
            WriteHex("digest", digest);
            End();
        }
    }

    public void BecameLeader(GroupId group, Term term, LogIndex last, LogIndex commit)
    {
        lock (_gate)
        {
            Begin("becomeLeader", group);
            _json.WriteNumber("term", term.Value);
            _json.WriteNumber("last", last.Value);
            _json.WriteNumber("commit", commit.Value);
            End();
        }
    }

    public void Committed(GroupId group, LogIndex index, Term term) => WriteEntry("commit", group, index, term);

    public void Applied(GroupId group, LogIndex first, ReadOnlySpan<ulong> digests)
    {
        lock (_gate)
        {
            Begin("apply", group);
            _json.WriteNumber("first", first.Value);
            _json.WriteStartArray("digests");
            foreach (ulong digest in digests)
            {
                WriteHex(digest);
            }

            _json.WriteEndArray();
            End();
        }
    }

    public void Acknowledged(GroupId group, LogIndex index, Term term, int writes)
    {
        lock (_gate)
        {
            Begin("acknowledged", group);
            _json.WriteNumber("index", index.Value);
            _json.WriteNumber("term", term.Value);
            _json.WriteNumber("writes", writes);
            End();
        }
    }

    public void Flush()
    {
        lock (_gate)
        {
            _file.Flush();
        }
    }

    // ---- Events of the log

    /// <summary>Entries were appended with this batch; the log drops what it had from the first of them on.</summary>
    public void Appended(GroupId group, ulong batch, LogIndex first, ReadOnlySpan<byte> entries)
    {
        lock (_gate)
        {
            Begin("append", group);
            _json.WriteNumber("batch", batch);
            WriteEntries(first, entries);
            End();
        }
    }

    /// <summary>With this batch the log starts over after an entry.</summary>
    public void LogRestarted(GroupId group, ulong batch, LogIndex index, Term term)
    {
        lock (_gate)
        {
            Begin("restart", group);
            _json.WriteNumber("batch", batch);
            _json.WriteNumber("index", index.Value);
            _json.WriteNumber("term", term.Value);
            End();
        }
    }

    /// <summary>A batch is on stable storage, and with it this tail of the group.</summary>
    public void Persisted(ulong batch, in GroupTail tail)
    {
        lock (_gate)
        {
            Begin("persisted", tail.Group);
            _json.WriteNumber("batch", batch);
            _json.WriteNumber("index", tail.Last.Value);
            _json.WriteNumber("indexTerm", tail.LastTerm.Value);
            _json.WriteNumber("term", tail.HardState.Term.Value);
            _json.WriteNumber("vote", tail.HardState.Vote.Value);
            End();
        }
    }

    // ---- Events of the links

    /// <summary>This node sends a vote: for itself when it requests votes, or for another node.</summary>
    public void Voted(GroupId group, Term term, NodeId candidate)
    {
        lock (_gate)
        {
            Begin("vote", group);
            _json.WriteNumber("term", term.Value);
            _json.WriteNumber("candidate", candidate.Value);
            End();
        }
    }

    /// <summary>Writes the buffered lines. Later lines, from threads that still run, are dropped.</summary>
    public void Dispose()
    {
        Flush();
        lock (_gate)
        {
            _file.Dispose();
        }
    }

    // ---- Lines

    private void WriteEntry(string name, GroupId group, LogIndex index, Term term)
    {
        lock (_gate)
        {
            Begin(name, group);
            _json.WriteNumber("index", index.Value);
            _json.WriteNumber("term", term.Value);
            End();
        }
    }

    private void Begin(string name)
    {
        _json.WriteStartObject();
        _json.WriteNumber("t", (long)((Int128)Stopwatch.GetTimestamp() * 1_000_000_000 / Stopwatch.Frequency));
        _json.WriteNumber("node", _node.Value);
        _json.WriteString("run", _run);
        _json.WriteString("event", name);
    }

    private void Begin(string name, GroupId group)
    {
        Begin(name);
        _json.WriteNumber("group", group.Value);
    }

    private void End()
    {
        _json.WriteEndObject();
        _json.Flush();
        _json.Reset();
        _file.EndLine();
    }

    private void WriteEntries(LogIndex first, ReadOnlySpan<byte> entries)
    {
        _json.WriteNumber("first", first.Value);
        _json.WriteStartArray("entries");
        while (EntryCodec.TryRead(ref entries, out Term term, out EntryKind kind, out ReadOnlySpan<byte> payload))
        {
            _json.WriteStartArray();
            _json.WriteNumberValue(term.Value);
            WriteHex(XxHash64.Hash(payload, (byte)kind));
            _json.WriteEndArray();
        }

        _json.WriteEndArray();
    }

    private void WriteHex(string name, ulong value)
    {
        _json.WritePropertyName(name);
        WriteHex(value);
    }

    private void WriteHex(ulong value)
    {
        Span<byte> hex = stackalloc byte[16];
        value.TryFormat(hex, out _, "x16", CultureInfo.InvariantCulture);
        _json.WriteStringValue(hex);
    }
}
