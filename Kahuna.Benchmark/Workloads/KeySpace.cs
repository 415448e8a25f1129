using System.Globalization;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// The keys <c>bench:{n}</c>, or <c>bench:{n modulo buckets}/{n}</c> when they are to share buckets.
/// Immutable; any thread.
/// </summary>
internal sealed class KeySpace
{
    /// <summary>
    /// Keys that are rendered beforehand; those of a larger key space are rendered when they are used, which costs less
    /// than fetching one of a million from memory.
    /// </summary>
    private const int RenderedMax = 1 << 14;

    private readonly string[] _rendered;
    private readonly int _buckets;

    /// <param name="count">Number of keys.</param>
    /// <param name="buckets">Buckets over which they are spread; 0: each in a bucket of its own.</param>
    public KeySpace(int count, int buckets = 0)
    {
        Count = count;
        _buckets = buckets;
        _rendered = new string[count <= RenderedMax ? count : 0];
        for (int i = 0; i < _rendered.Length; i++)
        {
            _rendered[i] = Render(i);
        }
    }

    public int Count { get; }

    public string this[int number] => number < _rendered.Length ? _rendered[number] : Render(number);

    /// <summary>The key that <paramref name="draw"/> chooses.</summary>
    public string Choose(Draw draw) => this[SplitMix.Below(draw.Choice, Count)];

    private string Render(int number) => _buckets == 0
        ? string.Create(CultureInfo.InvariantCulture, $"bench:{number}")
        : string.Create(CultureInfo.InvariantCulture, $"bench:{number % _buckets}/{number}");
}
