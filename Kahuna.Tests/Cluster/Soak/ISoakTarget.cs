using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>A way to the cluster: carries out an operation of a history and says how it ended. Any thread.</summary>
internal interface ISoakTarget : IAsyncDisposable
{
    /// <summary>Throws only for what no fault of the run explains.</summary>
    Task<SoakAnswer> RunAsync(HistoryOperation operation, CancellationToken abandoned);
}
