using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// How many other types of the product a type depends on, counted from the compiled code. A type with many has more
/// than one job.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class FanOutTests
{
    private const int DependenciesMax = 30;

    /// <summary>Puts the node together, so it knows nearly everything.</summary>
    private const string CompositionRoot = "Kahuna.Server.Hosting.KahunaNode";

    /// <summary>
    /// Types that have more, and how many. A number may go down, never up; a type with few enough leaves the list.
    /// </summary>
    private static readonly Dictionary<string, int> s_exceptions = new()
    {
        ["Kahuna.Server.Partitions.Groups.GroupBuilder"] = 45, // Puts a group together, as the root does with the node.
        ["Kahuna.Server.State.StateMachine"] = 36, // Puts the tables of a state together.
        ["Kahuna.Server.Storage.SegmentedLog"] = 34,
    };

    [Fact]
    public void No_type_depends_on_more_than_30_others_but_the_composition_root() =>
        Findings.AssertNone(Counts()
            .Where(type => type.Count > s_exceptions.GetValueOrDefault(type.Name, DependenciesMax))
            .Select(type => $"{type.Name}: {type.Count} types"));

    [Fact]
    public void Exceptions_are_still_needed_and_as_low_as_they_can_be()
    {
        Dictionary<string, int> counts = Counts().ToDictionary(type => type.Name, type => type.Count);
        Findings.AssertNone(s_exceptions
            .Where(exception =>
                counts.GetValueOrDefault(exception.Key) is var count
                    && (count < exception.Value || count <= DependenciesMax))
            .Select(exception =>
                $"{exception.Key}: {counts.GetValueOrDefault(exception.Key)} types, and the "
                    + $"list says {exception.Value}"));
    }

    private static IEnumerable<(string Name, int Count)> Counts() =>
        new[] { Product.Server, Product.Client, Product.Wire, Product.Benchmark }
            .SelectMany(Product.WrittenTypes)
            .Where(type => type.FullName != CompositionRoot)
            .Select(type => (type.FullName, DependenciesOf(type)));

    private static int DependenciesOf(TypeDefinition type) =>
        CodeReferences.Of(type)
            .Select(static reference => reference.Outermost)
            .Where(used => IsOfProduct(used) && used.FullName != type.FullName)
            .Select(static used => used.FullName)
            .Distinct()
            .Count();

    private static bool IsOfProduct(TypeReference type) =>
        type.Namespace.StartsWith("Kahuna.", StringComparison.Ordinal)
            && !type.Namespace.Contains(".Protos", StringComparison.Ordinal)
            && !type.Name.StartsWith('<');
}
