using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Tools.Processes;

/// <summary>Where a node of a measurement runs. Immutable.</summary>
/// <param name="Number">Its number in the cluster, from 1 on.</param>
/// <param name="Url">Where it listens.</param>
/// <param name="Directory">Of the measurement's directory, the part that the cluster has.</param>
internal sealed record ServerPlace(int Number, string Url, string Directory)
{
    /// <summary>The server of this clone.</summary>
    public const string ServerPath = "Kahuna.Server/bin/Release/net10.0/kahuna-server.dll";

    /// <summary>The server's assembly.</summary>
    public string Server { get; init; } = Repository.FullPath(ServerPath);

    /// <summary>What is put before the command of the server, such as a network namespace.</summary>
    public IReadOnlyList<string> Inside { get; init; } = [];

    /// <summary>What is put before a command that asks the node; empty: this process asks itself.</summary>
    public IReadOnlyList<string> AskInside { get; init; } = [];
}
