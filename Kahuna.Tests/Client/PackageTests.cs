using System.Xml.Linq;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Client;

/// <summary>
/// The SDK's package works alone: it carries the assembly of the wire, so it has to list that assembly's dependencies.
/// <c>scripts/pack.sh</c> checks the package itself.
/// </summary>
public sealed class PackageTests
{
    private readonly XDocument _client = Load("Kahuna.Client/Kahuna.Client.csproj");
    private readonly XDocument _wire = Load("Kahuna.Client/Wire/Kahuna.Wire.csproj");

    [Fact]
    public void The_wire_is_in_the_package_and_no_package_of_its_own()
    {
        XElement reference = Assert.Single(_client.Descendants("ProjectReference"));
        Assert.Equal(("Wire/Kahuna.Wire.csproj", "all"), (Of(reference, "Include"), Of(reference, "PrivateAssets")));
        Assert.Equal("false", _wire.Descendants("IsPackable").Single().Value);
        string outputs = _client.Descendants("TargetsForTfmSpecificBuildOutput").Single().Value;
        Assert.Contains("PackWire", outputs.Split(';'));
        XElement target = Assert.Single(_client.Descendants("Target"), target => Of(target, "Name") == "PackWire");
        IEnumerable<string> packed = target.Descendants("BuildOutputInPackage").Select(item => Of(item, "Include"));
        Assert.Equal(["@(WireAssembly)", "@(WireAssembly->'%(RootDir)%(Directory)%(Filename).xml')"], packed);
    }

    [Fact]
    public void The_package_lists_what_the_wire_depends_on() =>
        Findings.AssertNone(Dependencies(_wire).Except(Dependencies(_client)));

    private static IEnumerable<string> Dependencies(XDocument project) =>
        from reference in project.Descendants("PackageReference")
        where Of(reference, "PrivateAssets") != "all"
        select Of(reference, "Include");

    private static string Of(XElement element, string attribute) => (string?)element.Attribute(attribute) ?? "";

    private static XDocument Load(string file) => XDocument.Load(Repository.FullPath(file));
}
