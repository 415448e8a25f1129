using System.Text;
using Grpc.Core;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Faults;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Calls as a client in any language makes them: one request to one node, with a deadline; some with a number, so that
/// they can be made again. Owned by one client.
/// </summary>
internal sealed class UnaryClient(ClientNetwork network, int number, SimClock clock, TimeSpan timeout, int nodes)
{
    /// <summary>
    /// How much longer the client waits than it tells the node, so that what the node says at the deadline is heard.
    /// </summary>
    private static readonly TimeSpan s_grace = TimeSpan.FromMilliseconds(300);

    /// <summary>Time that is worth another attempt, and the pause before it.</summary>
    private static readonly TimeSpan s_least = TimeSpan.FromMilliseconds(100);
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(20);

    /// <summary>
    /// One in so many numbered calls is asked again, most of them after so long: less than anybody remembers it for, by
    /// any clock.
    /// </summary>
    private const ulong Again = 4;
    private static readonly TimeSpan s_again = TimeSpan.FromSeconds(2);

    /// <summary>The longest time that one lies idle before that, where nobody forgets it in a run.</summary>
    private static readonly TimeSpan s_idleMax = TimeSpan.FromSeconds(20);

    /// <summary>How answers begin that say so.</summary>
    private const string NumberReused = "Another command has this number";
    private const string SessionUnknown = "The partition does not know the session";

    /// <summary>
    /// Makes a call and fills in what came back. One with a number is made again, at another node, as long as its end
    /// is not known and there is time.
    /// </summary>
    public async Task RunAsync(Call call, int node, bool isNumbered, CancellationToken ct)
    {
        isNumbered &= !call.IsEphemeral && call.Kind is not (CallKind.Get or CallKind.Exists);
        ulong drawn = isNumbered ? network.NewSessionId() : 0;
        bool isKeyed = drawn % 2 == 1;
        call.IsKeyed = isKeyed;
        ulong session = isKeyed ? IdempotencyKey.AsKey(drawn) : drawn;
        byte[] command = Encode(call, session, isOpening: true);
        long begun = clock.GetTimestamp();
        bool mayHaveHappened = false;
        while (true)
        {
            TimeSpan left = timeout - clock.GetElapsedTime(begun);
            UnaryAnswer answer = await AttemptAsync(
                new UnaryRequest(command), node, isNumbered ? Min(left, timeout / 3) : left, ct);
            if (answer.Error is not { } error)
            {
                Fill(call, answer.Outcome);
                call.Outcome = CallOutcome.Ok;
                if (isNumbered && drawn / 2 % Again == 0)
                {
                    _ = AskAgainAsync(call, session, answer.Outcome!, node);
                }

                return;
            }

            if (error.StatusCode == StatusCode.InvalidArgument)
            {
                throw error;
            }

            mayHaveHappened |= !answer.DidNotHappen;
            if (!isNumbered
                || error.StatusCode is StatusCode.FailedPrecondition or StatusCode.OutOfRange
                || ct.IsCancellationRequested
                || timeout - clock.GetElapsedTime(begun) < s_least)
            {
                call.Error = error.StatusCode.ToString();
                call.Outcome = mayHaveHappened ? CallOutcome.Unknown : CallOutcome.Fail;
                return;
            }

            node = (node % nodes) + 1;
            await Task.Delay(s_pause, clock, CancellationToken.None);
        }
    }

    /// <summary>
    /// The number, or key, of a call that was answered comes again a while later: with the same request, which gets the
    /// same answer, and with another one, which is refused. Neither is carried out, also when nobody remembers it: it
    /// says that it does not begin anything.
    /// </summary>
    private async Task AskAgainAsync(Call call, ulong session, byte[] outcome, int node)
    {
        TimeSpan idle = IdleOf(session, out bool isRemembered);
        await Task.Delay(idle, clock, CancellationToken.None);
        UnaryAnswer same = await AttemptAsync(
            new UnaryRequest(Encode(call, session, isOpening: false)), node, timeout, CancellationToken.None);
        if (same.Error is null && !same.Outcome.AsSpan().SequenceEqual(outcome))
        {
            network.Break(
                "a number is one request",
                $"{call.Kind} of {call.Key} by {call.Process} was repeated and got another answer");
        }

        if (isRemembered && same.Error?.Status.Detail.StartsWith(SessionUnknown, StringComparison.Ordinal) == true)
        {
            network.Break(
                "a number is remembered for as long as it was promised",
                $"that of {call.Kind} of {call.Key} by {call.Process} was forgotten after {idle.TotalSeconds:0.0} s, "
                    + $"which are fewer than {Limits.SessionIdleMs / 1000.0:0.0} s by any clock");
        }

        network.NumbersIdle += idle > s_again && same.Error is null ? 1 : 0;
        Call another = new()
        {
            Process = call.Process,
            Key = call.Key,
            Kind = CallKind.Set,
            CallNs = call.CallNs,
            Value = "another request",
        };
        UnaryAnswer other = await AttemptAsync(
            new UnaryRequest(Encode(another, session, isOpening: false)), node, timeout, CancellationToken.None);
        if (other.Error?.Status.Detail.StartsWith(NumberReused, StringComparison.Ordinal) == true)
        {
            network.NumbersRefused++;
        }
        else if (other.Error is null or { StatusCode: StatusCode.InvalidArgument })
        {
            network.Break(
                "a number is one request",
                $"the number of {call.Kind} of {call.Key} by {call.Process} was used for another request, which ended "
                    + $"as {other.Error?.Status.Detail ?? "carried out"}");
        }
    }

