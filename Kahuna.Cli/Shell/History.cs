using System.Text;
using Kahuna.Cli.Connecting;

namespace Kahuna.Cli.Shell;

/// <summary>
/// The lines that were entered: the newest 1,000, in a file that only its owner may read. Shells that run at the same
/// time add to it in turn. A file that cannot be used costs the history, not the shell. Used by one shell.
/// </summary>
internal sealed class History
{
    /// <summary>Lines that are kept.</summary>
    public const int Most = 1000;

    /// <summary>A longer line is kept in memory alone: it is a value rather than a command.</summary>
    private const int LengthMax = 4096;

    /// <summary>Twice what the kept lines have at most, in UTF-8; a larger file is not this one.</summary>
    private const int BytesMax = 2 * Most * LengthMax * 3;

    private readonly List<string> _lines = [];
    private string? _path;

    private History(string? path) => _path = path;

    /// <summary>The lines, oldest first.</summary>
    public IReadOnlyList<string> Lines => _lines;

    /// <summary>Why nothing is saved; null: lines are saved, or were never meant to be.</summary>
    public string? Problem { get; private set; }

    /// <summary>A history without a file.</summary>
    public static History InMemory() => new(null);

    /// <summary>Reads the file, cuts it to the newest lines, and makes it its owner's.</summary>
    public static History Open(string path)
    {
        History history = new(path);
        history.Try(() =>
        {
            FileInfo file = new(path);
            if (file is { Exists: true, Length: > BytesMax })
            {
                throw new IOException("it is too large; remove it");
            }

            string[] saved = file.Exists ? File.ReadAllLines(path) : [];
            history._lines.AddRange(saved.Where(static line => line.Length is > 0 and <= LengthMax).TakeLast(Most));
            PrivateFile.Replace(path, Encoding.UTF8.GetBytes(string.Concat(history._lines.Select(WithEnd))));
        });
        return history;
    }

    /// <summary>Adds a line, unless it is the same as the one before.</summary>
    /// <param name="line">The line, without its end.</param>
    /// <param name="isSaved">The file gets it; false for one that has, or may have, a secret in it.</param>
    public void Add(string line, bool isSaved)
    {
        if (_lines.Count > 0 && _lines[^1] == line)
        {
            return;
        }

        _lines.Add(line);
        if (_lines.Count > Most)
        {
            _lines.RemoveAt(0);
        }

        if (isSaved && _path is { } path && line.Length <= LengthMax && !line.AsSpan().ContainsAny('\n', '\r'))
        {
            Try(() => PrivateFile.Append(path, Encoding.UTF8.GetBytes(WithEnd(line))));
        }
    }

    /// <summary>The newest line that has a text in it; null: none has.</summary>
    /// <param name="text">The text; none has the empty one.</param>
    /// <param name="skip">How many newer ones are passed over.</param>
    public string? Find(string text, int skip) => text.Length == 0
        ? null
        : _lines.AsEnumerable().Reverse().Distinct()
            .Where(line => line.Contains(text, StringComparison.Ordinal)).Skip(skip).FirstOrDefault();

    private static string WithEnd(string line) => line + "\n";

    private void Try(Action act)
    {
        try
        {
            act();
        }
        catch (Exception failure) when (
            failure is IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
        {
            Problem = $"The history '{_path}' cannot be used: {failure.Message}";
            _path = null;
        }
    }
}
