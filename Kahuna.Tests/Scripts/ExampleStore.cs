using System.Text;
using Kahuna.Server.State.KeyValues;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Tests.Scripts;

/// <summary>
/// Runs scripts as a partition does, against keys in memory: of one bucket and one durability each, on a clock that the
/// test sets. Those that scan by prefix run as a transaction does, on any keys. Not thread-safe.
/// </summary>
internal sealed class ExampleStore
{
    private readonly SortedDictionary<string, Row> _persistent = new(StringComparer.Ordinal);
    private readonly SortedDictionary<string, Row> _ephemeral = new(StringComparer.Ordinal);

    /// <summary>The cluster's time in milliseconds.</summary>
    public long NowMs { get; set; } = 1_000_000;

    /// <summary>The persistent keys that exist.</summary>
    public IEnumerable<string> Keys => _persistent.Where(pair => IsLive(pair.Value)).Select(pair => pair.Key);

    /// <summary>The value of a persistent key, as text; null when it does not exist.</summary>
    public string? this[string key]
    {
        get => _persistent.TryGetValue(key, out Row? row) && IsLive(row)
            ? Encoding.UTF8.GetString(row.Value!.Value.Span)
            : null;
        set => _persistent[key] = new Row(Encoding.UTF8.GetBytes(value!), 1, long.MaxValue);
    }

    /// <summary>
    /// Runs a script to its end and carries out its writes. Throws <see cref="InvalidOperationException"/> with the
    /// script's message, without a change, when it fails.
    /// </summary>
    public ScriptValue Run(string text, params ScriptParameter[] parameters)
    {
        ScriptProgram program = ScriptProgram.Parse(text);
        string? refusal = ScriptTarget.Find(program, parameters, null, out string target, out Durability durability);
        bool isWide = program.ScansPrefixes;
        if (refusal is not null && !isWide)
        {
            throw new InvalidOperationException(refusal);
        }

        ScriptRun run = new(ScriptCode.Compile(program), parameters, NowMs, ScriptRunner.Budget);
        ScriptStop stop;
        while ((stop = run.Advance()) is not (ScriptStop.Finished or ScriptStop.Failed))
        {
            if (!isWide)
            {
                RequireInside(run.Key, run.IsEphemeral, stop == ScriptStop.NeedsBucket, target, durability);
            }

            Supply(run, stop);
        }

        if (stop != ScriptStop.Finished)
        {
            throw new InvalidOperationException(run.Error.Message);
        }

        foreach (ScriptWrite write in isWide ? [] : run.Writes)
        {
            RequireInside(write.Key, write.IsEphemeral, isBucket: false, target, durability);
        }

        foreach (ScriptWrite write in run.Writes)
        {
            Apply(in write);
        }

        return run.Result;
    }

    /// <summary>A key that a script asks for lies where the script runs.</summary>
    private static void RequireInside(
        ReadOnlyMemory<byte> key, bool isEphemeral, bool isBucket, string target, Durability durability)
    {
        string name = Encoding.UTF8.GetString(key.Span);
        if (isEphemeral != (durability == Durability.Ephemeral)
            || !ScriptTarget.IsOfBucket(key.Span, isBucket, Encoding.UTF8.GetBytes(target)))
        {
            throw new InvalidOperationException($"\"{name}\" is not in the bucket of \"{target}\"");
        }
    }

    private void Supply(ScriptRun run, ScriptStop stop)
    {
        SortedDictionary<string, Row> rows = Of(run.IsEphemeral);
        string name = Encoding.UTF8.GetString(run.Key.Span);
        if (stop != ScriptStop.NeedsKey)
        {
            byte[] inside = Encoding.UTF8.GetBytes(name + "/");
            run.SupplyEntries(
                [
                    .. rows.Where(pair => IsLive(pair.Value)
                        && (stop == ScriptStop.NeedsPrefix
                            ? pair.Key.StartsWith(name, StringComparison.Ordinal)
                            : ScriptTarget.IsOfBucket(Encoding.UTF8.GetBytes(pair.Key), isBucket: false, inside)))
                        .Select(pair => ToEntry(pair.Key, pair.Value)),
                ],
                isWhole: true);
            return;
        }

        run.Supply(rows.TryGetValue(name, out Row? row) && IsLive(row) ? ToEntry(name, row) : null);
    }

    private void Apply(in ScriptWrite write)
    {
        SortedDictionary<string, Row> rows = Of(write.IsEphemeral);
        string key = Encoding.UTF8.GetString(write.Key.Span);
        long expiresAt = write.TtlMs > 0 ? NowMs + write.TtlMs : long.MaxValue;
        switch (write.Kind)
        {
            case ScriptWriteKind.Set:
                long revision = rows.TryGetValue(key, out Row? before) ? before.Revision + 1 : 1;
                rows[key] = new Row(write.Value, revision, expiresAt);
                break;
            case ScriptWriteKind.Extend:
                rows[key] = rows[key] with { ExpiresAt = expiresAt };
                break;
            default:
                rows.Remove(key);
                break;
        }
    }

    private SortedDictionary<string, Row> Of(bool isEphemeral) => isEphemeral ? _ephemeral : _persistent;

    private bool IsLive(Row row) => NowMs < row.ExpiresAt;

    private ScriptValue ToEntry(string key, Row row) => ScriptValue.OfEntry(
        key, row.Value, row.Revision, row.ExpiresAt == long.MaxValue ? -1 : row.ExpiresAt - NowMs);

    private sealed record Row(ReadOnlyMemory<byte>? Value, long Revision, long ExpiresAt);
}
