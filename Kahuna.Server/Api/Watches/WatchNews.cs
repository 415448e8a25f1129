using Kahuna.Server.Partitions.Changes;
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
    private readonly WatchHops?[] _hops = new WatchHops?[dispatcher.Groups];
    private readonly ChangePoint?[] _told = new ChangePoint?[dispatcher.Groups];

    /// <summary>A change concerns the stream.</summary>
    /// <param name="groupIndex">The group.</param>
    /// <param name="place">
    /// Where the change lies. None before it concerns the stream that was not told before; a place that was told
    /// already is ignored.
    /// </param>
    public void Tell(int groupIndex, scoped in ChangeCursor place)
    {
        lock (_lock)
        {
            if (_told[groupIndex] is { } told && place.Point <= told)
            {
                return;
            }

            _told[groupIndex] = place.Point;
            WatchHops hops = _hops[groupIndex] ??= new WatchHops();
            hops.Add(in place);
            if (hops.Count > 1)
            {
                return;
            }
        }

        wake();
    }

    /// <summary>Every change from a point on may concern the stream.</summary>
    public void TellAll(int groupIndex, ChangePoint from)
    {
        lock (_lock)
        {
            WatchHops hops = _hops[groupIndex] ??= new WatchHops();
            bool hadNews = hops.Count > 0;
            hops.Cut(from);
            if (hadNews)
            {
                return;
            }
        }

        wake();
    }

    /// <inheritdoc/>
    public bool TakeNews(int groupIndex, WatchHops hops, out ChangeCursor passed)
    {
        // First of all: what concerns the stream up to here was told already.
        passed = dispatcher.DispatchedOf(groupIndex);
        lock (_lock)
        {
            if (_hops[groupIndex] is not { Count: > 0 } told)
            {
                return false;
            }

            told.MoveTo(hops);
            hops.Complete = passed;
            passed = hops.First;
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
