using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Which groups have news for one stream. The dispatcher tells it; the stream's reader takes it. Any thread.
/// </summary>
/// <param name="dispatcher">The node's dispatcher.</param>
/// <param name="wake">Wakes the stream: at once, from any thread.</param>
internal sealed class WatchNews(WatchDispatcher dispatcher, Action wake) : IWatchDispatch
{
    private readonly Lock _lock = new();
    private readonly (bool HasNews, ChangePoint Before)[] _groups =
        new (bool HasNews, ChangePoint Before)[dispatcher.Groups];

    /// <summary>A change concerns the stream, or may do so; none up to a point does that was not told before.</summary>
    public void Tell(int groupIndex, ChangePoint before)
    {
        lock (_lock)
        {
            if (_groups[groupIndex].HasNews)
            {
                return;
            }

            _groups[groupIndex] = (true, before);
        }

        wake();
    }

    /// <inheritdoc/>
    public bool TakeNews(int groupIndex, out ChangePoint passed)
    {
        // First of all: what concerns the stream up to here was told already.
        passed = dispatcher.DispatchedOf(groupIndex);
        lock (_lock)
        {
            (bool hasNews, ChangePoint before) = _groups[groupIndex];
            if (!hasNews)
            {
                return false;
            }

            passed = before;
            _groups[groupIndex] = default;
            return true;
        }
    }

    /// <inheritdoc/>
    public void Add(Durability durability, WatchScope scope, byte[] name) =>
        dispatcher.Add(durability, scope, name, this);

    /// <inheritdoc/>
    public void Remove(Durability durability, WatchScope scope, byte[] name) =>
        dispatcher.Remove(durability, scope, name, this);
}
