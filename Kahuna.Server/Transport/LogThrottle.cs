namespace Kahuna.Server.Transport;

/// <summary>Lets the same message through once in an interval, however often it happens. Any thread.</summary>
internal sealed class LogThrottle(TimeProvider time, TimeSpan interval)
{
    /// <summary>Keys may contain foreign addresses; their number is bounded by forgetting all of them.</summary>
    private const int KeysMax = 256;

    private readonly Dictionary<string, long> _last = [];
    private readonly Lock _gate = new();

    public bool Allows(string key)
    {
        long now = time.GetTimestamp();
        lock (_gate)
        {
            if (_last.TryGetValue(key, out long last) && time.GetElapsedTime(last, now) < interval)
            {
                return false;
            }

            if (_last.Count >= KeysMax)
            {
                _last.Clear();
            }

            _last[key] = now;
            return true;
        }
    }
}
