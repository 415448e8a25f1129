using Grpc.Core;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Calls;

/// <summary>Checks the request headers that the gRPC package ignores. Stateless; any thread.</summary>
internal static class CallHeaders
{
    private const int TextMax = 9;

    /// <summary>The timeout in <c>grpc-timeout</c>; null: none.</summary>
    /// <exception cref="RpcException">INTERNAL: the header is malformed. DEADLINE_EXCEEDED: the timeout is
    /// zero.</exception>
    public static TimeSpan? ReadTimeout(IHeaderDictionary headers)
    {
        StringValues text = headers["grpc-timeout"];
        if (text.Count == 0)
        {
            return null;
        }

        TimeSpan timeout = Decode(text.ToString())
            ?? throw new RpcException(new Status(
                StatusCode.Internal,
                $"The grpc-timeout '{text}' is malformed; it must be one to eight digits and a unit."));
        return timeout > TimeSpan.Zero
            ? timeout
            : throw new RpcException(
                new Status(StatusCode.DeadlineExceeded, "The deadline passed before the call began."));
    }

    /// <summary>Refuses an unknown compression, and names the supported ones.</summary>
    /// <exception cref="RpcException">UNIMPLEMENTED.</exception>
    public static void CheckEncoding(HttpContext http)
    {
        if (http.Request.Headers.GrpcEncoding is { Count: > 0 } encoding
            && encoding.ToString() is not ("identity" or "gzip"))
        {
            http.Response.Headers.GrpcAcceptEncoding = "identity,gzip";
            throw new RpcException(new Status(
                StatusCode.Unimplemented, $"The grpc-encoding '{encoding}' is not supported; identity and gzip are."));
        }
    }

    /// <summary>
    /// Parses one to eight digits and a unit (H, M, S, m, u, n); null if the text is malformed. Larger times become
    /// <see cref="TimeSpan.MaxValue"/>.
    /// </summary>
    public static TimeSpan? Decode(string text)
    {
        if (text.Length is < 2 or > TextMax || text.AsSpan(0, text.Length - 1).ContainsAnyExceptInRange('0', '9'))
        {
            return null;
        }

        long amount = long.Parse(text.AsSpan(0, text.Length - 1), System.Globalization.CultureInfo.InvariantCulture);
        long? unit = text[^1] switch
        {
            'H' => TimeSpan.TicksPerHour,
            'M' => TimeSpan.TicksPerMinute,
            'S' => TimeSpan.TicksPerSecond,
            'm' => TimeSpan.TicksPerMillisecond,
            'u' => TimeSpan.TicksPerMicrosecond,
            _ => null,
        };
        return text[^1] == 'n' ? new TimeSpan((amount + TimeSpan.NanosecondsPerTick - 1) / TimeSpan.NanosecondsPerTick)
            : unit is { } ticks ? new TimeSpan(amount > long.MaxValue / ticks ? long.MaxValue : amount * ticks)
            : null;
    }
}
