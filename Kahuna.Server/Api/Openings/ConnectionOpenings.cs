using System.Globalization;
using System.Net;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Server.Api.Openings;

/// <summary>
/// Says whether a connection may begin another session or idempotency key: token buckets of its own, and those of its address. A feature of the connection; any thread.
/// </summary>
/// <param name="node">The node's addresses.</param>
/// <param name="address">Where the connection comes from.</param>
internal sealed class ConnectionOpenings(NodeOpenings node, IPAddress address)
{
    private readonly Lock _lock = new();
    private readonly Queue<ulong> _inOrder = new();
    private readonly HashSet<ulong> _known = [];
    private TokenBucket? _sessions;
    private TokenBucket? _keys;

    /// <summary>Null when a command may go on: it begins nothing, or something that there is a token for. Otherwise the sentence of its refusal; it is not to be carried out.</summary>
    public string? Refusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Session) || !command.Has(CommandFlags.Opening))
        {
            return null;
        }

        bool isKey = IdempotencyKey.IsKey(command.SessionId);
        lock (_lock)
        {
            // Until the first answer comes an SDK client says of each command that it begins the session, and a unary caller always does.
            if (!isKey && _known.Contains(command.SessionId))
            {
                return null;
            }

            long nowMs = node.NowMs;
            TokenBucket own = isKey ? _keys ??= new TokenBucket(OpeningLimits.KeysOfConnection, nowMs) : _sessions ??= new TokenBucket(OpeningLimits.SessionsOfConnection, nowMs);
            if (!own.TryTake(nowMs))
            {
                return Sentence("connection", isKey, own.Rate);
            }

            if (!node.TryTake(address, isKey, nowMs))
            {
                own.GiveBack();
                return Sentence("address", isKey, isKey ? OpeningLimits.KeysOfAddress : OpeningLimits.SessionsOfAddress);
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
        if (_inOrder.Count == OpeningLimits.KnownSessionsMax)
        {
            _known.Remove(_inOrder.Dequeue());
        }

        _known.Add(session);
        _inOrder.Enqueue(session);
    }

    private static string Sentence(string whose, bool isKey, OpeningRate rate) => string.Create(
        CultureInfo.InvariantCulture,
        $"The {whose} has begun more {(isKey ? "idempotency keys" : "sessions")} than one may: {rate.Burst:N0} at once and {rate.PerSecond:N0} per second. This call was not carried out; try again in a second.");
}
