namespace Kahuna.Server.Transport;

/// <summary>
/// Rate limit for log messages: one per key and interval, and at most <paramref name="keysMax"/> keys, because keys may
/// contain text that strangers choose, such as addresses. Any thread.
/// </summary>
internal sealed class LogThrottle(TimeProvider time, TimeSpan interval, int keysMax = 256)
{
    private readonly Dictionary<string, Message> _messages = [];
    private readonly Lock _gate = new();

    /// <summary>Messages dropped for lack of keys since the last allowed one.</summary>
    private long _withoutRoom;

    /// <summary>Whether a message with this key may be written now.</summary>
    public bool Allows(string key) => Allows(key, out _);

    /// <summary>
    /// Whether a message with this key may be written now, and how many were suppressed since the last one.
    /// </summary>
    public bool Allows(string key, out long leftOut)
    {
        long now = time.GetTimestamp();
        lock (_gate)
        {
            leftOut = 0;
            if (_messages.TryGetValue(key, out Message? known) && time.GetElapsedTime(known.WrittenAt, now) < interval)
            {
                known.LeftOut++;
                return false;
            }

            if (known is null && _messages.Count >= keysMax && !MakeRoom(now))
            {
                _withoutRoom++;
                return false;
            }

            leftOut = (known?.LeftOut ?? 0) + _withoutRoom;
            _withoutRoom = 0;
            _messages[key] = new Message(now);
            return true;
        }
    }

    /// <summary>
    /// Forgets the keys whose interval has passed. Their suppressed messages are reported with the next message.
    /// </summary>
    private bool MakeRoom(long now)
    {
        foreach ((string key, Message message) in _messages)
        {
            if (time.GetElapsedTime(message.WrittenAt, now) >= interval)
            {
                _withoutRoom += message.LeftOut;
                _messages.Remove(key);
            }
        }

        return _messages.Count < keysMax;
    }

    /// <summary>When the last message of a key was written, and how many were suppressed since.</summary>
    private sealed class Message(long writtenAt)
    {
        public long WrittenAt { get; } = writtenAt;

        public long LeftOut { get; set; }
    }
}
