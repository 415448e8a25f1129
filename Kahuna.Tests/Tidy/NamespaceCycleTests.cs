using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>Inside of one project, too, arrows between namespaces point one way.</summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class NamespaceCycleTests
{
    private const string Samples = "Kahuna.Tests.Tidy.Samples.Knot";

    /// <summary>
    /// Cycles that there still are, by the assembly. One that is untied, even in part, must be taken out of the list or
    /// made smaller in it.
    /// </summary>
    private static readonly Dictionary<string, string[]> s_known = new()
    {
        ["Kahuna.Client"] = [],
        ["Kahuna.Wire"] = [],
        ["kahuna-server"] = [],
        ["kahuna-bench"] = [],
        ["kahuna"] = [],
    };

    [Theory]
    [InlineData("Kahuna.Client")]
    [InlineData("Kahuna.Wire")]
    [InlineData("kahuna-server")]
    [InlineData("kahuna-bench")]
    [InlineData("kahuna")]
    public void No_cycle_between_namespaces_of_one_project(string assembly) =>
        Findings.AssertNone(CyclesOf(assembly)
            .Where(cycle => !s_known[assembly].Contains(cycle.Name))
            .Select(cycle => cycle.ToString()));

    [Theory]
    [InlineData("Kahuna.Client")]
    [InlineData("Kahuna.Wire")]
    [InlineData("kahuna-server")]
    [InlineData("kahuna-bench")]
    [InlineData("kahuna")]
    public void Known_cycles_are_still_there(string assembly)
    {
        HashSet<string> found = [.. CyclesOf(assembly).Select(cycle => cycle.Name)];
        Findings.AssertNone(s_known[assembly]
            .Where(known => !found.Contains(known))
            .Select(known => $"{assembly}: these namespaces are no longer one cycle: {known}"));
    }

    [Fact]
    public void A_cycle_is_found_with_the_uses_that_make_it()
    {
        NamespaceCycle cycle = Assert.Single(NamespaceCycles.Of(Product.Tests.Types.Where(IsSample)));
        Assert.Equal([$"{Samples}.Back", $"{Samples}.Front"], cycle.Namespaces);
        Assert.Equal(2, cycle.Arrows.Count);
        string arrow = $"{Samples}.Back → {Samples}.Front: {Samples}.Back.Store";
        Assert.StartsWith(arrow, cycle.Arrows[0], StringComparison.Ordinal);
    }

    [Fact]
    public void Arrows_in_one_direction_are_no_cycle()
    {
        IEnumerable<TypeDefinition> samples = Product.Tests.Types.Where(IsSample);
        Assert.Empty(NamespaceCycles.Of(samples.Where(type => type.Namespace != $"{Samples}.Back")));
    }

    private static bool IsSample(TypeDefinition type) => type.Namespace.StartsWith(Samples, StringComparison.Ordinal);

    private static IReadOnlyList<NamespaceCycle> CyclesOf(string assembly)
    {
        return NamespaceCycles.Of(Product.Shipped.Single(module => module.Assembly.Name.Name == assembly));
    }
}