    private StateLimits Limits => network.Config.AllStateLimits;

    /// <summary>
    /// For how long a number is left alone: mostly not for long, then up to shortly before it may be forgotten, or
    /// until it is.
    /// </summary>
    private TimeSpan IdleOf(ulong session, out bool isRemembered)
    {
        // The two of them may disagree by the fastest clock over the slowest.
        TimeSpan mayGo = TimeSpan.FromMilliseconds(Limits.SessionIdleMs / (Nemesis.RateMax * Nemesis.RateMax));
        double part = (session >> 12) % 16 / 16.0;
        TimeSpan idle = ((session >> 8) % 16) switch
        {
            < 10 => s_again * part,
            < 13 => Min(mayGo, s_idleMax) * part,
            _ => Min(mayGo, s_idleMax) * (1 + (2 * part)),
        };
        isRemembered = idle + timeout < mayGo
            && network.Config is { SessionsMax: int.MaxValue, IdempotencyKeysMax: int.MaxValue };
        return idle;
    }

    private static TimeSpan Min(TimeSpan left, TimeSpan right) => left < right ? left : right;

    /// <summary>One attempt: what came back, or that nothing did in time.</summary>
    public async Task<UnaryAnswer> AttemptAsync(UnaryRequest request, int node, TimeSpan timeLeft, CancellationToken ct)
    {
        TaskCompletionSource<UnaryAnswer> answered = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using CancellationTokenSource limit = new(timeLeft + s_grace, clock);
        using CancellationTokenRegistration late = limit.Token.UnsafeRegister(
            _ => answered.TrySetResult(UnaryAnswer.Late), null);
        using CancellationTokenRegistration abandoned = ct.UnsafeRegister(
            _ => answered.TrySetResult(UnaryAnswer.Lost), null);
        network.Call(number, node, request, timeLeft, answer => answered.TrySetResult(answer));
        return await answered.Task;
    }

    private static void Fill(Call call, ReadOnlySpan<byte> bytes)
    {
        if (!Outcome.TryRead(bytes, out Outcome outcome))
        {
            throw new InvalidOperationException("A unary answer cannot be read.");
        }

        call.Done = outcome.Status is OutcomeStatus.Applied or OutcomeStatus.Found;
        call.Revision = outcome.Status == OutcomeStatus.NotFound && call.Kind is (CallKind.Delete or CallKind.Extend)
            ? null
            : outcome.Revision;
        if (call.Kind == CallKind.Get && call.Done)
        {
            call.FoundValue = outcome.ValueIsNull ? null : Encoding.UTF8.GetString(outcome.Value);
        }
        else if (call.Kind == CallKind.Increment)
        {
            call.Number = outcome.Number;
        }
    }

    private static byte[] Encode(Call call, ulong session, bool isOpening)
    {
        Command command = new()
        {
            Kind = Enum.Parse<CommandKind>(call.Kind.ToString()),
            Durability = call.IsEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(call.Key),
            Value = call.Value is null ? default : Encoding.UTF8.GetBytes(call.Value),
            ComparedValue = call.OnlyIfValue is null ? default : Encoding.UTF8.GetBytes(call.OnlyIfValue),
            ComparedRevision = call.OnlyIfRevision ?? 0,
            AtRevision = call.AtRevision ?? 0,
            TtlMs = call.TtlMs ?? 0,
            Number = call.By,
            SessionId = session,
            Sequence = 1,
            Flags = (call.OnlyIfAbsent ? CommandFlags.IfAbsent : 0)
                | (call.OnlyIfPresent ? CommandFlags.IfPresent : 0)
                | (call.OnlyIfValue is null ? 0 : CommandFlags.IfValue)
                | (call.OnlyIfNull ? CommandFlags.IfValue | CommandFlags.NullCompared : 0)
                | (call.Kind == CallKind.Set && call.Value is null ? CommandFlags.NullValue : 0)
                | (call.AtRevision is null ? 0 : CommandFlags.AtRevision)
                | (call.WithoutHistory ? CommandFlags.WithoutHistory : 0)
                | (call.OnlyIfRevision is null ? 0 : CommandFlags.IfRevision)
                | (call.TtlMs is null ? 0 : CommandFlags.Ttl)
                | (call.Kind == CallKind.Increment ? CommandFlags.Number : 0)
                | (session == 0 ? 0 : CommandFlags.Session | (isOpening ? CommandFlags.Opening : 0)),
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
