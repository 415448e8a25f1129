using System.Globalization;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>Counts what one run uses, and ends it when that is more than its budget. Not thread-safe.</summary>
internal sealed class ScriptMeter(ScriptBudget budget)
{
    /// <summary>How much work of a long operation is one step.</summary>
    private const int WorkPerStep = 64;

    private long _steps;
    private long _bytes;
    private int _keys;
    private int _writes;
    private long _writtenBytes;

    /// <summary>Bytes that the run may still make.</summary>
    public long BytesLeft => budget.Bytes - _bytes;

    /// <summary>The run has used more than it may.</summary>
    public bool IsExceeded { get; private set; }

    /// <summary>Steps so far.</summary>
    public int Steps => (int)Math.Min(_steps, int.MaxValue);

    /// <summary>Counts one step.</summary>
    public void Step()
    {
        if (++_steps > budget.Steps)
        {
            throw Exceeded("takes more steps", budget.Steps);
        }
    }

    /// <summary>Counts the steps of work on this many bytes or items, before it is done.</summary>
    public void Work(long amount)
    {
        _steps += amount / WorkPerStep;
        if (_steps > budget.Steps)
        {
            throw Exceeded("takes more steps", budget.Steps);
        }
    }

    /// <summary>Counts bytes, before they are made.</summary>
    public void Bytes(long amount)
    {
        _bytes += amount;
        if (_bytes > budget.Bytes)
        {
            throw Exceeded("makes and reads more bytes", budget.Bytes);
        }
    }

    /// <summary>Counts a value that was made or supplied, and the work of making it.</summary>
    public ScriptValue Made(ScriptValue value)
    {
        Bytes(value.Cost);
        Work(value.Cost);
        return value;
    }

    /// <summary>Counts keys.</summary>
    public void Keys(int amount)
    {
        _keys += amount;
        if (_keys > budget.Keys)
        {
            throw Exceeded("touches more keys", budget.Keys);
        }
    }

    /// <summary>The error that a bucket or prefix has more keys than a run may touch.</summary>
    public ScriptFailure TooManyKeys() => Exceeded("touches more keys", budget.Keys);

    /// <summary>Checks the length of a range before it is made.</summary>
    public void Range(decimal length)
    {
        if (length > budget.RangeLength)
        {
            throw Exceeded("makes a longer range", budget.RangeLength);
        }
    }

    /// <summary>Checks a value that is to be written.</summary>
    public void Value(int bytes)
    {
        if (bytes > budget.ValueBytesMax)
        {
            throw Exceeded("writes a value with more bytes", budget.ValueBytesMax);
        }
    }

    /// <summary>Counts the first write of a key.</summary>
    public void Write()
    {
        if (++_writes > budget.Writes)
        {
            throw Exceeded("writes more keys", budget.Writes);
        }
    }

    /// <summary>Counts bytes that are written, or are no longer.</summary>
    public void Written(long bytes)
    {
        _writtenBytes += bytes;
        if (_writtenBytes > budget.WrittenBytes)
        {
            throw Exceeded("writes more bytes", budget.WrittenBytes);
        }
    }

    private ScriptFailure Exceeded(string what, long limit)
    {
        IsExceeded = true;
        return new(string.Create(
            CultureInfo.InvariantCulture, $"the script {what} than its budget of {limit:N0} allows"));
    }
}
