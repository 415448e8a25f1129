namespace Kahuna.Tests.Client;

/// <summary>Tests that block every thread of the pool, and so run alone.</summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class StarvedPoolCollection
{
    public const string Name = "starved pool";
}
