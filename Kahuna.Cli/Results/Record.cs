using System.Collections;

namespace Kahuna.Cli.Results;

/// <summary>
/// One result: named fields in order. Names are those of the JSON form; the table makes its headings of them. Values
/// are null, texts, numbers, truth values, <see cref="TimeSpan"/>, <see cref="DateTimeOffset"/>,
/// <see cref="KahunaValue"/>, lists of texts, records and lists of records. Not thread-safe.
/// </summary>
internal sealed class Record : IEnumerable<KeyValuePair<string, object?>>
{
    private readonly List<KeyValuePair<string, object?>> _fields = [];

    /// <summary>Adds a field.</summary>
    public void Add(string name, object? value) => _fields.Add(new(name, value));

    /// <inheritdoc/>
    public IEnumerator<KeyValuePair<string, object?>> GetEnumerator() => _fields.GetEnumerator();

    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();
}
