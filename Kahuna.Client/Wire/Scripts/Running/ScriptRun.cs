using System.Globalization;
using System.Text;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// One run of a script: a machine with a stack, which stops when it needs something of the store and goes on when it is
/// supplied. Nothing that a script, a parameter or a supplied value can be makes it throw. Not thread-safe.
/// </summary>
internal sealed class ScriptRun
{
    private readonly ScriptCode _code;
    private readonly ScriptValue?[] _parameters;
    private readonly ScriptValue?[] _variables;
    private readonly List<ScriptValue> _stack = [];
    private readonly Stack<(IReadOnlyList<ScriptValue> Items, int Next)> _loops = [];
    private readonly ScriptMeter _meter;
    private readonly ScriptKeys _keys;
    private readonly AccessMachine _data;
    private readonly long _nowMs;
    private ScriptValue _last = ScriptValue.Null;
    private AccessCall? _waiting;
    private bool _writes = true;
    private int _at;

    /// <summary>Prepares a run.</summary>
    /// <param name="code">The script.</param>
    /// <param name="parameters">The values of its parameters.</param>
    /// <param name="nowMs">What <c>current_time()</c> gives, in ms.</param>
    /// <param name="budget">What it may use.</param>
    public ScriptRun(ScriptCode code, IReadOnlyList<ScriptParameter> parameters, long nowMs, ScriptBudget budget)
    {
        _code = code;
        _nowMs = nowMs;
        _meter = new ScriptMeter(budget);
        _keys = new ScriptKeys(_meter);
        _data = new AccessMachine(_meter, _keys);
        _variables = new ScriptValue?[code.Variables.Length];
        _parameters = new ScriptValue?[code.Parameters.Length];
        foreach (ScriptParameter parameter in parameters)
        {
            int index = Array.IndexOf(code.Parameters, parameter.Name);
            if (index >= 0)
            {
                _parameters[index] = parameter.Value;
            }
        }
    }

    /// <summary>The key, bucket or prefix that it needs.</summary>
    public ReadOnlyMemory<byte> Key { get; private set; }

    /// <summary>The level of <see cref="Key"/>.</summary>
    public bool IsEphemeral { get; private set; }

    /// <summary>The revision of the key that it needs; 0: the latest.</summary>
    public long AtRevision { get; private set; }

    /// <summary>What a finished script returned.</summary>
    public ScriptValue Result { get; private set; } = ScriptValue.Null;

    /// <summary>What a finished script writes, each key once, in order of the first write.</summary>
    public IReadOnlyList<ScriptWrite> Writes { get; private set; } = [];

    /// <summary>Why a script failed.</summary>
    public ScriptError Error { get; private set; }

    /// <summary>It failed because it used more than its budget.</summary>
    public bool IsOverBudget => _meter.IsExceeded;

    /// <summary>Steps that it has taken so far.</summary>
    public int StepsTaken => _meter.Steps;

    /// <summary>Where the statement begins that it carries out.</summary>
    public ScriptPosition Position => _code.Instructions[_at].Position;

    /// <summary>How it ended; null while it has not.</summary>
    private ScriptStop? End { get; set; }

    /// <summary>Runs until it needs something of the store, or ends.</summary>
    public ScriptStop Advance()
    {
        try
        {
            while (End is null)
            {
                if (Execute(_code.Instructions[_at]) is { } stop)
                {
                    return stop;
                }
            }
        }
        catch (ScriptFailure failure)
        {
            Fail(failure.Message);
        }
        catch (ArgumentException)
        {
            Fail($"arrays may be nested {ScriptValue.NestingMax} deep");
        }

        return End!.Value;
    }

    /// <summary>Answers <see cref="ScriptStop.NeedsKey"/>: an entry, or null when the key does not exist.</summary>
    public void Supply(ScriptValue? entry)
    {
        try
        {
            if (entry is not null)
            {
                _meter.Made(entry);
            }

            AccessCall call = _waiting!;
            if (AtRevision > 0)
            {
                _meter.Keys(1);
                _data.SupplyRevision(entry);
            }
            else
            {
                _keys.Touch(call.Name, call.Step.IsEphemeral).See(entry);
            }
        }
        catch (ScriptFailure failure)
        {
            Fail(failure.Message);
        }
    }

