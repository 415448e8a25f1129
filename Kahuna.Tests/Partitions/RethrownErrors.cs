using System.Runtime.ExceptionServices;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// Stands for the end of the process: an unexpected exception goes on to the test that runs the turn. Stateless.
/// </summary>
internal sealed class RethrownErrors : IFatalErrors
{
    public static RethrownErrors Shared { get; } = new();

    public void Raise(string where, Exception error) => ExceptionDispatchInfo.Throw(error);
}
