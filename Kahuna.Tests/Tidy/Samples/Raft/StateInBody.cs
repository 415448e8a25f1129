using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a forbidden type only inside a method.</summary>
internal sealed class StateInBody
{
    public static object Make() => new StateMachine(new StateLimits());
}
