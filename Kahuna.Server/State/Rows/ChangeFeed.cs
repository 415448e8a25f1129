using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The one place through which changes of keys are told: those that commands ask for, and those that nobody asks for
/// (ADR 28). Costs a comparison per change while nobody listens. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class ChangeFeed
{
    private IChangeSink? _sink;
    private ChangePosition _next;

    /// <summary>Somebody listens.</summary>
    public bool IsOn => _sink is not null;

    /// <summary>From the next entry on changes are told to a sink; null: to nobody.</summary>
    public void Attach(IChangeSink? sink, GroupId group, Epoch epoch)
    {
        _sink = sink;
        _next = new ChangePosition(group, epoch, default, 0);
    }

    /// <summary>The changes that follow are those of this entry.</summary>
    public void BeginEntry(LogIndex index) => _next = _next with { Index = index, N = 0 };

    /// <summary>Tells one change. Only while <see cref="IsOn"/>.</summary>
    public void Tell(scoped in Change change)
    {
        if (SystemRowKind.Of(change.Key) is null)
        {
            _sink!.Changed(in _next, in change);
            _next = _next with { N = _next.N + 1 };
        }
    }
}
