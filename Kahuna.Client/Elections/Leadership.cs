using Kahuna.Client.Locks;

namespace Kahuna.Client.Elections;

/// <summary>
/// A won election. It renews itself until it is resigned, disposed or lost; clocks and loss are those of a
/// <see cref="LockHandle"/>. Any thread.
/// </summary>
public sealed class Leadership : IAsyncDisposable
{
    private readonly LockHandle _handle;

    internal Leadership(LockHandle handle, KahunaValue candidate)
    {
        _handle = handle;
        Candidate = candidate;
    }

    /// <summary>Name of the election.</summary>
    public string Name => _handle.Resource;

    /// <summary>What this candidate says about itself.</summary>
    public KahunaValue Candidate { get; }

    /// <summary>The fencing token, greater than that of every earlier leader.</summary>
    public FencingToken Token => _handle.Token;

    /// <summary>Makes a write count only while this leadership lasts.</summary>
    public Fence Fence => _handle.Fence;

    /// <summary>Cancelled before anybody else can lead, and on resignation.</summary>
    public CancellationToken LostToken => _handle.LostToken;

    /// <summary>
    /// How long this candidate certainly leads without a further renewal; zero when the leadership is over.
    /// </summary>
    public TimeSpan Remaining => _handle.Remaining;

    /// <summary>
    /// Ends the leadership, so that the candidate who has campaigned longest leads. <see cref="LostToken"/> is
    /// cancelled first.
    /// </summary>
    /// <param name="ct">Ends the wait; the leadership may still end.</param>
    /// <returns>True when this candidate still led; false when the leadership was over.</returns>
    /// <exception cref="KahunaException">
    /// The call failed: nobody else may lead until the lease ends. The call may be repeated.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<bool> ResignAsync(CancellationToken ct = default) => _handle.ReleaseAsync(ct);

    /// <summary>Resigns, unless that was done. Never throws.</summary>
    public ValueTask DisposeAsync() => _handle.DisposeAsync();
}
