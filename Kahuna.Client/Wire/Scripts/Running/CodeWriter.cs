namespace Kahuna.Wire.Scripts.Running;

/// <summary>Code under construction. One owner, not thread-safe.</summary>
internal sealed class CodeWriter
{
    private readonly List<ScriptInstruction> _instructions = [];
    private readonly List<ScriptValue> _constants = [];
    private readonly List<AccessStep> _dataSteps = [];
    private readonly OrderedDictionary<string, int> _parameters = new(StringComparer.Ordinal);
    private readonly OrderedDictionary<string, int> _variables = new(StringComparer.Ordinal);

    /// <summary>The statement that instructions belong to from now on.</summary>
    public ScriptPosition Position { get; set; } = new(1, 1);

    /// <summary>Where the next instruction will be.</summary>
    public int Here => _instructions.Count;

    /// <summary>Appends an instruction.</summary>
    public void Emit(ScriptOp op, int operand = 0) =>
        _instructions.Add(new ScriptInstruction(op, operand, Position));

    /// <summary>Appends a jump whose target is not known yet, and returns its place.</summary>
    public int EmitJump(ScriptOp op)
    {
        Emit(op);
        return Here - 1;
    }

    /// <summary>Lets a jump end here.</summary>
    public void Land(int jump) => _instructions[jump] = _instructions[jump] with { Operand = Here };

    /// <summary>Appends the push of a constant.</summary>
    public void EmitConstant(ScriptValue value)
    {
        _constants.Add(value);
        Emit(ScriptOp.Constant, _constants.Count - 1);
    }

    /// <summary>Appends a data statement.</summary>
    public void EmitAccess(AccessStep step)
    {
        _dataSteps.Add(step);
        Emit(ScriptOp.Access, _dataSteps.Count - 1);
    }

    /// <summary>The number of a parameter.</summary>
    public int ParameterOf(string name) => NumberOf(_parameters, name);

    /// <summary>The number of a variable.</summary>
    public int VariableOf(string name) => NumberOf(_variables, name);

    /// <summary>The finished code.</summary>
    public ScriptCode ToCode() => new()
    {
        Instructions = [.. _instructions],
        Constants = [.. _constants],
        AccessSteps = [.. _dataSteps],
        Parameters = [.. _parameters.Keys],
        Variables = [.. _variables.Keys],
    };

    private static int NumberOf(OrderedDictionary<string, int> names, string name)
    {
        names.TryAdd(name, names.Count);
        return names[name];
    }
}
