using Kahuna.Wire.Commands;

namespace Kahuna.Server.Access;

/// <summary>The names of a request: one, a range of them, or all with a prefix. A view.</summary>
internal readonly ref struct AskedNames
{
    private readonly ReadOnlySpan<byte> _end;
    private readonly Form _form;

    private AskedNames(Form form, ReadOnlySpan<byte> start, ReadOnlySpan<byte> end = default)
    {
        Start = start;
        _end = end;
        _form = form;
    }

    private enum Form
    {
        Name,
        Range,
        RangeWithoutEnd,
        Prefix,
    }

    /// <summary>The first of them; what they begin with.</summary>
    public ReadOnlySpan<byte> Start { get; }

    /// <summary>This one.</summary>
    public static AskedNames Name(ReadOnlySpan<byte> name) => new(Form.Name, name);

    /// <summary>
    /// Those from the start up to, not including, the end. An empty range is asked for as the name of its start.
    /// </summary>
    public static AskedNames Range(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end, bool hasEnd) =>
        new(hasEnd ? Form.Range : Form.RangeWithoutEnd, start, end);

    /// <summary>All names with this prefix.</summary>
    public static AskedNames Prefix(ReadOnlySpan<byte> prefix) => new(Form.Prefix, prefix);

    /// <summary>The last of them lies before the end of an interval that begins at or before the first.</summary>
    /// <param name="end">The first name behind the interval; null: there is none.</param>
    public bool EndIn(byte[]? end)
    {
        if (end is null)
        {
            return true;
        }

        // An end behind the prefix is behind all names with the prefix too, unless it has the prefix itself.
        return Start.SequenceCompareTo(end) < 0 && _form switch
        {
            Form.Name => true,
            Form.Range => _end.SequenceCompareTo(end) <= 0,
            Form.Prefix => !end.AsSpan().StartsWith(Start),
            _ => false,
        };
    }

    /// <summary>Says in words which names they are.</summary>
    /// <param name="noun">What they name, with its durability, such as <c>persistent key</c>.</param>
    public string Describe(string noun)
    {
        if (_form == Form.Name)
        {
            return $"the {noun} {QuotedName.Of(Start)}";
        }

        bool isPrefix = _form == Form.Prefix
            || (_form == Form.Range && _end.SequenceEqual(KeyRange.Of(Start.ToArray(), null, null).End));
        return isPrefix && !Start.IsEmpty ? $"the {noun}s that begin with {QuotedName.Of(Start)}"
            : _form == Form.Range ? $"the {noun}s from {QuotedName.Of(Start)} up to {QuotedName.Of(_end)}"
            : !Start.IsEmpty ? $"the {noun}s from {QuotedName.Of(Start)} on"
            : $"all {noun}s";
    }
}
