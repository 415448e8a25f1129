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

    [Fact]
    public void Arrows_inside_the_state_point_down() =>
        Findings.AssertNone(Product.WrittenTypes(Product.Server).SelectMany(Layers.OfState.Violations).Distinct());

    [Fact]
    public void A_row_that_knows_its_table_is_seen() =>
        Assert.Contains(
            Layers.OfState.Violations(Compiled(typeof(Samples.State.Rows.KnowsLocks))),
            violation => violation.StartsWith("Rows must not use Locks", StringComparison.Ordinal));

    [Fact]
    public void Arrows_between_the_houses_of_partitions_point_down() =>
        Findings.AssertNone(Product.WrittenTypes(Product.Server).SelectMany(Layers.OfPartitions.Violations).Distinct());

    [Fact]
    public void A_wrong_arrow_between_the_houses_is_seen() =>
        Assert.Contains(
            Layers.OfPartitions.Violations(Compiled(typeof(Samples.Partitions.Requests.UsesGroup))),
            violation => violation.StartsWith("Requests must not use Groups", StringComparison.Ordinal));

    [Theory]
    [InlineData("Kahuna.Server.Storage")]
    [InlineData("Kahuna.Server.Transport")]
    public void Adapters_see_only_the_ports_of_partitions(string adapter)
    {
        HashSet<string> ports = PortTypes.Of(Product.Server, "Kahuna.Server.Partitions.Ports");
        IEnumerable<TypeDefinition> adapters = Product.WrittenTypes(Product.Server)
            .Where(type =>
                type.Namespace == adapter || type.Namespace.StartsWith(adapter + ".", StringComparison.Ordinal));
        Findings.AssertNone(
            adapters.SelectMany(type => PortTypes.Violations(type, "Kahuna.Server.Partitions", ports)).Distinct());
    }

    [Fact]
    public void Client_knows_nothing_of_the_server() =>
        Assert.DoesNotContain(Product.Client.AssemblyReferences, reference => reference.Name == "kahuna-server");

    [Fact]
    public void Wire_knows_neither_client_nor_server() =>
        Assert.DoesNotContain(
            Product.Wire.AssemblyReferences, reference => reference.Name is "kahuna-server" or "Kahuna.Client");

    [Theory]
    [InlineData(typeof(Samples.Raft.StateInField), "Raft must not use State")]
    [InlineData(typeof(Samples.Raft.StateInSignature), "Raft must not use State")]
    [InlineData(typeof(Samples.Raft.StateInBody), "Raft must not use State")]
    [InlineData(typeof(Samples.Raft.StateInGenericArgument), "Raft must not use State")]
    [InlineData(typeof(Samples.State.RaftInLambda), "State must not use Raft")]
    [InlineData(typeof(Samples.Api.RaftAtAdmission), "Api must not use Raft")]
    [InlineData(typeof(Samples.Partitions.ApiFromBelow), "Partitions must not use Api")]
    public void Wrong_arrows_are_seen(Type sample, string expected) =>
        Assert.Contains(Layers.OfServer.Violations(Compiled(sample)), violation =>
            violation.StartsWith(expected, StringComparison.Ordinal));

    [Fact]
    public void Right_arrows_are_not() => Findings.AssertNone(Layers.OfServer.Violations(Compiled(typeof(PlainValue))));

    [Fact]
    public void Use_of_an_inner_type_of_partitions_is_seen()
    {
        HashSet<string> none = [];
        TypeDefinition sample = Compiled(typeof(Samples.Storage.UsesPartitions));
        Assert.NotEmpty(PortTypes.Violations(sample, "Kahuna.Server.Partitions", none));
        Findings.AssertNone(PortTypes.Violations(
            sample, "Kahuna.Server.Partitions", PortTypes.Of(Product.Server, "Kahuna.Server.Partitions.Ports")));
    }

    internal static TypeDefinition Compiled(Type sample) => Product.Tests.GetType(sample.FullName!.Replace('+', '/'));
}
