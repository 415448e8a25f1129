using Grpc.Core;

namespace Kahuna.Benchmark.Targets.Etcd;

/// <summary>
/// A call that etcd refused, or that did not reach it or was not answered in time. The message is for the user.
/// </summary>
internal sealed class EtcdException(RpcException cause) : Exception(Describe(cause.Status), cause)
{
    /// <summary>How the call ended.</summary>
    public StatusCode Code { get; } = CodeOf(cause.Status);

    /// <summary>
    /// What the client calls INTERNAL although it knows better: a deadline that passes while the reply comes takes it
    /// away from the client, and "no error" is what a server says that stops (RFC 9113, section 6.8).
    /// </summary>
    private static StatusCode CodeOf(Status status) => status.DebugException switch
    {
        ObjectDisposedException => StatusCode.DeadlineExceeded,
        { InnerException: HttpProtocolException { ErrorCode: 0 } } => StatusCode.Unavailable,
        _ => status.StatusCode,
    };

    /// <summary>What the network says is plainer than what the gRPC client makes of it.</summary>
    private static string Describe(Status status)
    {
        StatusCode code = CodeOf(status);
        string why = status.DebugException is HttpRequestException failure ? Describe(failure)
            : code == StatusCode.DeadlineExceeded && (code != status.StatusCode || status.Detail.Length == 0)
                ? "The deadline passed."
            : status.Detail;
        return why.Length == 0 ? code.ToString() : $"{code}: {why}";
    }

    /// <summary>The messages of an exception and of those inside it, each once.</summary>
    private static string Describe(HttpRequestException failure)
    {
        string text = failure.Message;
        for (Exception? inner = failure.InnerException; inner is not null; inner = inner.InnerException)
        {
            if (!text.Contains(inner.Message, StringComparison.Ordinal))
            {
                text = $"{text} {inner.Message}";
            }
        }

        return text;
    }
}
