using System.Runtime.CompilerServices;
using Kahuna.Client.Scripts;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>Runs scripts through the public client. Owned by a session, which has one call at a time.</summary>
internal sealed class ScriptCalls(ScriptClient scripts)
{
    /// <summary>One table for all calls: every call of a run names the same parameters.</summary>
    private readonly ScriptParameters _parameters = [];

    /// <inheritdoc cref="IScriptSession.RunAsync"/>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> RunAsync(string text, ScriptInput input)
    {
        if (input.Key is { } key)
        {
            _parameters["key"] = key;
        }

        if (input.Value is { } value)
        {
            _parameters["value"] = value;
        }

        if (input.Number is { } number)
        {
            _parameters["n"] = number;
        }

        await scripts.RunAsync(text, _parameters).ConfigureAwait(false);
        return OperationResult.Success;
    }
}
