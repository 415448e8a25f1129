using Kahuna.Server.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// What one life of a node knows of users and their rights, put together as the shipped host does it. Owned by the
/// node.
/// </summary>
internal sealed class SimAccess
{
    private readonly AccessState _state;

    public SimAccess(SimNode node)
    {
        _state = new AccessState(isRequired: true, node.Clock);
        Gate = new AccessGate(_state);
    }

    /// <summary>Decides about the commands of users.</summary>
    public AccessGate Gate { get; }

    /// <summary>Changes the records.</summary>
    public AccessLedger? Ledger { get; private set; }

    /// <summary>Follows the meta group.</summary>
    public void Attach(SimNode node, ClusterView view, LoopSet loops, ulong start)
    {
        int life = node.Life;
        SimRandom ids = new SimRandom(start).Fork(49);
        AccessLedger.Follow(_state, view, loops);
        Ledger = new AccessLedger(
            _state,
            command => node.Do(life, () => loops.AskMeta(command)),
            () => new AccessChangeId(ids.Next(), ids.Next()),
            node.Clock);
    }

    /// <summary>The records that it has, and whether it relies on them.</summary>
    public string Standing => $"version {_state.Book.Version}, {(_state.IsFresh() ? "fresh" : "not fresh")}";

    /// <summary>Who makes a connection; everybody but the users is trusted, as nodes are.</summary>
    public Caller CallerOf(int client) => SimUser.Of(client) is { } user
        ? new Caller(_state, new UserRecord(user.Id, user.Name), CallerMethod.Token)
        : Caller.Node;
}
