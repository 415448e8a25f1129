using System.Collections.Immutable;

namespace Kahuna.Server.Api;

/// <summary>
/// What the node says about itself to health checks: for each service, and for the empty name that stands for the node,
/// whether it serves. Owned by the node, which writes it; any thread.
/// </summary>
internal sealed class HealthStatusBoard
{
    private readonly Lock _lock = new();
    private volatile Snapshot _current = new(ImmutableSortedDictionary<string, bool>.Empty.WithComparers(StringComparer.Ordinal));

    /// <summary>What is known now.</summary>
    public Snapshot Current => _current;

    /// <summary>Says whether a service serves; those who watch are told if that is a change.</summary>
    public void Set(string service, bool serving) => Set([service], serving);

    /// <summary>Says the same for several services in one step.</summary>
    public void Set(ReadOnlySpan<string> services, bool serving)
    {
        Snapshot before;
        lock (_lock)
        {
            before = _current;
            ImmutableSortedDictionary<string, bool> statuses = before.Serving;
            foreach (string service in services)
            {
                statuses = statuses.SetItem(service, serving);
            }

            if (ReferenceEquals(statuses, before.Serving))
            {
                return;
            }

            _current = new Snapshot(statuses);
        }

        before.Supersede();
    }

    /// <summary>One state of the board. Immutable but for the signal that there is a newer one; any thread.</summary>
    internal sealed class Snapshot(ImmutableSortedDictionary<string, bool> serving)
    {
        private readonly TaskCompletionSource _superseded = new(TaskCreationOptions.RunContinuationsAsynchronously);

        /// <summary>By full name of the service; the empty name is the node.</summary>
        public ImmutableSortedDictionary<string, bool> Serving => serving;

        /// <summary>Completes when this is no longer the state.</summary>
        public Task Superseded => _superseded.Task;

        internal void Supersede() => _superseded.TrySetResult();
    }
}
