using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Connection;

/// <summary>
/// Checks that the cluster serves requests. Each partition that owns keys reads a range without names of each
/// durability, which its leader confirms with a majority. A user needs the permission to read on any name. Stateless,
/// any thread.
/// </summary>
internal static class ClusterCheck
{
    private const string Name = "check";

    /// <summary>Completes when every such partition has answered; fails as the first operation that does.</summary>
    public static async ValueTask RunAsync(ClusterConnection connection, CancellationToken ct)
    {
        SlotMap slots = await connection.SlotsAsync(ct).ConfigureAwait(connection.CapturesContext);
        List<Task> answers = [];
        foreach (int partition in slots.Ranges().Select(static range => (int)range.Partition).Distinct())
        {
            answers.Add(AskAsync(connection, partition, Durability.Persistent, ct));
            if (connection.ServesEphemeral)
            {
                answers.Add(AskAsync(connection, partition, Durability.Ephemeral, ct));
            }
        }

        await Task.WhenAll(answers).ConfigureAwait(connection.CapturesContext);
    }

    /// <summary>The range ends where it begins.</summary>
    private static async Task AskAsync(
        ClusterConnection connection, int partition, Durability durability, CancellationToken ct)
    {
        Operation<RangeReply> operation = Operation<RangeReply>.Rent();
        operation.Request.Begin(CommandKind.KeyRange, durability, Name);
        operation.Request.SetRange(partition, Encoding.UTF8.GetBytes(Name), RangeRequest.Options(1, RangeFlags.None));
        await connection.Run(operation, ct).ConfigureAwait(connection.CapturesContext);
    }
}
