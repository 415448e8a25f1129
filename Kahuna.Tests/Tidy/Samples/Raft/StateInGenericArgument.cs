using Kahuna.Server.State;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a forbidden type inside generic arguments.</summary>
internal sealed class StateInGenericArgument
{
    public static Dictionary<int, List<StateMachine[]>> Make() => [];
}
