using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Numbers for the values of one key, so that states are small and compare fast. Owned by one search.
/// </summary>
internal sealed class ValueTable
{
    /// <summary>No key, so no value.</summary>
    public const int Absent = -1;

    private readonly Dictionary<string, int> _byText = new(StringComparer.Ordinal);
    private readonly Dictionary<long, int> _byInteger = [];
    private readonly List<long?> _integers = [];
    private int? _null;

    public int Count => _integers.Count;

    /// <summary>
    /// True for an integer as an increment reads it: decimal, in the shortest form, 64 bits. The null value is none.
    /// </summary>
    public static bool IsInteger(string? text, out long integer)
    {
        integer = 0;
        return text is not null
            && long.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out integer)
            && integer.ToString(CultureInfo.InvariantCulture) == text;
    }

    public int NumberOf(string? text)
    {
        if (text is null)
        {
            return _null ??= Add(null);
        }

        if (IsInteger(text, out long integer))
        {
            return NumberOf(integer);
        }

        if (!_byText.TryGetValue(text, out int number))
        {
            number = Add(null);
            _byText.Add(text, number);
        }

        return number;
    }

    public int NumberOf(long integer)
    {
        if (!_byInteger.TryGetValue(integer, out int number))
        {
            number = Add(integer);
            _byInteger.Add(integer, number);
        }

        return number;
    }

    /// <summary>A value that equals no other and is no integer.</summary>
    public int AddAnonymous() => Add(null);

    public bool IsInteger(int number, out long integer)
    {
        integer = _integers[number] ?? 0;
        return _integers[number] is not null;
    }

    private int Add(long? integer)
    {
        _integers.Add(integer);
        return _integers.Count - 1;
    }
}
