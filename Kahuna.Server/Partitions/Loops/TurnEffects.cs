using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// What the groups of a loop bring out in one turn, gathered so that one log batch, one frame per peer and one frame
/// per client serve them all. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class TurnEffects
{
    private readonly TurnClock _clock;
    private readonly LogWatch _logWatch;
    private readonly LogBatch _log;
    private readonly PeerMessages _peers;
    private readonly ReplyFrames _replies;

    /// <param name="options">Sizes and times.</param>
    /// <param name="loop">The loop; it hears when answers of a client have left.</param>
    /// <param name="sink">The loop; it hears from the log.</param>
    /// <param name="ports">What the loop reaches the world through.</param>
    /// <param name="nowMs">Monotonic ms now.</param>
    public TurnEffects(LoopOptions options, IRoomListener loop, ILogSink sink, LoopPorts ports, long nowMs)
    {
        ILogWriter log = ports.Log.OpenWriter(sink);
        _clock = new TurnClock(options.PauseMs, nowMs);
        _logWatch = new LogWatch(options, loop.Number, ports, log);
        _log = new LogBatch(log);
        _peers = new PeerMessages(options, ports.Transport);
        _replies = new ReplyFrames(loop, ports.Trace);
        Parts = new TurnParts(_clock, _logWatch, _log, _peers, _replies);
    }

    /// <summary>The effects, each by its job, as the groups use them.</summary>
    public TurnParts Parts { get; }

    /// <summary>A turn begins.</summary>
    public void BeginTurn(long nowMs, bool isTick)
    {
        if (isTick)
        {
            _logWatch.Tick(_log.Submitted, _log.Persisted);
        }

        _clock.BeginTurn(nowMs);
        _logWatch.BeginTurn();
    }

    /// <summary>
    /// Submits the round's log batch, releases the promises that wait for nothing, and sends the peers' frames.
    /// </summary>
    public void Submit()
    {
        _peers.WaitFor(_log.Submit());
        _peers.ReleaseThrough(_log.Persisted);
        _peers.SendFrames();
    }

    /// <summary>
    /// The log holds everything up to <paramref name="batch"/>. The loop now tells the groups
    /// (<see cref="TryTakeConfirmed"/>), and then has what waited for the batch released
    /// (<see cref="ReleasePromises"/>): a group that stops when it is told must not promise anything.
    /// </summary>
    public void MarkPersisted(ulong batch) => _log.MarkPersisted(batch);

    /// <inheritdoc cref="LogBatch.TryTakeConfirmed"/>
    public bool TryTakeConfirmed(out Confirmation confirmation) => _log.TryTakeConfirmed(out confirmation);

    /// <summary>Releases the promises that waited for what is on stable storage now.</summary>
    public void ReleasePromises() => _peers.ReleaseThrough(_log.Persisted);

    /// <inheritdoc cref="PeerMessages.TryTakeOwn"/>
    public bool TryTakeOwn(out HeldMessage message) => _peers.TryTakeOwn(out message);

    /// <inheritdoc cref="PeerMessages.TryTakeUnreachable"/>
    public bool TryTakeUnreachable(out NodeId peer) => _peers.TryTakeUnreachable(out peer);

    /// <summary>Hands each client its frame.</summary>
    public void DeliverReplies() => _replies.Deliver();

    /// <summary>The turn ends: what is left leaves.</summary>
    public void EndTurn()
    {
        _peers.SendFrames();
        _replies.Deliver();
    }
}
