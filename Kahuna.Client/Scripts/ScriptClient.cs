using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Scripts;

namespace Kahuna.Client.Scripts;

/// <summary>
/// Runs small programs next to the data, each as one transaction. Obtained from <see cref="KahunaClient.Scripts"/>; any
/// thread, any number of concurrent calls. docs/scripts.md has the language.
/// <code>
/// ScriptResult left = await client.Scripts.RunAsync(
///     """
///     let balance = get @account
///     if balance = null || to_int(balance) &lt; @amount then throw 'not enough' end
///     set @account (to_int(balance) - @amount)
///     return to_int(balance) - @amount
///     """,
///     new() { ["account"] = "accounts/a", ["amount"] = 10 },
///     ct: ct);
/// </code>
/// </summary>
public sealed class ScriptClient
{
    private readonly ClusterConnection _connection;
    private readonly ScriptDriver _driver;
    private readonly ScriptPrograms _programs = new();

    internal ScriptClient(TransactionCoordinator coordinator)
    {
        _connection = coordinator.Connection;
        _driver = new ScriptDriver(coordinator);
    }

    /// <summary>
    /// Runs a script: all of its writes take effect at one moment, or none.
    /// </summary>
    /// <param name="text">
    /// The script, at most 64 KiB. One whose keys are of one durability and one bucket, which is the part of a name
    /// before the last <c>/</c>, runs in its partition in one round trip. Others, and long ones, run in this client as
    /// a transaction, again and again until nothing that they have read has changed.
    /// </param>
    /// <param name="parameters">The values of the <c>@names</c> in it; null for none.</param>
    /// <param name="options">Fence and key; null for the defaults.</param>
    /// <param name="ct">Ends the wait; a script that was sent may still be applied.</param>
    /// <returns>
    /// What it returned; without <c>return</c>, the result of its last statement that reads or writes.
    /// </returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: it cannot be parsed, exceeds a limit, or has keys of several
    /// buckets; the message names line and column, and nothing was sent. <see cref="KahunaErrorCode.ScriptFailed"/>: it
    /// ended with an error, and nothing was written. <see cref="KahunaErrorCode.LockLost"/>: its fence does not hold.
    /// For other codes see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task<ScriptResult> RunAsync(
        string text, ScriptParameters? parameters = null, ScriptOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(text);
        ScriptProgram program = ProgramOf(text);
        List<ScriptParameter> list = parameters?.ToList() ?? [];
        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            if (Encode(program, text, list, options, body, out string? tooWide) is { } operation)
            {
                ScriptReply reply = await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
                if (reply.TooWide is null)
                {
                    return ScriptResult.Read(reply.Result);
                }
            }

            if (options?.Fence is not null)
            {
                throw OperationErrors.BadArgument((tooWide ?? "the script needs more than one partition gives it")
                    + "; a script with a fence must run in one partition; nothing was written");
            }
        }
        finally
        {
            body.Return();
        }

        (ScriptValue result, _) = await _driver.RunAsync(program, list, patience: null, ct)
            .ConfigureAwait(_connection.CapturesContext);
        return ScriptResult.Of(result);
    }

    /// <summary>The script as one command; null, with the reason, when it cannot be one.</summary>
    private static Operation<ScriptReply>? Encode(
        ScriptProgram program,
        string text,
        IReadOnlyList<ScriptParameter> parameters,
        ScriptOptions? options,
        ByteBuffer body,
        out string? tooWide)
    {
        // A text that is too long for one command is not sent; its parameters are held to the same limits.
        bool isLong = ScriptBody.IsLong(text);
        if (ScriptBody.Write(body, isLong ? "" : text, parameters) is { } refusal)
        {
            throw OperationErrors.BadArgument(refusal + "; nothing was sent");
        }

        tooWide = ScriptTarget.Find(program, parameters, options?.Key, out string key, out Durability durability);
        if (isLong || tooWide is not null)
        {
            return null;
        }

        Operation<ScriptReply> operation = Operation<ScriptReply>.Rent();
        operation.Request.Begin(CommandKind.Script, durability, key);
        operation.Request.SetValue(body.WrittenMemory);
        options?.Fence?.ApplyTo(ref operation.Request);
        return operation;
    }

    private ScriptProgram ProgramOf(string text)
    {
        try
        {
            return _programs.Parse(text);
        }
        catch (ScriptSyntaxException wrong)
        {
            throw OperationErrors.BadArgument(wrong.Message + "; nothing was sent");
        }
    }
}

/// <summary>Options of a script. Immutable, so one instance may serve many calls.</summary>
public sealed record ScriptOptions
{
    /// <summary>
    /// A key of the bucket that the script works on. Needed only when all keys of the script are computed.
    /// </summary>
    public string? Key { get; init; }

    /// <summary>
    /// Run only while the token's holder has the lock, which must be in the bucket of the script's keys; otherwise the
    /// call fails with <see cref="KahunaErrorCode.LockLost"/>. Null for no fence.
    /// </summary>
    public Fence? Fence { get; init; }
}
