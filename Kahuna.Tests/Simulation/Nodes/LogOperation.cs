using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>One call of a loop to its log writer. Immutable.</summary>
internal sealed record LogOperation(GroupId Group, LogOperationKind Kind)
{
    public ulong First { get; init; }

    public IReadOnlyList<EntryId> Entries { get; init; } = [];

    public HardState HardState { get; init; }

    public void ApplyTo(GroupImage image)
    {
        switch (Kind)
        {
            case LogOperationKind.Append:
                image.Append(First, Entries);
                break;
            case LogOperationKind.Save:
                image.HardState = HardState;
                break;
            case LogOperationKind.Restart:
                image.Restart(First);
                break;
        }
    }
}

internal enum LogOperationKind
{
    Append,
    Save,
    Restart,
}
