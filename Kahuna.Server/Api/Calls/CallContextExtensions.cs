using Grpc.Core;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Calls;

/// <summary>What services ask of a call beside what the gRPC package tells. Stateless.</summary>
internal static class CallContextExtensions
{
    /// <summary>What is left until the deadline, by a clock that nobody sets; null when the caller set none, zero when it has passed.</summary>
    public static TimeSpan? TimeLeft(this ServerCallContext context) => GuardedCall.Of(context).TimeLeft;

    /// <summary>One header of the request; null when it was not sent. Of several, the last counts.</summary>
    public static string? Header(this ServerCallContext context, string name) =>
        context.GetHttpContext().Request.Headers.TryGetValue(name, out StringValues values) && values.Count > 0 ? values[^1] : null;
}
