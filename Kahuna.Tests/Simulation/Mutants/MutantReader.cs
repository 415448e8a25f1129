namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>Parses the file of a planted bug. Used by one thread, for one file.</summary>
/// <remarks>
/// <code>
/// # What is wrong, and why that is dangerous.
/// # needs: what must happen in a run for it to show
/// in: Type.Member
/// replace: source text
/// with: source text
/// </code>
/// An edit is one of <c>replace:</c> with <c>with:</c>, <c>after:</c> with <c>insert:</c>, <c>before:</c> with
/// <c>insert:</c>, <c>remove:</c>, and <c>add:</c>, which adds members to a type. <c>in:</c> holds until the next one.
/// A value goes on over the lines that begin with a blank. Empty lines do not count.
/// </remarks>
internal sealed class MutantReader
{
    private readonly string _name;
    private readonly List<MutantEdit> _edits = [];
    private string? _scope;

    // The first half of an edit that needs a second line.
    private (int Line, string Key, string Anchor)? _open;

    private MutantReader(string name) => _name = name;

    /// <exception cref="FormatException">The lines do not follow the grammar; the message says where.</exception>
    public static Mutant Read(string name, IReadOnlyList<string> lines)
    {
        string[] comments =
            [.. lines.TakeWhile(static line => line.StartsWith('#')).Select(static line => line[1..].Trim())];
        string[] head = string.Join(' ', comments).Split(" needs: ");
        MutantReader reader = new(name);
        if (head.Length != 2)
        {
            throw reader.Error(
                1, "must begin with \"# what is wrong\" and \"# needs: what must happen for it to show\"");
        }

        for (int i = comments.Length; i < lines.Count;)
        {
            i = reader.Take(lines, i);
        }

        if (reader._open is { } open)
        {
            throw reader.Error(open.Line, $"\"{open.Key}:\" lacks its \"{SecondOf(open.Key)}:\"");
        }

        return reader._edits.Count > 0
            ? new Mutant(name, head[0], head[1], reader._edits)
            : throw reader.Error(lines.Count, "has no edit");
    }

    /// <summary>Takes one key and its value, and returns the line behind them.</summary>
    private int Take(IReadOnlyList<string> lines, int at)
    {
        if (lines[at].Length == 0)
        {
            return at + 1;
        }

        int colon = lines[at].IndexOf(':', StringComparison.Ordinal);
        string key = colon > 0 ? lines[at][..colon] : lines[at];
        List<string> value = colon > 0 ? [lines[at][(colon + 1)..].Trim()] : [];
        int end = at + 1;
        for (; end < lines.Count && (lines[end].Length == 0 || lines[end][0] == ' '); end++)
        {
            value.Add(lines[end]);
        }

        Take(at + 1, key, string.Join('\n', value).Trim());
        return end;
    }

    private void Take(int line, string key, string value)
    {
        if (_open is { } open)
        {
            MutantEditKind kind = open.Key switch
            {
                "after" => MutantEditKind.After,
                "before" => MutantEditKind.Before,
                _ => MutantEditKind.Replace,
            };
            _edits.Add(key == SecondOf(open.Key)
                ? new MutantEdit(open.Line, _scope!, kind, open.Anchor, value)
                : throw Error(line, $"\"{open.Key}:\" must be followed by \"{SecondOf(open.Key)}:\""));
            _open = null;
            return;
        }

        if (value.Length == 0)
        {
            throw Error(
                line,
                $"\"{key}\" is no key with a value; keys are in, replace, with, after, before, insert, remove, add");
        }

        if (key != "in" && _scope is null)
        {
            throw Error(line, "the first edit needs \"in: Type.Member\" before it");
        }

        switch (key)
        {
            case "in":
                _scope = value;
                break;
            case "replace" or "after" or "before":
                _open = (line, key, value);
                break;
            case "remove":
                _edits.Add(new MutantEdit(line, _scope!, MutantEditKind.Replace, value, ""));
                break;
            case "add":
                _edits.Add(new MutantEdit(line, _scope!, MutantEditKind.Add, "", value));
                break;
            default:
                throw Error(
                    line, $"unknown key \"{key}\"; keys are in, replace, with, after, before, insert, remove, add");
        }
    }

    private static string SecondOf(string key) => key == "replace" ? "with" : "insert";

    private FormatException Error(int line, string what) =>
        new($"{MutantFolder.Path}{_name}{MutantFolder.Extension}:{line}: {what}");
}
