namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// A compiled script: a flat list of instructions for a machine with a stack. Immutable; runs on any thread share it.
/// </summary>
internal sealed class ScriptCode
{
    /// <summary>The instructions; the last one ends the run.</summary>
    public required ScriptInstruction[] Instructions { get; init; }

    /// <summary>The values that stand in the text.</summary>
    public required ScriptValue[] Constants { get; init; }

    /// <summary>The data statements.</summary>
    public required AccessStep[] AccessSteps { get; init; }

    /// <summary>The names of the parameters that the text uses.</summary>
    public required string[] Parameters { get; init; }

    /// <summary>The names of the variables.</summary>
    public required string[] Variables { get; init; }

    /// <summary>Compiles a parsed script.</summary>
    public static ScriptCode Compile(ScriptProgram program)
    {
        CodeWriter writer = new();
        new StatementCompiler(writer).Compile(program.Body);
        return writer.ToCode();
    }
}
