namespace Kahuna.Wire.Scripts.Running;

/// <summary>Compiles statements; each leaves the stack as it was. One owner, not thread-safe.</summary>
internal sealed class StatementCompiler(CodeWriter code)
{
    private const int WithWrites = 0;
    private const int WithoutWrites = 1;

    private readonly ExpressionCompiler _expressions = new(code);
    private readonly Stack<LoopJumps> _loops = [];

    /// <summary>Compiles a whole script, which commits at its end.</summary>
    public void Compile(IReadOnlyList<ScriptStatement> body)
    {
        CompileAll(body);
        code.Emit(ScriptOp.Finish, WithWrites);
    }

    private void CompileAll(IReadOnlyList<ScriptStatement> body)
    {
        foreach (ScriptStatement statement in body)
        {
            code.Position = statement.Position;
            code.Emit(ScriptOp.Step);
            Compile(statement);
        }
    }

    private void Compile(ScriptStatement statement)
    {
        switch (statement)
        {
            case AccessStatement data:
                _expressions.Compile(data.Statement);
                code.Emit(ScriptOp.Pop);
                break;
            case LetStatement let:
                _expressions.Compile(let.Value);
                code.Emit(ScriptOp.Store, code.VariableOf(let.Name));
                break;
            case IfStatement choice:
                CompileIf(choice);
                break;
            case ForStatement loop:
                CompileFor(loop);
                break;
            case WhileStatement loop:
                CompileWhile(loop);
                break;
            case JumpStatement jump:
                CompileJump(jump);
                break;
            case BlockStatement block:
                CompileAll(block.Body);
                code.Position = block.Position;
                if (!block.CommitsAtEnd)
                {
                    code.Emit(ScriptOp.Finish, WithoutWrites);
                }

                break;
            case FinishStatement finish:
                CompileFinish(finish);
                break;
            case ThrowStatement error:
                _expressions.Compile(error.Value);
                code.Emit(ScriptOp.Throw);
                break;
            default:
                throw new InvalidOperationException($"No code for {statement.GetType().Name}.");
        }
    }

    private void CompileIf(IfStatement choice)
    {
        List<int> ends = [];
        foreach (ScriptBranch branch in choice.Branches)
        {
            code.Position = branch.Position;
            _expressions.Compile(branch.Condition);
            int next = code.EmitJump(ScriptOp.JumpIfFalse);
            CompileAll(branch.Body);
            ends.Add(code.EmitJump(ScriptOp.Jump));
            code.Land(next);
        }

        CompileAll(choice.Otherwise);
        ends.ForEach(code.Land);
    }

    private void CompileFor(ForStatement loop)
    {
        _expressions.Compile(loop.Items);
        code.Emit(ScriptOp.LoopStart);
        LoopJumps jumps = new(code.Here);
        int end = code.EmitJump(ScriptOp.LoopNext);
        code.Emit(ScriptOp.Store, code.VariableOf(loop.Name));
        CompileLoop(jumps, loop.Body);
        code.Position = loop.Position;
        code.Land(end);
        jumps.Breaks.ForEach(code.Land);
        code.Emit(ScriptOp.LoopEnd);
    }

    private void CompileWhile(WhileStatement loop)
    {
        LoopJumps jumps = new(code.Here);
        _expressions.Compile(loop.Condition);
        int end = code.EmitJump(ScriptOp.JumpIfFalse);
        CompileLoop(jumps, loop.Body);
        code.Position = loop.Position;
        code.Land(end);
        jumps.Breaks.ForEach(code.Land);
    }

    private void CompileLoop(LoopJumps jumps, IReadOnlyList<ScriptStatement> body)
    {
        _loops.Push(jumps);
        CompileAll(body);
        _loops.Pop();
        code.Emit(ScriptOp.Jump, jumps.Start);
    }

    private void CompileJump(JumpStatement jump)
    {
        LoopJumps loop = _loops.Peek();
        if (jump.IsBreak)
        {
            loop.Breaks.Add(code.EmitJump(ScriptOp.Jump));
        }
        else
        {
            code.Emit(ScriptOp.Jump, loop.Start);
        }
    }

    private void CompileFinish(FinishStatement finish)
    {
        int writes = finish.IsRollback ? WithoutWrites : WithWrites;
        if (finish.Value is null)
        {
            code.Emit(ScriptOp.Finish, writes);
            return;
        }

        _expressions.Compile(finish.Value);
        code.Emit(ScriptOp.Return, writes);
    }

    /// <summary>Where the jumps inside a loop go. One owner, not thread-safe.</summary>
    private sealed record LoopJumps(int Start)
    {
        public List<int> Breaks { get; } = [];
    }
}
