using System.Globalization;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Connection;

/// <summary>
/// Checks that the cluster serves requests. Each partition that owns keys answers one exists request of each
/// durability, which its leader confirms with a majority. Stateless, any thread.
/// </summary>
internal static class ClusterCheck
{
    /// <summary>Completes when every such partition has answered; fails as the first operation that does.</summary>
    public static async ValueTask RunAsync(ClusterConnection connection, CancellationToken ct)
    {
        SlotMap slots = await connection.SlotsAsync(ct).ConfigureAwait(connection.CapturesContext);
        HashSet<int> owners = [.. slots.Ranges().Select(static range => (int)range.Partition)];
        List<Task> answers = [];
        for (int i = 0; owners.Count > 0; i++)
        {
            string key = string.Create(CultureInfo.InvariantCulture, $"check{i}/");
            if (owners.Remove(slots.PartitionOf(Encoding.UTF8.GetBytes(key))))
            {
                answers.Add(AskAsync(connection, key, Durability.Persistent, ct));
                if (connection.ServesEphemeral)
                {
                    answers.Add(AskAsync(connection, key, Durability.Ephemeral, ct));
                }
            }
        }

        await Task.WhenAll(answers).ConfigureAwait(connection.CapturesContext);
    }

    private static async Task AskAsync(
        ClusterConnection connection, string key, Durability durability, CancellationToken ct)
    {
        Operation<ExistsResult> operation = Operation<ExistsResult>.Rent();
        operation.Request.Begin(CommandKind.Exists, durability, key);
        await connection.Run(operation, ct).ConfigureAwait(connection.CapturesContext);
    }
}
