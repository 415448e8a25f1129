using Kahuna.Server.State;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a forbidden type in a signature.</summary>
internal sealed class StateInSignature
{
    public static void Take(StateMachine machine) => GC.KeepAlive(machine);
}
