using Kahuna.Tests.Tidy.Samples.Knot.Front;

namespace Kahuna.Tests.Tidy.Samples.Knot.Street;

/// <summary>Positive control: uses the knot, which does not use it.</summary>
internal sealed class Passerby
{
    public Shop? LooksAt { get; init; }
}
