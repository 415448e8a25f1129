namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// The random numbers of one request. Every request takes two, whatever it becomes, so that the streams of all
/// workloads stay aligned. Immutable.
/// </summary>
/// <param name="Choice">Chooses key and kind.</param>
/// <param name="Bits">Choose the payload.</param>
internal readonly record struct Draw(ulong Choice, ulong Bits)
{
    /// <summary>
    /// A number from 0 to 99, from the lower half of <see cref="Choice"/>: the key uses the upper half.
    /// </summary>
    public int Percent => (int)((Choice & uint.MaxValue) * 100 >> 32);

    public static Draw From(ref SplitMix random)
    {
        ulong choice = random.Next();
        return new Draw(choice, random.Next());
    }
}
