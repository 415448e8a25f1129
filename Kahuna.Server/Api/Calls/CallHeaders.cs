using Grpc.Core;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Calls;

/// <summary>What the headers of a call say of it that the gRPC package would pass over. Stateless; any thread.</summary>
internal static class CallHeaders
{
    private const int TextMax = 9;

    /// <summary>The time that the caller gives the call with <c>grpc-timeout</c>; null: as much as it takes.</summary>
    /// <exception cref="RpcException">INTERNAL: the header is no time; DEADLINE_EXCEEDED: it is none at all.</exception>
    public static TimeSpan? ReadTimeout(IHeaderDictionary headers)
    {
        StringValues text = headers["grpc-timeout"];
        if (text.Count == 0)
        {
            return null;
        }

        TimeSpan timeout = Decode(text.ToString())
            ?? throw new RpcException(new Status(StatusCode.Internal, $"The grpc-timeout '{text}' is not at most eight digits and a unit."));
        return timeout > TimeSpan.Zero ? timeout : throw new RpcException(new Status(StatusCode.DeadlineExceeded, "The deadline passed before the call began."));
    }

    /// <summary>Refuses a compression that the server does not know, and names those that it does.</summary>
    /// <exception cref="RpcException">UNIMPLEMENTED.</exception>
    public static void CheckEncoding(HttpContext http)
    {
        if (http.Request.Headers.GrpcEncoding is { Count: > 0 } encoding && encoding.ToString() is not ("identity" or "gzip"))
        {
            http.Response.Headers.GrpcAcceptEncoding = "identity,gzip";
            throw new RpcException(new Status(StatusCode.Unimplemented, $"The grpc-encoding '{encoding}' is not understood; identity and gzip are."));
        }
    }

    /// <summary>Reads one to eight digits and a unit (H, M, S, m, u, n); null when it is none. Times past the range of <see cref="TimeSpan"/> become its largest value.</summary>
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
