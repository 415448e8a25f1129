namespace Kahuna.Tests.Simulation.Workload;

/// <summary>A user whose rights change during a run. Immutable.</summary>
/// <param name="Id">Its number in the records.</param>
/// <param name="Name">Its name, and that of its role; its keys begin with it and a '/'.</param>
/// <param name="Client">Its number as a client.</param>
/// <param name="IsUnary">It makes unary calls only, and is disabled at times.</param>
internal sealed record SimUser(uint Id, string Name, int Client, bool IsUnary)
{
    /// <summary>All users.</summary>
    public static IReadOnlyList<SimUser> All { get; } =
    [
        new SimUser(2, "ann", 501, IsUnary: false),
        new SimUser(3, "bob", 502, IsUnary: true),
    ];

    /// <summary>The user that has this number as a client; null: none.</summary>
    public static SimUser? Of(int client) => All.FirstOrDefault(user => user.Client == client);
}
