using Kahuna.Tests.Tidy.Samples.Primitives;
using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>The arrows between the folders, read from the compiled assemblies (docs/architecture.md).</summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class DependencyRuleTests
{
    [Fact]
    public void Arrows_of_the_server_point_down() =>
        Findings.AssertNone(Product.WrittenTypes(Product.Server).SelectMany(Layers.OfServer.Violations).Distinct());

    [Theory]
    [InlineData("Kahuna.Server.Storage")]
    [InlineData("Kahuna.Server.Transport")]
    public void Adapters_see_only_the_ports_of_partitions(string adapter)
    {
        HashSet<string> ports = PortTypes.Of(Product.Server, "Kahuna.Server.Partitions");
        IEnumerable<TypeDefinition> adapters = Product.WrittenTypes(Product.Server)
            .Where(type => type.Namespace == adapter || type.Namespace.StartsWith(adapter + ".", StringComparison.Ordinal));
        Findings.AssertNone(adapters.SelectMany(type => PortTypes.Violations(type, "Kahuna.Server.Partitions", ports)).Distinct());
    }

    [Fact]
    public void Client_knows_nothing_of_the_server() =>
        Assert.DoesNotContain(Product.Client.AssemblyReferences, reference => reference.Name == "kahuna-server");

    [Fact]
    public void Wire_uses_nothing_else_of_the_client()
    {
        IEnumerable<CodeReference> outward = Product.WrittenTypes(Product.Client)
            .Where(type => IsWire(type.Namespace))
            .SelectMany(CodeReferences.Of)
            .Where(reference => reference.Outermost.Namespace.StartsWith("Kahuna.Client", StringComparison.Ordinal) && !IsWire(reference.Outermost.Namespace));
        Findings.AssertNone(outward.Select(reference => reference.ToString()).Distinct());
    }

    [Theory]
    [InlineData(typeof(Samples.Raft.StateInField), "Raft must not use State")]
    [InlineData(typeof(Samples.Raft.StateInSignature), "Raft must not use State")]
    [InlineData(typeof(Samples.Raft.StateInBody), "Raft must not use State")]
    [InlineData(typeof(Samples.Raft.StateInGenericArgument), "Raft must not use State")]
    [InlineData(typeof(Samples.State.RaftInLambda), "State must not use Raft")]
    [InlineData(typeof(Samples.Api.RaftAtTheDoor), "Api must not use Raft")]
    [InlineData(typeof(Samples.Partitions.ApiFromBelow), "Partitions must not use Api")]
    public void Wrong_arrows_are_seen(Type sample, string expected) =>
        Assert.Contains(Layers.OfServer.Violations(Compiled(sample)), violation => violation.StartsWith(expected, StringComparison.Ordinal));

    [Fact]
    public void Right_arrows_are_not() => Findings.AssertNone(Layers.OfServer.Violations(Compiled(typeof(PlainValue))));

    [Fact]
    public void Use_of_an_inner_type_of_partitions_is_seen()
    {
        HashSet<string> none = [];
        TypeDefinition sample = Compiled(typeof(Samples.Storage.UsesPartitions));
        Assert.NotEmpty(PortTypes.Violations(sample, "Kahuna.Server.Partitions", none));
        Findings.AssertNone(PortTypes.Violations(sample, "Kahuna.Server.Partitions", PortTypes.Of(Product.Server, "Kahuna.Server.Partitions")));
    }

    internal static TypeDefinition Compiled(Type sample) => Product.Tests.GetType(sample.FullName!.Replace('+', '/'));

    private static bool IsWire(string name) => name == "Kahuna.Client.Wire" || name.StartsWith("Kahuna.Client.Wire.", StringComparison.Ordinal);
}
