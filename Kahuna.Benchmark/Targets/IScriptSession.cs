namespace Kahuna.Benchmark.Targets;

/// <summary>A session of a target that runs scripts. As <see cref="ITargetSession"/>.</summary>
internal interface IScriptSession : ITargetSession
{
    /// <summary>Runs a script, whatever it returns. A script that ends with an error is a failure.</summary>
    ValueTask<OperationResult> RunAsync(string text, ScriptInput input);
}
