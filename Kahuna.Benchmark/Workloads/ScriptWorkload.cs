using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Runs a script with a random key, a random payload and the number of the run as its parameters. Stateless.
/// </summary>
internal sealed class ScriptWorkload : Workload
{
    public override string Name => "script";

    public override IReadOnlyList<string> Rows { get; } = ["script"];

    public override KeyUse KeyUse => KeyUse.Written;

    public override bool TakesScript => true;

    public override bool IsServedBy(TargetKind target) => target is TargetKind.Kahuna or TargetKind.Redis;

    public override string? Conflict(BenchOptions options)
    {
        Read(options, out string? error);
        return error;
    }

    public override WorkloadRun Begin(BenchOptions options) => new Run(
        this,
        options,
        Read(options, out string? error) ?? throw new ArgumentException(error, nameof(options)));

    /// <summary>The script of <c>--script</c>, or one that reads and writes a key.</summary>
    private static BenchScript? Read(BenchOptions options, out string? error)
    {
        if (options.Target == TargetKind.Redis)
        {
            error = null;
            return BenchScript.OfRedis(
                options.ScriptText
                    ?? "redis.call('GET', KEYS[1])\nreturn redis.call('SET', KEYS[1], ARGV[1])\n");
        }

        string text = options.ScriptText
            ?? (options.Durability == BenchOptions.Ephemeral
                ? "eget @key\neset @key @value\n"
                : "get @key\nset @key @value\n");
        return BenchScript.TryParse(text, options, out error);
    }

    private sealed class Run(Workload workload, BenchOptions options, BenchScript script)
        : WorkloadRun(workload, options)
    {
        private long _runs;

        public BenchScript Script => script;

        public override Requester Open(ITargetSession session) => new Scripts(this, (IScriptSession)session);

        /// <summary>The number of the next run, from 1 on, over all workers.</summary>
        public long TakeNumber() => Interlocked.Increment(ref _runs);
    }

    private sealed class Scripts(Run run, IScriptSession session) : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw)
        {
            BenchScript script = run.Script;
            ScriptInput input = new(
                script.TakesKey ? run.Keys.Choose(draw) : null,
                script.TakesValue ? run.Payloads.Choose(draw.Bits) : default(ReadOnlyMemory<byte>?),
                script.TakesNumber ? run.TakeNumber() : null);
            return session.RunAsync(script.Text, input);
        }
    }
}
