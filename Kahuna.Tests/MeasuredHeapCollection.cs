namespace Kahuna.Tests;

/// <summary>
/// Tests that ask the garbage collector how much is alive: not beside other tests, whose memory would be counted.
/// </summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class MeasuredHeapCollection
{
    public const string Name = "Measured heap";
}
