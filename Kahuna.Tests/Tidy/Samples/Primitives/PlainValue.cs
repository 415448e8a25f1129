namespace Kahuna.Tests.Tidy.Samples.Primitives;

/// <summary>
/// Positive control: iterators, records and exceptions are pure, although the compiler writes much of them.
/// </summary>
internal sealed record PlainValue(int Number, string Name)
{
    public IEnumerable<int> CountDown()
    {
        for (int i = Number; i > 0; i--)
        {
            yield return i;
        }
    }

    public int Checked() => Number > 0 ? Number : throw new InvalidDataException(Name);
}
