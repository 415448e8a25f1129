using Kahuna.Tests.Tidy;
using Microsoft.AspNetCore.Builder;
using Mono.Cecil;
using Mono.Cecil.Cil;
using Mono.Cecil.Rocks;

namespace Kahuna.Tests.Tools.Paths;

/// <summary>
/// Makes a copy of this program in which every method of the product first reports itself to <see cref="PathTracer"/>.
/// Stateless.
/// </summary>
internal static class PathWeaver
{
    /// <summary>The list of the methods, beside the copy; a method's number is that of its line.</summary>
    public const string ListName = "methods.tsv";

    private static readonly string[] s_assemblies = ["kahuna-server.dll", "Kahuna.Client.dll", "Kahuna.Wire.dll"];

    /// <summary>Copies the program to a folder.</summary>
    public static void Weave(string target)
    {
        CopyAll(new DirectoryInfo(AppContext.BaseDirectory), target);
        List<WovenMethod> methods = [];
        foreach (string assembly in s_assemblies)
        {
            using ModuleDefinition module = Read(assembly);
            MethodReference enter = module.ImportReference(
                typeof(PathTracer).GetMethod(nameof(PathTracer.Enter), [typeof(int)]));
            foreach (MethodDefinition method in module.GetTypes().SelectMany(type => type.Methods))
            {
                if (method.HasBody)
                {
                    Report(method, enter, methods.Count);
                    methods.Add(Describe(method));
                }
            }

            module.Write(Path.Combine(target, assembly));
        }

        File.WriteAllLines(Path.Combine(target, ListName), methods.Select(method => method.ToLine()));
    }

    private static void CopyAll(DirectoryInfo source, string target)
    {
        Directory.CreateDirectory(target);
        foreach (FileInfo file in source.EnumerateFiles())
        {
            file.CopyTo(Path.Combine(target, file.Name), overwrite: true);
        }

        // Other tests hold the lock of the certificates' folder.
        foreach (DirectoryInfo folder in source.EnumerateDirectories()
            .Where(static folder => folder.Name != TestEnvironment.CertificateFolder))
        {
            CopyAll(folder, Path.Combine(target, folder.Name));
        }
    }

    private static ModuleDefinition Read(string assembly)
    {
        DefaultAssemblyResolver resolver = new();
        resolver.AddSearchDirectory(AppContext.BaseDirectory);
        resolver.AddSearchDirectory(Path.GetDirectoryName(typeof(object).Assembly.Location));
        resolver.AddSearchDirectory(Path.GetDirectoryName(typeof(WebApplication).Assembly.Location));
        return ModuleDefinition.ReadModule(Path.Combine(AppContext.BaseDirectory, assembly), new ReaderParameters
        {
            AssemblyResolver = resolver,
            ReadSymbols = true,
            SymbolReaderProvider = new PortablePdbReaderProvider(),
        });
    }

    private static void Report(MethodDefinition method, MethodReference enter, int number)
    {
        method.Body.SimplifyMacros();
        ILProcessor code = method.Body.GetILProcessor();
        Instruction first = method.Body.Instructions[0];
        code.InsertBefore(first, code.Create(OpCodes.Ldc_I4, number));
        code.InsertBefore(first, code.Create(OpCodes.Call, enter));
        method.Body.OptimizeMacros();
    }

    private static WovenMethod Describe(MethodDefinition method)
    {
        List<SequencePoint> statements =
            [.. method.DebugInformation.SequencePoints.Where(point => !point.IsHidden)];
        string file = statements.Count == 0
            ? "" : Path.GetRelativePath(Repository.Root, statements[0].Document.Url).Replace('\\', '/');
        (TypeDefinition type, string name) = Written(method);
        bool isAccessor = method.IsGetter || method.IsSetter || method.IsConstructor
            || method.Name.StartsWith("op_", StringComparison.Ordinal);
        return new WovenMethod(type.FullName, name, file, statements.Count, isAccessor);
    }

    /// <summary>
    /// Type and method that a person wrote: lambdas and state machines belong to the method around them.
    /// </summary>
    private static (TypeDefinition Type, string Name) Written(MethodDefinition method)
    {
        (TypeDefinition type, string name) = (method.DeclaringType, Inner(method.Name));
        for (; type.Name.Contains('<', StringComparison.Ordinal) && type.DeclaringType is { } around; type = around)
        {
            name = name.Length > 0 && name != "MoveNext" ? name : Inner(type.Name);
        }

        return (type, name);
    }

    /// <summary>What stands between the angle brackets of a name that the compiler made; else the name.</summary>
    private static string Inner(string name) =>
        name.StartsWith('<') && name.IndexOf('>', StringComparison.Ordinal) is var end and > 0
            ? name[1..end].TrimStart('<') : name;
}
