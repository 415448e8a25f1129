using Kahuna.Server.Primitives;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Says whether one stream's next changes wait a moment, so that a frame carries more of them
/// (docs/adr/0038-watches.md). A frame costs the node, its reader and so all writes of the machine as much as
/// dozens of changes. Changes that come now and then, and those that come in large numbers anyway, never wait. One
/// thread at a time; <see cref="IsSlow"/> from any.
/// </summary>
internal sealed class WatchPace
{
    /// <summary>How long changes of a slow stream wait at most for others, in milliseconds.</summary>
    public const int WaitMs = 5;

    /// <summary>The frames and changes of so many milliseconds are looked at together.</summary>
    public const int WindowMs = 50;

    /// <summary>With this many frames in a window, the changes of the next ones wait.</summary>
    public const int FramesToSlow = 10;

    /// <summary>With fewer frames in a window they no longer wait.</summary>
    public const int FramesToStay = 5;

    /// <summary>With this many changes in a window nothing waits: frames are full enough without it.</summary>
    public const int ChangesMax = 300;

    private volatile bool _isSlow;
    private NodeTime _began;
    private int _frames;
    private int _changes;

    /// <summary>The next changes wait for <see cref="WaitMs"/>.</summary>
    public bool IsSlow => _isSlow;

    /// <summary>A frame was made.</summary>
    /// <param name="now">When.</param>
    /// <param name="changes">How many changes it carries.</param>
    public void Count(NodeTime now, int changes)
    {
        if (now - _began >= WindowMs)
        {
            // When the window began long ago, what it has counted says nothing about now.
            _isSlow = now - _began < 2 * WindowMs
                && _frames >= (_isSlow ? FramesToStay : FramesToSlow)
                && _changes < ChangesMax;
            (_began, _frames, _changes) = (now, 0, 0);
        }

        _frames++;
        _changes += changes;
    }
}
