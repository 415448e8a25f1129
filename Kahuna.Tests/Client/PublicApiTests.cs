using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text;
using Kahuna.Client;
using Kahuna.Tests.Wire;

namespace Kahuna.Tests.Client;

/// <summary>
/// The public surface of the package Kahuna.Client, both of its assemblies, as text: a change of it is seen in review,
/// and never happens unnoticed.
/// </summary>
public sealed class PublicApiTests
{
    private static readonly NullabilityInfoContext s_nullability = new();

    [Fact]
    public void Is_as_recorded() => GoldenFile.Check(
        "Client/PublicApi.txt",
        Dump([.. typeof(KahunaClient).Assembly.GetExportedTypes(), .. typeof(Revision).Assembly.GetExportedTypes()]));

    private static string Dump(Type[] types)
    {
        StringBuilder text = new();
        foreach (Type type in types.OrderBy(static type => type.FullName, StringComparer.Ordinal))
        {
            text.Append(Kind(type)).Append(' ').Append(type.FullName);
            string[] bases = [.. Bases(type)];
            text.Append(bases.Length > 0 ? " : " + string.Join(", ", bases) : "").Append('\n');
            IEnumerable<string> members = type.GetMembers(
                BindingFlags.Public
                    | BindingFlags.NonPublic
                    | BindingFlags.Instance
                    | BindingFlags.Static
                    | BindingFlags.DeclaredOnly)
                .Where(
                    static member => member is not MethodInfo || !member.IsDefined(typeof(CompilerGeneratedAttribute)))
                .Select(Describe).OfType<string>().Order(StringComparer.Ordinal);
            foreach (string member in members)
            {
                text.Append("    ").Append(member).Append('\n');
            }
        }

        return text.ToString();
    }

    private static string Kind(Type type) =>
        type.IsEnum ? "enum" : type.IsInterface ? "interface" : type.IsValueType ? "struct"
        : type is { IsAbstract: true, IsSealed: true }
            ? "static class"
            : type.IsSealed
            ? "sealed class"
            : type.IsAbstract
            ? "abstract class"
            : "class";

    private static IEnumerable<string> Bases(Type type)
    {
        if (type.BaseType is { } parent
            && parent != typeof(object)
            && parent != typeof(ValueType)
            && parent != typeof(Enum))
        {
            yield return Name(parent);
        }

        foreach (Type implemented in type.GetInterfaces().Where(item => item.IsPublic && !type.IsEnum).OrderBy(
            static item => item.Name, StringComparer.Ordinal))
        {
            yield return Name(implemented);
        }
    }

    private static string? Describe(MemberInfo member) => member switch
    {
        FieldInfo { IsPublic: true, IsStatic: true, DeclaringType.IsEnum: true } value =>
            $"{value.Name} = {Convert.ToInt64(value.GetRawConstantValue())}",
        FieldInfo { IsPublic: true, IsSpecialName: false } field => $"field {Name(field.FieldType)} {field.Name}",
        PropertyInfo property when IsVisible(property.GetMethod) || IsVisible(property.SetMethod) =>
            $"{Static(property.GetMethod ?? property.SetMethod!)}"
                + $"{Nullable(Name(property.PropertyType), s_nullability.Create(property))} "
                + $"{property.Name} {{ {Accessors(property)} }}",
        ConstructorInfo constructor when IsVisible(constructor) => $"new({Parameters(constructor)})",
        MethodInfo { IsSpecialName: false } method when IsVisible(method)
            && !method.Name.Contains('<', StringComparison.Ordinal) =>
            Method(method),
        MethodInfo { IsSpecialName: true, IsPublic: true } method when method.Name.StartsWith(
            "op_", StringComparison.Ordinal) =>
            Method(method),
        _ => null,
    };

    private static string Method(MethodInfo method) =>
        $"{Static(method)}{Nullable(Name(method.ReturnType), s_nullability.Create(method.ReturnParameter))} "
            + $"{method.Name}({Parameters(method)})";

    private static bool IsVisible(MethodBase? method) =>
        method is { IsPublic: true } or { IsFamily: true } or { IsFamilyOrAssembly: true };

    private static string Static(MethodBase method) => method.IsStatic ? "static " : "";

    private static string Accessors(PropertyInfo property) => string.Join(
        ' ',
        new[]
        {
            IsVisible(property.GetMethod) ? "get;" : null,
            !IsVisible(property.SetMethod) ? null
                : property.SetMethod!.ReturnParameter.GetRequiredCustomModifiers().Length > 0 ? "init;" : "set;",
        }.OfType<string>());

    private static string Parameters(MethodBase method) =>
        string.Join(", ", method.GetParameters().Select(static parameter =>
        $"{Nullable(Name(parameter.ParameterType), s_nullability.Create(parameter))} "
            + $"{parameter.Name}{(parameter.HasDefaultValue ? $" = {parameter.DefaultValue ?? "default"}" : "")}"));

    private static string Nullable(string name, NullabilityInfo nullability) =>
        !nullability.Type.IsValueType && nullability.ReadState == NullabilityState.Nullable ? name + "?" : name;

    private static string Name(Type type) =>
        System.Nullable.GetUnderlyingType(type) is { } inner ? Name(inner) + "?"
        : type.IsGenericType
            ? $"{type.Name[..type.Name.IndexOf('`', StringComparison.Ordinal)]}"
                + $"<{string.Join(", ", type.GetGenericArguments().Select(Name))}>"
        : type.IsArray ? Name(type.GetElementType()!) + "[]"
        : type.Name;
}
