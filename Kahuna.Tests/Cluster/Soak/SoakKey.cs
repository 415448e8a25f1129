using Kahuna.Tests.Linearizability;
using Kahuna.Tests.WatchStreams;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// One key and everything that was done to it. Guarded by the <see cref="SoakKeys"/> it is of, and no longer changed
/// when that gave it away.
/// </summary>
internal sealed class SoakKey(string name, bool isCounter)
{
    private readonly List<HistoryOperation> _operations = [];

    public string Name => name;

    /// <summary>Holds an integer unless somebody deletes it.</summary>
    public bool IsCounter => isCounter;

    public IReadOnlyList<HistoryOperation> Operations => _operations;

    /// <summary>Operations that were begun.</summary>
    public int Begun { get; private set; }

    /// <summary>Nothing is begun any more.</summary>
    public bool IsRetired { get; set; }

    public bool IsComplete => Begun == _operations.Count;

    /// <summary>
    /// The operation with the newest answer that told a value and its revision: what conditions are made from.
    /// </summary>
    public HistoryOperation? Latest { get; private set; }

    /// <summary>What a watch was told of the key; null: nobody watched it.</summary>
    public WatchStream? Watch { get; set; }

    public void Begin() => Begun++;

    public void End(HistoryOperation operation)
    {
        _operations.Add(operation);
        bool tellsValue = operation.Result.HasValue
            || (operation.Kind == OperationKind.Set && operation.Result.Affirmed == true);
        if (operation.Outcome == HistoryOutcome.Ok && tellsValue)
        {
            Latest = operation;
        }
    }
}
