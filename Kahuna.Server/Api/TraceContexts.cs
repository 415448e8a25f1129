using System.Diagnostics;

namespace Kahuna.Server.Api;

/// <summary>
/// The traces of the operations that are under way on a node: an operation carries the number of a place, in which the
/// activity of its caller is kept (docs/adr/0052-slow-log-and-traces.md). Places and operations per second are limited,
/// because clients decide what is traced; beyond that, operations are carried out without a trace. Any thread.
/// </summary>
/// <param name="clock">The node's clock.</param>
/// <param name="isListened">Somebody records activities of the node.</param>
/// <param name="ratio">The share of the operations without a caller's trace that get one of their own, 0 to 1.</param>
internal sealed class TraceContexts(TimeProvider clock, Func<bool> isListened, double ratio = 0)
{
    /// <summary>Operations under way that are traced, at most.</summary>
    public const int PlacesMax = 4_095;

    /// <summary>Operations that begin to be traced in a second, at most.</summary>
    public const int PerSecondMax = 1_000;

    /// <summary>
    /// After this time a place is used again, although its operation was not answered: its caller is gone.
    /// </summary>
    internal static readonly TimeSpan Longest = TimeSpan.FromMinutes(15);

    private readonly Lock _lock = new();
    private readonly List<ushort> _free = [];
    private readonly (ActivityContext Context, long At)[] _places =
        new (ActivityContext Context, long At)[PlacesMax + 1];
    private int _used;
    private long _second;
    private int _begun;

    /// <summary>Somebody records activities of the node.</summary>
    public bool IsOn => isListened();

    /// <summary>Decides whether an operation gets a trace of its own; 0: it does not.</summary>
    public ushort Sample() =>
        isListened() && Random.Shared.NextDouble() < ratio ? Begin(default) : (ushort)0;

    /// <summary>
    /// An operation begins that is traced. Returns its place; 0: there is none, and it is not traced.
    /// </summary>
    /// <param name="parent">The caller's activity; the default: there is none.</param>
    public ushort Begin(in ActivityContext parent)
    {
        long now = clock.GetTimestamp();
        lock (_lock)
        {
            if (!MayBegin(now) || TakePlace(now) is not (> 0 and var place))
            {
                return 0;
            }

            _places[place] = (parent, Math.Max(1, now));
            return place;
        }
    }

    /// <summary>An operation ends; its place is free. False: it was ended before.</summary>
    public bool TryEnd(ushort place, out ActivityContext parent)
    {
        lock (_lock)
        {
            (parent, long at) = _places[place];
            if (at == 0)
            {
                return false;
            }

            _places[place] = default;
            _free.Add(place);
            return true;
        }
    }

    private bool MayBegin(long now)
    {
        long second = now / clock.TimestampFrequency;
        if (second != _second)
        {
            (_second, _begun) = (second, 0);
        }

        return _begun++ < PerSecondMax;
    }

    private ushort TakePlace(long now)
    {
        if (_free.Count == 0 && _used == PlacesMax)
        {
            Reclaim(now);
        }

        if (_free.Count > 0)
        {
            ushort place = _free[^1];
            _free.RemoveAt(_free.Count - 1);
            return place;
        }

        return _used < PlacesMax ? (ushort)++_used : (ushort)0;
    }

    private void Reclaim(long now)
    {
        for (ushort place = 1; place <= PlacesMax; place++)
        {
            if (_places[place].At != 0 && clock.GetElapsedTime(_places[place].At, now) > Longest)
            {
                _places[place] = default;
                _free.Add(place);
            }
        }
    }
}
