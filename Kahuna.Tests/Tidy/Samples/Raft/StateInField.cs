using Kahuna.Server.State;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a forbidden type as a field.</summary>
internal sealed class StateInField
{
    private readonly StateMachine? _machine = null;

    public bool Has => _machine is not null;
}
