using Google.Protobuf;
using Kahuna.Client.Connection;
using Kahuna.Client.Connection.Access;

namespace Kahuna.Client.Administration;

/// <summary>
/// Makes the calls of the administration at a connected node, the same one while it answers: it obeys at once what it
/// has changed. What did not happen is tried again at another node until the request timeout.
/// Owned by the <see cref="AdminClient"/>; any thread.
/// </summary>
/// <param name="connection">The nodes, and who the client is to them.</param>
/// <param name="channel">Carries the calls.</param>
internal sealed class AdminCalls(ClusterConnection connection, IFrameChannel channel)
{
    private const string Service = "/kahuna.v1.Admin/";

    // Numbers of gRPC status codes: https://grpc.io/docs/guides/status-codes/
    private const int Unavailable = 14;
    private const int Unauthenticated = 16;

    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(100);

    private int _turn;
    private Uri? _node;

    private bool Captures => connection.CapturesContext;

    /// <summary>Makes a call.</summary>
    /// <param name="method">The method's name.</param>
    /// <param name="request">The request.</param>
    /// <param name="parser">Reads the answer.</param>
    /// <param name="isRead">It changes nothing.</param>
    /// <param name="ct">Ends the wait.</param>
    public async ValueTask<TAnswer> RunAsync<TAnswer>(
        string method, IMessage request, MessageParser<TAnswer> parser, bool isRead, CancellationToken ct)
        where TAnswer : IMessage<TAnswer>
    {
        using CancellationTokenSource timeout = new(connection.RequestLimit, connection.Time);
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(timeout.Token, ct);
        AdminAttempt attempt = new(new UnaryCall(Service + method, request.ToByteArray()), isRead);
        try
        {
            while (true)
            {
                if (await TryAsync(attempt, limit.Token).ConfigureAwait(Captures) is { } answer)
                {
                    return parser.ParseFrom(answer);
                }

                await Task.Delay(s_pause, connection.Time, limit.Token).ConfigureAwait(Captures);
            }
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(attempt.Outcome, ct);
        }
        catch (OperationCanceledException)
        {
            throw AdminErrors.TimedOut(attempt.Outcome, attempt.Reason);
        }
        catch (InvalidProtocolBufferException)
        {
            throw AdminErrors.Unreadable(attempt.Outcome);
        }
    }

    /// <summary>Tries once, or twice when credentials are renewed meanwhile. Null: to be tried again.</summary>
    private async ValueTask<byte[]?> TryAsync(AdminAttempt attempt, CancellationToken ct)
    {
        Uri node = await ChooseAsync(ct).ConfigureAwait(Captures);
        while (true)
        {
            try
            {
                AuthorizationHeader header = await connection.Links.Authorization.GetAsync(ct).ConfigureAwait(Captures);
                attempt.IsUnderWay = true;
                CallAnswer answer = await channel.CallAsync(node, attempt.Call, header.Text, ct)
                    .ConfigureAwait(Captures);
                if (answer.Status.IsOK)
                {
                    return answer.Message;
                }

                attempt.IsUnderWay = false;
                if (answer.Status.Code == Unauthenticated
                    && !attempt.IsRenewed
                    && connection.Links.Authorization.Refuse(header.Version, hasLasted: true))
                {
                    attempt.IsRenewed = true;
                    continue;
                }

                OperationOutcome outcome = attempt.IsRead ? OperationOutcome.DidNotHappen : answer.Outcome;
                attempt.Reason = answer.Status.ToString();
                if (answer.Status.Code != Unavailable || outcome != OperationOutcome.DidNotHappen)
                {
                    throw AdminErrors.Of(answer.Status, outcome);
                }

                Volatile.Write(ref _node, null);
                return null;
            }
            catch (CallLostException lost) when (lost.WasSent && !attempt.IsRead)
            {
                throw AdminErrors.Lost(node, lost.Message);
            }
            catch (IOException passing)
            {
                // The call was not sent, changes nothing, or waits for credentials.
                attempt.IsUnderWay = false;
                attempt.Reason = $"{node.Authority} ({DisconnectReasons.Of(passing)})";
                Volatile.Write(ref _node, null);
                return null;
            }
        }
    }

    /// <summary>
    /// The node of the last call while it is connected and answers; otherwise the connected ones take turns.
    /// </summary>
    private async ValueTask<Uri> ChooseAsync(CancellationToken ct)
    {
        while (true)
        {
            await connection.DescribeAsync(ct).ConfigureAwait(Captures);
            Uri[] nodes =
            [
                .. connection.Routes.Links
                    .Where(static link => link.Ready is not null)
                    .Select(static link => link.Endpoint),
            ];
            if (nodes.Length > 0)
            {
                Uri? last = Volatile.Read(ref _node);
                if (last is null || !nodes.Contains(last))
                {
                    last = nodes[(int)((uint)Interlocked.Increment(ref _turn) % nodes.Length)];
                    Volatile.Write(ref _node, last);
                }

                return last;
            }
        }
    }

    /// <summary>A call and what became of it so far. Owned by one caller.</summary>
    private sealed class AdminAttempt(UnaryCall call, bool isRead)
    {
        public UnaryCall Call => call;

        public bool IsRead => isRead;

        /// <summary>It may have been sent and is not answered.</summary>
        public bool IsUnderWay { get; set; }

        /// <summary>It was refused, and the credentials were renewed.</summary>
        public bool IsRenewed { get; set; }

        /// <summary>Why the last try was in vain.</summary>
        public string? Reason { get; set; }

        public OperationOutcome Outcome =>
            IsUnderWay && !IsRead ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen;
    }
}
