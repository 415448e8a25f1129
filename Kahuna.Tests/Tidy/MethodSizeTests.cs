using Mono.Cecil;
using Mono.Cecil.Cil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Methods fit on a screen and take few parameters; counted from the compiled code and its line table.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class MethodSizeTests
{
    private const int LinesMax = 60;

    private const int ParametersMax = 6;

    /// <summary>Methods that are longer, or take more, for a reason.</summary>
    private static readonly Dictionary<string, string> s_exceptions = new()
    {
        ["Kahuna.Wire.Commands.Command::TryRead"] = "One branch per field of the layout, in its order.",
    };

    [Fact]
    public void Methods_are_short() =>
        Findings.AssertNone(Methods().Where(method => LinesOf(method) > LinesMax && !IsException(method)).Select(
            method => $"{NameOf(method)}: {LinesOf(method)} lines"));

    [Fact]
    public void Methods_take_few_parameters() =>
        Findings.AssertNone(Methods()
            .Where(
                method => Parameters(method) > ParametersMax && !IsRecord(method.DeclaringType) && !IsException(method))
            .Select(method => $"{NameOf(method)}: {Parameters(method)} parameters"));

    [Fact]
    public void Exceptions_are_still_needed()
    {
        HashSet<string> needed =
        [
            .. Methods().Where(method => LinesOf(method) > LinesMax || Parameters(method) > ParametersMax).Select(
                NameOf),
        ];
        Findings.AssertNone(s_exceptions.Keys.Where(name => !needed.Contains(name)));
    }

    private static IEnumerable<MethodDefinition> Methods() =>
        Product.Shipped
            .SelectMany(Product.WrittenTypes)
            .SelectMany(WithNested)
            .SelectMany(type => type.Methods)
            .Where(method => method.HasBody && !method.CustomAttributes.Any(
                attribute => attribute.AttributeType.Name is "CompilerGeneratedAttribute" or "GeneratedCodeAttribute"));

    private static IEnumerable<TypeDefinition> WithNested(TypeDefinition type) =>
        type.NestedTypes.SelectMany(WithNested).Prepend(type);

    /// <summary>The parameters of a record are its properties.</summary>
    private static bool IsRecord(TypeDefinition type) => type.Methods.Any(method => method.Name == "PrintMembers");

    private static bool IsException(MethodDefinition method) => s_exceptions.ContainsKey(NameOf(method));

    private static string NameOf(MethodDefinition method) => $"{method.DeclaringType.FullName}::{method.Name}";

    private static int Parameters(MethodDefinition method) =>
        method.Parameters.Count(parameter => parameter.ParameterType.Name != "CancellationToken");

    private static int LinesOf(MethodDefinition method)
    {
        List<SequencePoint> points = [.. method.DebugInformation.SequencePoints.Where(point => !point.IsHidden)];

        // Initializers of fields stand elsewhere in the file and are compiled into the constructors.
        return points.Count == 0 || method.IsConstructor
            ? 0
            : points.Max(point => point.EndLine) - points.Min(point => point.StartLine) + 1;
    }
}