    /// <summary>Answers <see cref="ScriptStop.NeedsBucket"/> and <see cref="ScriptStop.NeedsPrefix"/>.</summary>
    /// <param name="entries">The entries.</param>
    /// <param name="isWhole">False: there are more than a run may read, which is an error of the script.</param>
    public void SupplyEntries(IReadOnlyList<ScriptValue> entries, bool isWhole)
    {
        try
        {
            if (!isWhole)
            {
                throw _meter.TooManyKeys();
            }

            _keys.Supply(_waiting!.Name, _waiting.Step.IsEphemeral, _waiting.Step.Kind, entries);
        }
        catch (ScriptFailure failure)
        {
            Fail(failure.Message);
        }
    }

    /// <summary>What it needs cannot be had: the script ends with this error.</summary>
    public void Refuse(string reason) => Fail(reason);

    private void Fail(string reason)
    {
        ScriptPosition position = Position;
        Error = new ScriptError(
            position.Line,
            position.Column,
            string.Create(
                CultureInfo.InvariantCulture,
                $"line {position.Line}, column {position.Column}: {reason}; nothing was applied"));
        End = ScriptStop.Failed;
    }

    /// <summary>Carries out one instruction. Not null: it must be supplied with something, and comes again.</summary>
    private ScriptStop? Execute(in ScriptInstruction instruction)
    {
        int operand = instruction.Operand;
        switch (instruction.Op)
        {
            case ScriptOp.Step:
                _meter.Step();
                break;
            case ScriptOp.Constant:
                Push(_code.Constants[operand]);
                break;
            case ScriptOp.Parameter:
                Push(_parameters[operand]
                    ?? throw new ScriptFailure($"the parameter @{_code.Parameters[operand]} was not given"));
                break;
            case ScriptOp.Load:
                Push(_variables[operand]
                    ?? throw new ScriptFailure($"the variable {_code.Variables[operand]} has no value yet"));
                break;
            case ScriptOp.Store:
                _variables[operand] = Pop();
                break;
            case ScriptOp.Pop:
                Pop();
                break;
            case ScriptOp.Operator:
                Operate((ScriptOperator)operand);
                break;
            case ScriptOp.Array:
                MakeArray(operand);
                break;
            case ScriptOp.Call:
                Call((ScriptFunction)(operand & 0xFFFF), operand >> 16);
                break;
            case ScriptOp.Guard:
                _meter.Step();
                Push(ScriptValue.Of(_data.DidNothing((ScriptGuard)operand)));
                break;
            case ScriptOp.Access:
                if (CarryOut(_code.AccessSteps[operand]) is { } stop)
                {
                    return stop;
                }

                break;
            case ScriptOp.Finish:
                Finish(_last, operand == 0);
                return null;
            case ScriptOp.Return:
                Finish(Pop(), operand == 0);
                return null;
            case ScriptOp.Throw:
                throw new ScriptFailure(TextOf(Pop()));
            default:
                Jump(in instruction);
                return null;
        }

        _at++;
        return null;
    }

    private void Jump(in ScriptInstruction instruction)
    {
        bool jumps = true;
        switch (instruction.Op)
        {
            case ScriptOp.JumpIfFalseElsePop or ScriptOp.JumpIfTrueElsePop:
                jumps = Operators.Boolean(Top.Plain, "'&&' and '||'") == (instruction.Op == ScriptOp.JumpIfTrueElsePop);
                if (!jumps)
                {
                    Pop();
                }

                break;
            case ScriptOp.RequireBool:
                Operators.Boolean(Top.Plain, "'&&' and '||'");
                jumps = false;
                break;
            case ScriptOp.JumpIfFalse:
                _meter.Step();
                jumps = !Operators.Boolean(Pop().Plain, "a condition");
                break;
            case ScriptOp.LoopStart:
                BeginLoop(Pop().Plain);
                jumps = false;
                break;
            case ScriptOp.LoopNext:
                jumps = !NextOfLoop();
                break;
            case ScriptOp.LoopEnd:
                _loops.Pop();
                jumps = false;
                break;
            default:
                _meter.Step();
                break;
        }

        _at = jumps ? instruction.Operand : _at + 1;
    }

