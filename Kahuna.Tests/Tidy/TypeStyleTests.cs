using System.Text.RegularExpressions;
using System.Xml.Linq;
using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>House style that can be read off the compiled types: names, sealing, visibility, documentation.</summary>
[Collection(CompiledCodeCollection.Name)]
public sealed partial class TypeStyleTests
{
    /// <summary>A name that needs one of these words has not found its idea yet.</summary>
    private static readonly string[] s_emptyWords =
        ["Manager", "Helper", "Helpers", "Util", "Utils", "Utility", "Info", "Data", "Impl", "Base", "Common"];

    [Fact]
    public void Names_say_something()
    {
        IEnumerable<string> types = All().Select(type => type.FullName).Where(
            name => HasEmptyWord(name[(name.LastIndexOf('.') + 1)..]));
        IEnumerable<string> files = Repository.SourceFiles.Where(file => file.Split('/').Any(HasEmptyWord));
        Findings.AssertNone(types.Concat(files));
    }

    [Theory]
    [InlineData("StoreManager", true)]
    [InlineData("KeyInfo", true)]
    [InlineData("IDataSource", true)]
    [InlineData("DataDirectoryIdentity", false)]
    [InlineData("Database", false)]
    [InlineData("InformationalText", false)]
    public void Words_are_told_apart(string name, bool empty) => Assert.Equal(empty, HasEmptyWord(name));

    [Fact]
    public void Classes_are_sealed_unless_something_derives_from_them()
    {
        HashSet<string> bases = [.. All().Select(type => type.BaseType?.GetElementType().FullName).OfType<string>()];
        Findings.AssertNone(All()
            .Where(type => type.IsClass && !type.IsValueType && !type.IsSealed && !type.IsAbstract && !bases.Contains(
                type.FullName))

            // A public exception may be refined by its users.
            .Where(type => !(type.IsPublic && type.Name.EndsWith("Exception", StringComparison.Ordinal)))
            .Select(type => type.FullName));
    }

    [Fact]
    public void Server_and_tools_publish_no_types() =>
        Findings.AssertNone(
            Product.WrittenTypes(Product.Server)
                .Concat(Product.WrittenTypes(Product.Benchmark))
                .Concat(Product.WrittenTypes(Product.Cli))
                .Where(type => type.IsPublic)
                .Select(type => type.FullName));

    [Theory]
    [InlineData("kahuna-server")]
    [InlineData("Kahuna.Client")]
    [InlineData("Kahuna.Wire")]
    [InlineData("kahuna-bench")]
    [InlineData("kahuna")]
    public void Every_type_says_what_it_is(string assembly)
    {
        ModuleDefinition module = Product.Shipped.Single(m => m.Assembly.Name.Name == assembly);
        HashSet<string> documented =
        [
            .. XDocument.Load(Path.Combine(AppContext.BaseDirectory, assembly + ".xml")).Descendants("member")
                .Where(member => member.Element("summary") is { } summary && !string.IsNullOrWhiteSpace(summary.Value))
                .Select(member => (string)member.Attribute("name")!),
        ];
        Findings.AssertNone(
            Product.WrittenTypes(module)
                .Where(type => !documented.Contains("T:" + type.FullName))
                .Select(type => type.FullName));
    }

    private static IEnumerable<TypeDefinition> All() =>
        Product.Shipped.Append(Product.Tests).SelectMany(Product.WrittenTypes);

    /// <summary>The data directory is a thing of its own (the option --data), not an empty word.</summary>
    private static bool HasEmptyWord(string name) =>
        Words().Matches(name.Replace("DataDirectory", "Directory", StringComparison.Ordinal)).Any(
            word => s_emptyWords.Contains(word.Value));

    [GeneratedRegex("[A-Z][a-z]+")]
    private static partial Regex Words();
}
