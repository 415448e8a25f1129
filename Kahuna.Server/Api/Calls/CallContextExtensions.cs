using Grpc.Core;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Calls;

/// <summary>Properties of a call that the gRPC package does not expose. Stateless.</summary>
internal static class CallContextExtensions
{
    /// <summary>
    /// Time until the deadline on the monotonic clock; null without a deadline, zero when it has passed.
    /// </summary>
    public static TimeSpan? TimeLeft(this ServerCallContext context) => GuardedCall.Of(context).TimeLeft;

    /// <summary>One header of the request; null if absent. The last of several values counts.</summary>
    public static string? Header(this ServerCallContext context, string name) =>
        context.GetHttpContext().Request.Headers.TryGetValue(name, out StringValues values) && values.Count > 0
            ? values[^1]
            : null;
}