    private void BeginLoop(ScriptValue items)
    {
        if (items.Kind != ScriptValueKind.Array)
        {
            throw new ScriptFailure($"'for' needs an array, but got {ScriptText.NameOf(items)}");
        }

        _loops.Push((items.Items, 0));
    }

    private bool NextOfLoop()
    {
        _meter.Step();
        (IReadOnlyList<ScriptValue> items, int next) = _loops.Pop();
        _loops.Push((items, next + 1));
        if (next >= items.Count)
        {
            return false;
        }

        Push(items[next]);
        return true;
    }

    private void Operate(ScriptOperator symbol)
    {
        _meter.Step();
        ScriptValue right = Pop().Plain;
        ScriptValue result = symbol is ScriptOperator.Not or ScriptOperator.Negate
            ? Operators.Apply(symbol, right)
            : Operators.Apply(symbol, symbol == ScriptOperator.Index ? Pop() : Pop().Plain, right, _meter);
        Push(result);
    }

    private void MakeArray(int count)
    {
        ScriptValue[] items = Take(count);
        _meter.Step();
        Push(_meter.Made(ScriptValue.Of(items)));
    }

    private void Call(ScriptFunction function, int count)
    {
        ScriptValue[] arguments = Take(count);
        for (int i = 0; i <= count; i++)
        {
            _meter.Step();
        }

        Push(function == ScriptFunction.CurrentTime
            ? ScriptValue.Of(_nowMs)
            : Functions.Call(function, arguments, _meter));
    }

    private ScriptStop? CarryOut(AccessStep step)
    {
        if (_waiting is null)
        {
            _meter.Step();
            _waiting = Gather(step);
        }

        if (_data.Run(_waiting) is { } outcome)
        {
            _waiting = null;
            _last = outcome;
            Push(outcome);
            return null;
        }

        Key = Encoding.UTF8.GetBytes(_waiting.Name);
        IsEphemeral = step.IsEphemeral;
        AtRevision = step is { Kind: ScriptAccess.Get or ScriptAccess.Exists, HasOperand: true }
            ? AccessMachine.RevisionAsked(_waiting.Operand!)
            : 0;
        return step.Kind switch
        {
            ScriptAccess.Bucket => ScriptStop.NeedsBucket,
            ScriptAccess.Prefix => ScriptStop.NeedsPrefix,
            _ => ScriptStop.NeedsKey,
        };
    }

    private AccessCall Gather(AccessStep step)
    {
        ScriptValue? revision = step.HasComparedRevision ? Pop() : null;
        ScriptValue? compared = step.HasCompared ? Pop() : null;
        long? ttlMs = step.HasTtl ? AccessMachine.Milliseconds(Pop(), "EX") : null;
        ScriptValue? operand = step.HasOperand ? Pop() : null;
        return new AccessCall(step, ScriptKeys.NameOf(Pop(), step.Kind), operand, ttlMs, compared, revision);
    }

    private void Finish(ScriptValue result, bool withWrites)
    {
        _writes = withWrites;
        Result = result;
        Writes = _writes ? _keys.Writes : [];
        End = ScriptStop.Finished;
    }

    private static string TextOf(ScriptValue value) =>
        ScriptText.Of(value.Plain) is { } text ? Encoding.UTF8.GetString(text.Span) : ScriptText.NameOf(value);

    private ScriptValue Top => _stack[^1];

    private void Push(ScriptValue value) => _stack.Add(value);

    private ScriptValue Pop()
    {
        ScriptValue top = _stack[^1];
        _stack.RemoveAt(_stack.Count - 1);
        return top;
    }

    private ScriptValue[] Take(int count)
    {
        ScriptValue[] values = [.. _stack.GetRange(_stack.Count - count, count)];
        _stack.RemoveRange(_stack.Count - count, count);
        return values;
    }
}
