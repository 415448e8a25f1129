using System.Text.RegularExpressions;
using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// A moment has the type of its clock, <c>ClusterTime</c> or <c>NodeTime</c>, so that the compiler refuses one where
/// the other is meant. A bare number of milliseconds is a duration.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed partial class MomentTests
{
    [Fact]
    public void A_moment_is_no_bare_number() =>
        Findings.AssertNone(Product.WrittenTypes(Product.Server).SelectMany(Numbers)
            .Where(static number => Moment().IsMatch(number.Name))
            .Select(static number => $"{number.Where}: {number.Name} is a bare number"));

    private static IEnumerable<(string Where, string Name)> Numbers(TypeDefinition type) =>
        type.Fields.Where(static field => IsNumber(field.FieldType)).Select(field => (type.FullName, field.Name))
            .Concat(type.Properties.Where(static property => IsNumber(property.PropertyType))
                .Select(property => (type.FullName, property.Name)))
            .Concat(type.Methods.SelectMany(method => method.Parameters
                .Where(static parameter => IsNumber(parameter.ParameterType))
                .Select(parameter => ($"{type.FullName}.{method.Name}", parameter.Name))))
            .Concat(type.NestedTypes.SelectMany(Numbers));

    private static bool IsNumber(TypeReference type) =>
        type is ByReferenceType reference
            ? IsNumber(reference.ElementType)
            : type is GenericInstanceType { Name: "Nullable`1" } nullable
                ? IsNumber(nullable.GenericArguments[0])
                : type.MetadataType is MetadataType.Int64 or MetadataType.UInt64;

    [GeneratedRegex(
        "^_?(now|time|cluster|since|until|due|end|deadline|resumed|arrival)Ms$"
            + "|(Now|Time|Cluster|Since|Until|Due|End|Deadline|Resumed|Arrival)Ms$")]
    private static partial Regex Moment();
}
