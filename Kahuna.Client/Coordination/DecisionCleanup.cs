using Kahuna.Client.Connection;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Has anchors forget the decisions that all parts have carried out. One request per partition is under way; decisions
/// that are finished meanwhile go together with the next one. Owned by one <see cref="TransactionCoordinator"/>; any
/// thread.
/// </summary>
internal sealed class DecisionCleanup(ClusterConnection connection)
{
    private readonly Lock _lock = new();

    /// <summary>What waits, by partition. A partition is here while a request to it is under way.</summary>
    private readonly Dictionary<int, Queue<Finished>> _waiting = [];

    /// <summary>
    /// Has a decision forgotten. The task ends when the anchor has answered, or could not; then its leader forgets it
    /// later. It never fails.
    /// </summary>
    /// <param name="partition">The anchor's partition, as the client knows it.</param>
    /// <param name="name">The transaction.</param>
    public Task ForgetAsync(int partition, CommitName name)
    {
        Finished finished = new(name);
        Queue<Finished>? waiting;
        bool isUnderWay;
        lock (_lock)
        {
            isUnderWay = _waiting.TryGetValue(partition, out waiting);
            if (waiting is null)
            {
                waiting = [];
                _waiting.Add(partition, waiting);
            }

            waiting.Enqueue(finished);
        }

        if (!isUnderWay)
        {
            _ = SendAllAsync(partition, waiting);
        }

        return finished.Answered.Task;
    }

    private async Task SendAllAsync(int partition, Queue<Finished> waiting)
    {
        List<Finished> batch = [];
        while (TryTake(partition, waiting, batch))
        {
            try
            {
                await connection.Run(ToForget(batch), CancellationToken.None)
                    .ConfigureAwait(connection.CapturesContext);
            }
            catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
            {
                // The anchor's leader forgets all of these later. So the ones that wait give up their places now.
                TakeRest(waiting, batch);
            }

            foreach (Finished finished in batch)
            {
                finished.Answered.SetResult();
            }

            batch.Clear();
        }
    }

    /// <summary>
    /// Adds the next ones to the batch. Without any, no request to the partition is under way, and the result is false.
    /// </summary>
    private bool TryTake(int partition, Queue<Finished> waiting, List<Finished> batch)
    {
        lock (_lock)
        {
            while (batch.Count < Limits.ForgottenTransactionsMax && waiting.TryDequeue(out Finished? finished))
            {
                batch.Add(finished);
            }

            if (batch.Count == 0)
            {
                _waiting.Remove(partition);
            }

            return batch.Count > 0;
        }
    }

    private void TakeRest(Queue<Finished> waiting, List<Finished> batch)
    {
        lock (_lock)
        {
            batch.AddRange(waiting);
            waiting.Clear();
        }
    }

    private static Operation<ForgetReply> ToForget(List<Finished> batch)
    {
        byte[] ids = new byte[batch.Count * TransactionId.Bytes];
        for (int i = 0; i < batch.Count; i++)
        {
            batch[i].Name.Id.Write(ids.AsSpan(i * TransactionId.Bytes));
        }

        Operation<ForgetReply> operation = Operation<ForgetReply>.Rent();
        operation.Request.Begin(CommandKind.TransactionForget, Durability.Persistent, batch[0].Name.AnchorKey);
        operation.Request.SetValue(ids);
        return operation;
    }

    /// <summary>A transaction whose parts are all finished, and the end of its forgetting.</summary>
    private sealed record Finished(CommitName Name)
    {
        public TaskCompletionSource Answered { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);
    }
}
