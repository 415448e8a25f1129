using Mono.Cecil;
using Mono.Cecil.Cil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The compiled assemblies that the tidy tests read. Loaded once; Cecil's lazy reading is not thread-safe, so the tests
/// that use it share one xunit collection.
/// </summary>
internal static class Product
{
    public static ModuleDefinition Server { get; } = Read("kahuna-server.dll");

    public static ModuleDefinition Client { get; } = Read("Kahuna.Client.dll");

    public static ModuleDefinition Wire { get; } = Read("Kahuna.Wire.dll");

    public static ModuleDefinition Benchmark { get; } = Read("kahuna-bench.dll");

    public static ModuleDefinition Cli { get; } = Read("kahuna.dll");

    /// <summary>All assemblies that are shipped.</summary>
    public static IReadOnlyList<ModuleDefinition> Shipped { get; } = [Server, Client, Wire, Benchmark, Cli];

    public static ModuleDefinition Tests { get; } = Read("Kahuna.Tests.dll");

    /// <summary>Types that a person wrote: neither the compiler's nor protoc's.</summary>
    public static IEnumerable<TypeDefinition> WrittenTypes(ModuleDefinition module) => module.Types.Where(type =>
        type.Namespace.StartsWith("Kahuna.", StringComparison.Ordinal)
        && !type.Namespace.Contains(".Protos", StringComparison.Ordinal)
        && !type.Name.StartsWith('<')
        && !type.Interfaces.Any(implemented => implemented.InterfaceType.FullName == "Google.Protobuf.IMessage")
        && !type.CustomAttributes.Any(attribute => attribute.AttributeType.Name == "GeneratedCodeAttribute"));

    private static ModuleDefinition Read(string file)
    {
        DefaultAssemblyResolver resolver = new();
        resolver.AddSearchDirectory(AppContext.BaseDirectory);
        return ModuleDefinition.ReadModule(Path.Combine(AppContext.BaseDirectory, file), new ReaderParameters
        {
            AssemblyResolver = resolver,
            ReadSymbols = true,
            SymbolReaderProvider = new PortablePdbReaderProvider(),
        });
    }
}
