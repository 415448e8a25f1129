namespace Kahuna.Wire.Scripts.Running;

/// <summary>Compiles expressions; each leaves one value on the stack. One owner, not thread-safe.</summary>
internal sealed class ExpressionCompiler(CodeWriter code)
{
    /// <summary>Compiles an expression.</summary>
    public void Compile(ScriptExpression expression)
    {
        switch (expression)
        {
            case LiteralExpression literal:
                code.EmitConstant(literal.Value);
                break;
            case ParameterExpression parameter:
                code.Emit(ScriptOp.Parameter, code.ParameterOf(parameter.Name));
                break;
            case VariableExpression variable:
                code.Emit(ScriptOp.Load, code.VariableOf(variable.Name));
                break;
            case UnaryExpression unary:
                Compile(unary.Operand);
                code.Emit(ScriptOp.Operator, (int)unary.Operator);
                break;
            case BinaryExpression binary:
                CompileBinary(binary);
                break;
            case ArrayExpression array:
                CompileAll(array.Items);
                code.Emit(ScriptOp.Array, array.Items.Count);
                break;
            case CallExpression call:
                CompileAll(call.Arguments);
                code.Emit(ScriptOp.Call, (int)call.Function | (call.Arguments.Count << 16));
                break;
            case GuardExpression guard:
                code.Emit(ScriptOp.Guard, (int)guard.Guard);
                break;
            case AccessExpression data:
                CompileData(data);
                break;
            default:
                throw new InvalidOperationException($"No code for {expression.GetType().Name}.");
        }
    }

    /// <summary>Goes down the left side in a loop, because it is as deep as the text is long.</summary>
    private void CompileBinary(BinaryExpression outermost)
    {
        Stack<BinaryExpression> spine = [];
        ScriptExpression left = outermost;
        while (left is BinaryExpression binary)
        {
            spine.Push(binary);
            left = binary.Left;
        }

        Compile(left);
        while (spine.TryPop(out BinaryExpression? binary))
        {
            if (binary.Operator is ScriptOperator.And or ScriptOperator.Or)
            {
                int decided = code.EmitJump(
                    binary.Operator == ScriptOperator.And
                        ? ScriptOp.JumpIfFalseElsePop
                        : ScriptOp.JumpIfTrueElsePop);
                Compile(binary.Right);
                code.Emit(ScriptOp.RequireBool);
                code.Land(decided);
            }
            else
            {
                Compile(binary.Right);
                code.Emit(ScriptOp.Operator, (int)binary.Operator);
            }
        }
    }

    private void CompileData(AccessExpression data)
    {
        ScriptSetOptions options = data.Options ?? new ScriptSetOptions();
        Compile(data.Key);
        ScriptExpression?[] operands = [data.Operand, options.TtlMs, options.Compared, options.ComparedRevision];
        foreach (ScriptExpression? operand in operands)
        {
            if (operand is not null)
            {
                Compile(operand);
            }
        }

        code.EmitAccess(new AccessStep(
            data.Kind,
            data.IsEphemeral,
            HasOperand: data.Operand is not null,
            HasTtl: options.TtlMs is not null,
            HasCompared: options.Compared is not null,
            HasComparedRevision: options.ComparedRevision is not null,
            options.IfAbsent,
            options.IfPresent,
            options.WithoutHistory));
    }

    private void CompileAll(IReadOnlyList<ScriptExpression> expressions)
    {
        foreach (ScriptExpression expression in expressions)
        {
            Compile(expression);
        }
    }
}
