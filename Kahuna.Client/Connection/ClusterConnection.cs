using Kahuna.Client.Results;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>Conn.</summary>
internal sealed class ClusterConnection(ConnectionSettings settings, ConnectionPorts ports, ILogger logger) : IAsyncDisposable
{
    public ValueTask<TResult> Run<TResult>(Operation<TResult> operation, CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>
    {
        ValueTask<TResult> task = operation.Task(settings.InlineContinuations);
        ct.ThrowIfCancellationRequested();
        operation.Fail(Failures.Unreachable(ports.ToString()!, settings.RequestTimeout));
        return task;
    }

    public ValueTask<ClusterDescription> DescribeAsync(CancellationToken ct) => logger is null ? default : throw Failures.Unreachable("", settings.ConnectTimeout);

    public ValueTask DisposeAsync() => default;
}
