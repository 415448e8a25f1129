using Kahuna.Tests.Tidy.Samples.Knot.Front;

namespace Kahuna.Tests.Tidy.Samples.Knot.Back;

/// <summary>Negative control: names its owner, only in the body of a lambda.</summary>
internal sealed class Store
{
    public static Func<object, bool> IsShop { get; } = static value => value is Shop;
}
