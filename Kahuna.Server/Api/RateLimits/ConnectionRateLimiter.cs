using System.Globalization;
using System.Net;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Api.RateLimits;

/// <summary>
/// Limits the rate of new sessions and idempotency keys of one connection, by token buckets of its own and those of its
/// address. A feature of the connection; any thread.
/// </summary>
/// <param name="node">The buckets of the node's client addresses.</param>
/// <param name="address">The remote address.</param>
internal sealed class ConnectionRateLimiter(NodeRateLimiter node, IPAddress address)
{
    private readonly Lock _lock = new();
    private readonly Queue<ulong> _inOrder = new();
    private readonly HashSet<ulong> _known = [];
    private TokenBucket? _sessions;
    private TokenBucket? _keys;

    /// <summary>
    /// Null if the command may proceed: it opens nothing, or a token was available. Otherwise the sentence of the
    /// refusal.
    /// </summary>
    public string? Refusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Session) || !command.Has(CommandFlags.Opening))
        {
            return null;
        }

        bool isKey = IdempotencyKey.IsKey(command.SessionId);
        lock (_lock)
        {
            // An SDK client marks every command as opening the session until the first reply arrives; a unary caller
            // always does.
            if (!isKey && _known.Contains(command.SessionId))
            {
                return null;
            }

            NodeTime now = node.Now;
            TokenBucket own = isKey
                ? _keys ??= new TokenBucket(SessionRateLimits.KeysOfConnection, now)
                : _sessions ??= new TokenBucket(SessionRateLimits.SessionsOfConnection, now);
            if (!own.TryTake(now))
            {
                return Sentence("connection", isKey, own.Rate);
            }

            if (!node.TryTake(address, isKey, now))
            {
                own.GiveBack();
                return Sentence(
                    "address", isKey, isKey ? SessionRateLimits.KeysOfAddress : SessionRateLimits.SessionsOfAddress);
            }

            if (!isKey)
            {
                Know(command.SessionId);
            }

            return null;
        }
    }

    private void Know(ulong session)
    {
        if (_inOrder.Count == SessionRateLimits.KnownSessionsMax)
        {
            _known.Remove(_inOrder.Dequeue());
        }

        _known.Add(session);
        _inOrder.Enqueue(session);
    }

    private static string Sentence(string whose, bool isKey, RateLimit rate) => string.Create(
        CultureInfo.InvariantCulture,
        $"The {whose} exceeds the rate limit of new {(isKey ? "idempotency keys" : "sessions")}: {rate.Burst:N0} at "
            + $"once and {rate.PerSecond:N0} per second. This call was not executed; try again in a second.");
}
