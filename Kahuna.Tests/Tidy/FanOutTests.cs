using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// How many other types of the product a type depends on, counted from the compiled code. A type with many has more
/// than one job. Units (a struct around one number, such as a log index or a time) do not count: each takes the place
/// of a bare number.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class FanOutTests
{
    private const int DependenciesMax = 30;

    /// <summary>Puts the node together, so it knows nearly everything.</summary>
    private const string CompositionRoot = "Kahuna.Server.Hosting.KahunaNode";

    [Fact]
    public void No_type_depends_on_more_than_30_others_but_the_composition_root() =>
        Findings.AssertNone(Counts()
            .Where(type => type.Count > DependenciesMax)
            .Select(type => $"{type.Name}: {type.Count} types"));

    private static IEnumerable<(string Name, int Count)> Counts() =>
        Product.Shipped
            .SelectMany(Product.WrittenTypes)
            .Where(type => type.FullName != CompositionRoot)
            .Select(type => (type.FullName, DependenciesOf(type)));

    private static int DependenciesOf(TypeDefinition type) =>
        CodeReferences.Of(type)
            .Select(static reference => reference.Outermost)
            .Where(used => IsOfProduct(used) && used.FullName != type.FullName && !IsUnit(used))
            .Select(static used => used.FullName)
            .Distinct()
            .Count();

    private static bool IsOfProduct(TypeReference type) =>
        type.Namespace.StartsWith("Kahuna.", StringComparison.Ordinal)
            && !type.Namespace.Contains(".Protos", StringComparison.Ordinal)
            && !type.Name.StartsWith('<');

    private static bool IsUnit(TypeReference type) =>
        type.Resolve() is { IsValueType: true, IsEnum: false } resolved
            && resolved.Fields.Where(static field => !field.IsStatic).ToList() is [{ FieldType.IsPrimitive: true }];
}
