using Mono.Cecil;
using Mono.Cecil.Cil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Reads everything that a compiled type mentions: base types, attributes, fields, signatures, constraints, method
/// bodies, and the same of its nested types. Stateless.
/// </summary>
internal static class CodeReferences
{
    public static IEnumerable<CodeReference> Of(TypeDefinition type) => Raw(type).SelectMany(Flatten);

    /// <summary>
    /// What others see of the type: base types, fields and signatures, but no method bodies and no attributes.
    /// </summary>
    public static IEnumerable<CodeReference> SignatureOf(TypeDefinition type) => Declaration(type).SelectMany(Flatten);

    private static IEnumerable<CodeReference> Raw(TypeDefinition type)
    {
        IEnumerable<CodeReference> own = Declaration(type).Concat(Attributes(type)).Concat(
            type.Methods.SelectMany(method => Body(type, method)));
        return own.Concat(type.NestedTypes.SelectMany(Raw));
    }

    private static IEnumerable<CodeReference> Declaration(TypeDefinition type)
    {
        if (type.BaseType is not null)
        {
            yield return new CodeReference(type, "base type", type.BaseType, null);
        }

        foreach (InterfaceImplementation implemented in type.Interfaces)
        {
            yield return new CodeReference(type, "interface", implemented.InterfaceType, null);
        }

        foreach (TypeReference constraint in Constraints(type))
        {
            yield return new CodeReference(type, "constraint", constraint, null);
        }

        foreach (FieldDefinition field in type.Fields)
        {
            yield return new CodeReference(type, $"field {field.Name}", field.FieldType, null);
        }

        foreach (MethodDefinition method in type.Methods)
        {
            string where = $"signature of {method.Name}";
            yield return new CodeReference(type, where, method.ReturnType, null);
            foreach (TypeReference used in method.Parameters.Select(p => p.ParameterType).Concat(Constraints(method)))
            {
                yield return new CodeReference(type, where, used, null);
            }
        }
    }

    private static IEnumerable<TypeReference> Constraints(IGenericParameterProvider provider) =>
        provider.GenericParameters.SelectMany(parameter => parameter.Constraints)
            .Select(constraint => constraint.ConstraintType);

    private static IEnumerable<CodeReference> Attributes(TypeDefinition type)
    {
        IEnumerable<ICustomAttributeProvider> providers =
            [
                type,
                .. type.Fields,
                .. type.Properties,
                .. type.Events,
                .. type.Methods,
                .. type.Methods.SelectMany(method => method.Parameters),
            ];
        return providers.SelectMany(provider => provider.CustomAttributes)
            .Select(attribute => new CodeReference(type, "attribute", attribute.AttributeType, null));
    }

    private static IEnumerable<CodeReference> Body(TypeDefinition type, MethodDefinition method)
    {
        if (!method.HasBody)
        {
            yield break;
        }

        string where = $"body of {method.Name}";
        foreach (VariableDefinition variable in method.Body.Variables)
        {
            yield return new CodeReference(type, where, variable.VariableType, null);
        }

        foreach (TypeReference caught in method.Body.ExceptionHandlers.Select(handler => handler.CatchType)
            .OfType<TypeReference>())
        {
            yield return new CodeReference(type, where, caught, null);
        }

        foreach (object operand in method.Body.Instructions.Select(instruction => instruction.Operand).OfType<object>())
        {
            foreach (CodeReference reference in Operand(type, where, operand))
            {
                yield return reference;
            }
        }
    }

    private static IEnumerable<CodeReference> Operand(TypeDefinition type, string where, object operand)
    {
        switch (operand)
        {
            case TypeReference used:
                yield return new CodeReference(type, where, used, null);
                break;
            case FieldReference field:
                yield return new CodeReference(type, where, field.DeclaringType, field.Name);
                yield return new CodeReference(type, where, field.FieldType, null);
                break;
            case MethodReference method:
                yield return new CodeReference(type, where, method.DeclaringType, method.Name)
                {
                    Parameters = string.Join(
                        ',', method.Parameters.Select(static parameter => parameter.ParameterType.FullName)),
                };
                yield return new CodeReference(type, where, method.ReturnType, null);
                IEnumerable<TypeReference> arguments = method is GenericInstanceMethod generic
                    ? generic.GenericArguments
                    : [];
                foreach (TypeReference used in method.Parameters.Select(parameter => parameter.ParameterType)
                    .Concat(arguments))
                {
                    yield return new CodeReference(type, where, used, null);
                }

                break;
        }
    }

    /// <summary>Takes generic instances, arrays, pointers and modifiers apart into the named types within.</summary>
    private static IEnumerable<CodeReference> Flatten(CodeReference reference)
    {
        IEnumerable<TypeReference> inner = reference.Type switch
        {
            GenericParameter => [],
            GenericInstanceType generic => [generic.ElementType, .. generic.GenericArguments],
            FunctionPointerType pointer =>
                [pointer.ReturnType, .. pointer.Parameters.Select(parameter => parameter.ParameterType)],
            IModifierType modified => [modified.ElementType, modified.ModifierType],
            TypeSpecification specification => [specification.ElementType],
            _ => [],
        };
        if (reference.Type is TypeSpecification)
        {
            return inner.SelectMany(
                (type, i) => Flatten(reference with { Type = type, Member = i == 0 ? reference.Member : null }));
        }

        return reference.Type is GenericParameter ? [] : [reference];
    }
}
