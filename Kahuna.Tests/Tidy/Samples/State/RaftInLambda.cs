using Kahuna.Server.Raft;

namespace Kahuna.Tests.Tidy.Samples.State;

/// <summary>Negative control: a forbidden type inside a lambda, which the compiler moves to a nested type.</summary>
internal sealed class RaftInLambda
{
    public static Func<object, bool> Make() => candidate => candidate is RaftCore;
}
