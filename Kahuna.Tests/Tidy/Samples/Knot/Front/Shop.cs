using Kahuna.Tests.Tidy.Samples.Knot.Back;

namespace Kahuna.Tests.Tidy.Samples.Knot.Front;

/// <summary>Negative control: holds what is built of it.</summary>
internal sealed class Shop
{
    public Store? Store { get; init; }
}
