using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// One use of a type by another: <paramref name="Where"/> says in which member, <paramref name="Member"/> names the
/// used member if it is one. Immutable.
/// </summary>
internal readonly record struct CodeReference(TypeDefinition From, string Where, TypeReference Type, string? Member)
{
    /// <summary>The types of a method's parameters, with commas between.</summary>
    public string Parameters { get; init; } = "";

    /// <summary>The outermost type: what is nested belongs to it.</summary>
    public TypeReference Outermost
    {
        get
        {
            TypeReference type = Type;
            while (type.DeclaringType is not null)
            {
                type = type.DeclaringType;
            }

            return type;
        }
    }

    public override string ToString() =>
        $"{From.FullName}, {Where}: {Type.FullName}{(Member is null ? "" : "::" + Member)}";
}
