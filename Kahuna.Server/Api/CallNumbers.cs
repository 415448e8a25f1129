using System.Globalization;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Api;

/// <summary>
/// Reads the headers that make a unary call idempotent: the caller's session and the call's number in it, or an
/// idempotency key, which is a session with one number. Reads ignore them. Stateless.
/// </summary>
internal static class CallNumbers
{
    public const string SessionHeader = "x-kahuna-session";
    public const string SequenceHeader = "x-kahuna-sequence";
    public const string ConfirmedHeader = "x-kahuna-confirmed";
    public const string IdempotencyHeader = "x-kahuna-idempotency-key";

    /// <summary>Adds the session and number from the headers, if there are any.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the headers contradict each other or are malformed.
    /// RESOURCE_EXHAUSTED: the caller exceeds the rate limit for new sessions or keys.</exception>
    /// <param name="command">The command.</param>
    /// <param name="call">The call.</param>
    /// <param name="item">
    /// Of a batch whose items have numbers of their own: which item, from 0 on. Its number is that many above the
    /// call's.
    /// </param>
    public static void AddTo(ref Command command, ServerCallContext call, int? item = null)
    {
        string? session = call.Header(SessionHeader);
        string? sequence = call.Header(SequenceHeader);
        string? confirmed = call.Header(ConfirmedHeader);
        string? key = call.Header(IdempotencyHeader);
        if (key is not null)
        {
            if ((session ?? sequence ?? confirmed) is not null)
            {
                throw Invalid($"{IdempotencyHeader} and {SessionHeader} contradict each other; send one of them.");
            }

            if (item is not null)
            {
                throw Invalid($"{IdempotencyHeader} names one call; a batch needs atomic, or {SessionHeader}.");
            }

            AddKey(ref command, key);
        }
        else if (session is not null && sequence is not null)
        {
            AddSession(
                ref command,
                Read(SessionHeader, session),
                Read(SequenceHeader, sequence) + (ulong)(item ?? 0),
                confirmed is null ? null : Read(ConfirmedHeader, confirmed, least: 0));
        }
        else if ((session ?? sequence ?? confirmed) is not null)
        {
            throw Invalid(
                $"{(session is null ? SessionHeader : SequenceHeader)} is missing; a numbered call needs "
                    + $"{SessionHeader} and {SequenceHeader}.");
        }

        if (call.GetHttpContext().Features.Get<ConnectionRateLimiter>()?.Refusal(in command) is { } refusal)
        {
            throw OutcomeErrors.Build(StatusCode.ResourceExhausted, refusal, OutcomeErrors.DidNotHappen);
        }
    }

    /// <summary>Refuses the headers, for a call that consists of several steps.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: there are some.</exception>
    public static void Refuse(ServerCallContext call)
    {
        if ((call.Header(SessionHeader) ?? call.Header(SequenceHeader) ?? call.Header(IdempotencyHeader)) is not null)
        {
            throw Invalid(
                "This call has several steps and no number; repeat it without one to go on with what is left.");
        }
    }

    private static void AddSession(ref Command command, ulong session, ulong sequence, ulong? confirmed)
    {
        // Without the header, every number below the window counts as confirmed.
        ulong low = confirmed is { } given
            ? given + 1
            : sequence < Wire.Limits.SessionWindow
            ? 1
            : sequence - Wire.Limits.SessionWindow + 1;
        if (low > sequence || sequence - low >= Wire.Limits.SessionWindow)
        {
            throw Invalid(string.Create(
                CultureInfo.InvariantCulture,
                $"{SequenceHeader} is {sequence}; it must be 1 to {Wire.Limits.SessionWindow:N0} above "
                    + $"{ConfirmedHeader}, which is {low - 1}."));
        }

        command.Flags |= CommandFlags.Session | CommandFlags.Opening;
        command.SessionId = session;
        command.Sequence = sequence;
        command.Lag = (ushort)(sequence - low);
    }

    private static void AddKey(ref Command command, string key)
    {
        if (!IdempotencyKey.TryHash(key, out ulong session, out string? sentence))
        {
            throw Invalid($"{IdempotencyHeader}: {sentence}.");
        }

        command.Flags |= CommandFlags.Session
            | CommandFlags.Opening
            | (CommandKinds.Of(command.Kind).Flags & CommandFlags.Keyed);
        command.SessionId = session;
        command.Sequence = 1;
        command.Lag = 0;
    }

    private static ulong Read(string header, string text, ulong least = 1) =>
        ulong.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out ulong number)
            && number >= least
            && number < long.MaxValue
            ? number
            : throw Invalid($"{header} is \"{text}\"; it must be a whole number from {least} to {long.MaxValue - 1}.");

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);
}
