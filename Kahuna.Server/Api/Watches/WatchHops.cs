using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Where in the changes of one group those lie that concern a stream, in order, so that its reader looks at no others.
/// A bounded number of them: when there are more, the reader looks at everything behind the last one. Not thread-safe.
/// </summary>
internal sealed class WatchHops
{
    /// <summary>Places that are kept; each takes some 60 bytes.</summary>
    public const int Max = 64;

    private ChangeCursor[] _places = [];
    private int _first;
    private int _end;

    /// <summary>Number of places.</summary>
    public int Count => _end - _first;

    /// <summary>The first place; there is one.</summary>
    public ref readonly ChangeCursor First => ref _places[_first];

    /// <summary>What lies behind the last place may concern the stream, too.</summary>
    public bool IsCut { get; private set; }

    /// <summary>
    /// Without a cut: up to here nothing but the places concerns the stream. Set by who hands them over.
    /// </summary>
    public ChangeCursor Complete { get; set; }

    /// <summary>Adds the place of a change, behind the others.</summary>
    public void Add(scoped in ChangeCursor place)
    {
        if (Count == Max || IsCut)
        {
            IsCut = true;
            return;
        }

        if (_end == _places.Length)
        {
            InvariantException.Require(_first == 0, "places are added before any is taken");
            Array.Resize(ref _places, Math.Min(Max, Math.Max(4, 2 * _end)));
        }

        _places[_end++] = place;
    }

    /// <summary>From a point on, everything may concern the stream.</summary>
    public void Cut(ChangePoint from)
    {
        if (Count == 0)
        {
            Add(new ChangeCursor(from));
        }

        IsCut = true;
    }

    /// <summary>Takes the first place.</summary>
    public bool TryTake(out ChangeCursor place)
    {
        if (Count == 0)
        {
            place = default;
            return false;
        }

        place = _places[_first++];
        return true;
    }

    /// <summary>Gives all places to an empty list.</summary>
    public void MoveTo(WatchHops target)
    {
        (target._places, _places) = (_places, target._places);
        (target._first, target._end, target.IsCut) = (_first, _end, IsCut);
        Clear();
    }

    /// <summary>Forgets all places.</summary>
    public void Clear() => (_first, _end, IsCut) = (0, 0, false);
}
