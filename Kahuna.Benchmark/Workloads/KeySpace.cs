using System.Globalization;

namespace Kahuna.Benchmark.Workloads;

/// <summary>The keys <c>bench:{n}</c>. Immutable; any thread.</summary>
internal sealed class KeySpace
{
    /// <summary>Keys that are rendered beforehand (about 45 bytes each); those of a larger key space are rendered when they are used.</summary>
    private const int RenderedMax = 1_000_000;

    private readonly string[] _rendered;

    public KeySpace(int count)
    {
        Count = count;
        _rendered = new string[Math.Min(count, RenderedMax)];
        for (int i = 0; i < _rendered.Length; i++)
        {
            _rendered[i] = Render(i);
        }
    }

    public int Count { get; }

    public string this[int number] => number < _rendered.Length ? _rendered[number] : Render(number);

    private static string Render(int number) => string.Create(CultureInfo.InvariantCulture, $"bench:{number}");
}
