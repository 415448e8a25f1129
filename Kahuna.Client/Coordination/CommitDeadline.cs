using Kahuna.Client.Connection;

namespace Kahuna.Client.Coordination;

/// <summary>Until when a transaction is tried. Immutable.</summary>
internal sealed class CommitDeadline
{
    /// <summary>
    /// The groups may abort a prepared transaction after this many ms: long enough for a change of leaders, and short
    /// enough for those who wait for its keys.
    /// </summary>
    public const int PrepareMs = 5_000;

    /// <summary>A step that must be taken has at least this time: without it, the outcome would not be known.</summary>
    private static readonly TimeSpan s_least = TimeSpan.FromMilliseconds(500);

    private readonly TimeProvider _time;
    private readonly long _began;
    private readonly TimeSpan _allowed;

    public CommitDeadline(ClusterConnection connection, TimeSpan? patience)
    {
        _time = connection.Time;
        _began = _time.GetTimestamp();
        _allowed = patience is { } wanted && wanted < connection.RequestLimit ? wanted : connection.RequestLimit;
    }

    /// <summary>The time that is left; negative when it is over.</summary>
    public TimeSpan Left => _allowed - _time.GetElapsedTime(_began);

    /// <summary>The time for a step that must be taken.</summary>
    public TimeSpan LeftForStep => Left > s_least ? Left : s_least;

    /// <summary>The time to prepare in.</summary>
    public TimeSpan LeftToPrepare => LeftForStep.TotalMilliseconds < PrepareMs
        ? LeftForStep
        : TimeSpan.FromMilliseconds(PrepareMs);

    /// <summary>The whole time.</summary>
    public TimeSpan Allowed => _allowed;
}
