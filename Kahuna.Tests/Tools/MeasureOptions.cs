namespace Kahuna.Tests.Tools;

/// <summary>The options of a measuring program; its script has checked the values. Immutable.</summary>
internal sealed class MeasureOptions
{
    private readonly Dictionary<string, string> _values;

    private MeasureOptions(Dictionary<string, string> values) => _values = values;

    /// <summary>Reads pairs of a name and a value. Null when there is an option without a default.</summary>
    /// <param name="defaults">All options, such as <c>--rounds=3 --output=</c>.</param>
    /// <param name="arguments">Names and values in turn.</param>
    public static MeasureOptions? Read(string defaults, IReadOnlyList<string> arguments)
    {
        Dictionary<string, string> values = defaults.Split(' ', StringSplitOptions.RemoveEmptyEntries)
            .Select(static option => option.Split('=')).ToDictionary(
                static pair => pair[0][2..], static pair => pair[1], StringComparer.Ordinal);
        for (int i = 0; i < arguments.Count; i += 2)
        {
            string name = arguments[i].TrimStart('-');
            if (!values.ContainsKey(name) || i + 1 == arguments.Count)
            {
                return null;
            }

            values[name] = arguments[i + 1];
        }

        return new MeasureOptions(values);
    }

    public string Text(string name) => _values[name];

    public int Number(string name) => int.Parse(_values[name]);

    public string[] List(string name) => _values[name].Split(',');

    public int[] Numbers(string name) => [.. List(name).Select(int.Parse)];
}
