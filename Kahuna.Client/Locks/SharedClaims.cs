namespace Kahuna.Client.Locks;

/// <summary>
/// Counts the calls of one named owner that wait for one lock. They share one claim, so only the last of them that ends
/// without the lock abandons the place. Part of a <see cref="KahunaClient"/>; any thread.
/// </summary>
internal sealed class SharedClaims
{
    private readonly Lock _lock = new();
    private readonly Dictionary<(string Resource, Durability Durability, string Owner), int> _calls = [];

    /// <summary>Starts a call. One that does not wait is not counted.</summary>
    public Call Enter((string Resource, Durability Durability, string Owner) key, bool waits)
    {
        if (waits)
        {
            lock (_lock)
            {
                _calls[key] = _calls.GetValueOrDefault(key) + 1;
            }
        }

        return new Call(this, key, waits);
    }

    /// <summary>One of the calls, until it ends.</summary>
    internal sealed class Call(SharedClaims all, (string Resource, Durability Durability, string Owner) key, bool waits)
        : IDisposable
    {
        private bool _isOver = !waits;

        /// <summary>Ends the call; true when no other one waits.</summary>
        public bool ExitAsLast()
        {
            lock (all._lock)
            {
                int left = all._calls.GetValueOrDefault(key);
                if (!_isOver)
                {
                    _isOver = true;
                    left--;
                    if (left == 0)
                    {
                        all._calls.Remove(key);
                    }
                    else
                    {
                        all._calls[key] = left;
                    }
                }

                return left == 0;
            }
        }

        public void Dispose() => ExitAsLast();
    }
}
