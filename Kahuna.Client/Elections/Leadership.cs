using Kahuna.Client.Locks;
using Kahuna.Client.Results;

namespace Kahuna.Client.Elections;

/// <summary>An election that was won. It renews itself until it is resigned, disposed or lost. Any thread. What <see cref="LockHandle"/> says of clocks and loss holds here.</summary>
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

    /// <summary>What this candidate has said of itself.</summary>
    public KahunaValue Candidate { get; }

    /// <summary>Greater than the token of every leader before.</summary>
    public long Token => _handle.Token;

    /// <summary>What a write carries so that it counts only while this leadership lasts.</summary>
    public Fence Fence => _handle.Fence;

    /// <summary>Cancelled before anybody else can lead, and on resignation.</summary>
    public CancellationToken LostToken => _handle.LostToken;

    /// <summary>For how long this candidate surely leads, if no renewal succeeds; zero when the leadership is over.</summary>
    public TimeSpan Remaining => _handle.Remaining;

    /// <summary>Ends the leadership, so that the candidate who has campaigned for the longest time leads. <see cref="LostToken"/> is cancelled first.</summary>
    /// <param name="ct">Ends the wait; the leadership may still be given back.</param>
    /// <returns>True when this candidate led until now; false when the leadership was over already.</returns>
    /// <exception cref="KahunaException">The call failed: nobody else may lead until the lease ends. It can be tried again.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<bool> ResignAsync(CancellationToken ct = default) => _handle.ReleaseAsync(ct);

    /// <summary>Resigns, if that was not done. Never throws.</summary>
    public ValueTask DisposeAsync() => _handle.DisposeAsync();
}
