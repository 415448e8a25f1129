namespace Kahuna.Tests.Tidy;

/// <summary>
/// Tests that read the compiled assemblies: one at a time, because <see cref="Product"/> is not thread-safe.
/// </summary>
[CollectionDefinition(Name)]
public sealed class CompiledCodeCollection
{
    public const string Name = "Compiled code";
}
