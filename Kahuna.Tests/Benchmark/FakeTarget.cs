using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Verification;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Tests.Benchmark;

/// <summary>A target whose answers are a function of the request. Thread-safe if the function is.</summary>
internal sealed class FakeTarget(Func<Operation, string, ReadOnlyMemory<byte>, ValueTask<OperationResult>> answer) : ITarget, ITargetSession
{
    public FakeTarget()
        : this(static (_, _, _) => new ValueTask<OperationResult>(OperationResult.Success))
    {
    }

    public bool IsDisposed { get; private set; }

    /// <summary>What a verified run shows.</summary>
    public IFindings? Findings { get; init; }

    /// <summary>A target that gives the processor away before it answers, as a real one does.</summary>
    public static FakeTarget Yielding() => new(async static (_, _, _) =>
    {
        await Task.Yield();
        return OperationResult.Success;
    });

    public Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken) =>
        Task.FromResult(new TargetDescription("fake", "1.2.3", ["https://127.0.0.1:8082"]));

    public ITargetSession OpenSession(int worker) => this;

    public Task<IFindings?> VerifyAsync() => Task.FromResult(Findings);

    public bool IsTimeout(Exception failure) => failure is TimeoutException;

    public ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value) => answer(Operation.Set, key, value);

    public ValueTask<OperationResult> GetAsync(string key) => answer(Operation.Get, key, default);

    public ValueTask<OperationResult> NextAsync(string name) => answer(Operation.Sequence, name, default);

    public ValueTask DisposeAsync()
    {
        IsDisposed = true;
        return ValueTask.CompletedTask;
    }
}
