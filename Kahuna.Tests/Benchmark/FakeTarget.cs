using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// A target with every capability, whose answers are a function of the request. Thread-safe if the function is.
/// </summary>
internal sealed class FakeTarget(Func<FakeCall, string, ReadOnlyMemory<byte>, ValueTask<OperationResult>> answer)
    : ITarget,
        IKeyValueSession,
        ILockSession,
        ISequenceSession,
        IScriptSession,
        IBatchSession,
        ITransactionSession,
        IInteractiveSession,
        IPartitionedSession
{
    private long _token;
    private long _value;

    public FakeTarget()
        : this(static (_, _, _) => new ValueTask<OperationResult>(OperationResult.Success))
    {
    }

    public int Partitions { get; init; } = 1;

    public bool IsDisposed { get; private set; }

    /// <summary>The value of the sequence that is replaced by the one before it.</summary>
    public long WrongValue { get; init; }

    /// <summary>A target that gives the processor away before it answers, as a real one does.</summary>
    public static FakeTarget Yielding() => new(async static (_, _, _) =>
    {
        await Task.Yield();
        return OperationResult.Success;
    });

    public Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken) =>
        Task.FromResult(new TargetDescription("fake", "1.2.3", ["https://127.0.0.1:8082"]));

    public ITargetSession OpenSession(int worker) => this;

    public bool IsTimeout(Exception failure) => failure is TimeoutException;

    public ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value) =>
        answer(FakeCall.Set, key, value);

    public ValueTask<OperationResult> GetAsync(string key) => answer(FakeCall.Get, key, default);

    public async ValueTask<LockGrant?> TryAcquireAsync(string name, TimeSpan lease) =>
        await answer(FakeCall.Lock, name, default) == OperationResult.Success ? Grant() : null;

    public async ValueTask<LockGrant> AcquireAsync(string name, TimeSpan lease, TimeSpan wait)
    {
        await answer(FakeCall.Handover, name, default);
        return Grant();
    }

    public ValueTask<bool> ReleaseAsync() => new(true);

    public Task<SequenceStanding> CreateAsync(string name, CancellationToken cancellationToken) =>
        Task.FromResult(new SequenceStanding(Interlocked.Read(ref _value), CountsByOne: true));

    public async ValueTask<long> NextAsync(string name)
    {
        await answer(FakeCall.Sequence, name, default);
        long value = Interlocked.Increment(ref _value);
        return value == WrongValue ? value - 1 : value;
    }

    public Task<long?> ReadLatestAsync(string name) => Task.FromResult<long?>(Interlocked.Read(ref _value));

    public ValueTask<OperationResult> RunAsync(string text, ScriptInput input) =>
        answer(FakeCall.Script, input.Key ?? "", input.Value ?? default);

    public ValueTask<OperationResult> SetManyAsync(IReadOnlyList<string> keys, ReadOnlyMemory<byte> value) =>
        answer(FakeCall.Batch, string.Join(' ', keys), value);

    public ValueTask<OperationResult> CommitAsync(TransactionInput input) =>
        answer(FakeCall.Transaction, TextOf(input), input.Value);

    public ValueTask<OperationResult> InteractAsync(TransactionInput input) =>
        answer(FakeCall.Interactive, TextOf(input), input.Value);

    public Task<int> CountPartitionsAsync(CancellationToken cancellationToken) => Task.FromResult(Partitions);

    public ValueTask DisposeAsync()
    {
        IsDisposed = true;
        return ValueTask.CompletedTask;
    }

    private static string TextOf(TransactionInput input) =>
        $"reads {string.Join(' ', input.Reads)} writes {string.Join(' ', input.Writes)}";

    private LockGrant Grant() => new(Interlocked.Increment(ref _token), Ticks.Now, long.MaxValue);
}
