namespace Kahuna.Wire.Scripts.Running;

/// <summary>What an instruction does. The operand is named behind each.</summary>
internal enum ScriptOp : byte
{
    /// <summary>A statement begins: one step.</summary>
    Step,

    /// <summary>Pushes a constant (its index).</summary>
    Constant,

    /// <summary>Pushes a parameter (its index).</summary>
    Parameter,

    /// <summary>Pushes a variable (its index).</summary>
    Load,

    /// <summary>Pops into a variable (its index).</summary>
    Store,

    /// <summary>Drops the top.</summary>
    Pop,

    /// <summary>Applies an operator to the top one or two (the operator).</summary>
    Operator,

    /// <summary>Jumps and keeps the top if it is false, else pops it (the target).</summary>
    JumpIfFalseElsePop,

    /// <summary>Jumps and keeps the top if it is true, else pops it (the target).</summary>
    JumpIfTrueElsePop,

    /// <summary>Fails unless the top is a boolean.</summary>
    RequireBool,

    /// <summary>Pops a boolean and jumps if it is false (the target).</summary>
    JumpIfFalse,

    /// <summary>Jumps (the target).</summary>
    Jump,

    /// <summary>Makes an array of the top items (their number).</summary>
    Array,

    /// <summary>Calls a function with the top items (the function, and from bit 16 the number of arguments).</summary>
    Call,

    /// <summary>Pushes whether the last statement of a kind did nothing (the guard).</summary>
    Guard,

    /// <summary>Pops an array and goes through it.</summary>
    LoopStart,

    /// <summary>Pushes the next item, or jumps (the target).</summary>
    LoopNext,

    /// <summary>Ends the innermost going through.</summary>
    LoopEnd,

    /// <summary>Carries out a data statement and pushes its outcome (the index of the statement).</summary>
    Access,

    /// <summary>Ends the run with the outcome of the last data statement (1: without its writes).</summary>
    Finish,

    /// <summary>Ends the run with the top as its result (1: without its writes).</summary>
    Return,

    /// <summary>Fails with the top as its text.</summary>
    Throw,
}

/// <summary>One instruction. Immutable.</summary>
/// <param name="Op">What it does.</param>
/// <param name="Operand">With what.</param>
/// <param name="Position">Where its statement begins.</param>
internal readonly record struct ScriptInstruction(ScriptOp Op, int Operand, ScriptPosition Position);

/// <summary>A data statement. Its operands lie on the stack in the order of the parameters. Immutable.</summary>
/// <param name="Kind">What it does.</param>
/// <param name="IsEphemeral">The level of its key.</param>
/// <param name="HasOperand">Behind the key: the value, the milliseconds, or the revision behind AT.</param>
/// <param name="HasTtl">EX.</param>
/// <param name="HasCompared">CMP.</param>
/// <param name="HasComparedRevision">CMPREV.</param>
/// <param name="IfAbsent">NX.</param>
/// <param name="IfPresent">XX.</param>
/// <param name="WithoutHistory">NOREV.</param>
internal sealed record AccessStep(
    ScriptAccess Kind,
    bool IsEphemeral,
    bool HasOperand,
    bool HasTtl,
    bool HasCompared,
    bool HasComparedRevision,
    bool IfAbsent,
    bool IfPresent,
    bool WithoutHistory)
{
    /// <summary>Values that it takes from the stack.</summary>
    public int Operands { get; } =
        1 + (HasOperand ? 1 : 0) + (HasTtl ? 1 : 0) + (HasCompared ? 1 : 0) + (HasComparedRevision ? 1 : 0);

    /// <summary>The set depends on the key.</summary>
    public bool HasCondition => IfAbsent || IfPresent || HasCompared || HasComparedRevision;
}
