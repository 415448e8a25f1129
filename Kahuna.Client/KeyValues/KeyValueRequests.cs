using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// Turns the arguments of calls on keys into operations. Owned by a <see cref="KeyValueClient"/>; any thread.
/// </summary>
/// <param name="durability">The durability of calls that name none.</param>
internal sealed class KeyValueRequests(Durability durability)
{
    public Operation<SetResult> Set(string key, ReadOnlyMemory<byte> value, SetOptions? options)
    {
        Operation<SetResult> operation = Begin<SetResult>(CommandKind.Set, key, options?.Durability);
        operation.Request.SetValue(value);
        options?.ApplyTo(ref operation.Request);
        return operation;
    }

    public Operation<SetResult> Set(string key, string? value, SetOptions? options)
    {
        Operation<SetResult> operation = Begin<SetResult>(CommandKind.Set, key, options?.Durability);
        operation.Request.SetValue(value);
        options?.ApplyTo(ref operation.Request);
        return operation;
    }

    public Operation<SetResult> Set(string key, KahunaValue value, SetOptions? options, bool andGet)
    {
        Operation<SetResult> operation = Begin<SetResult>(CommandKind.Set, key, options?.Durability);
        operation.Request.SetValue(value.Memory);
        operation.Request.AddFlag(CommandFlags.NullValue, value.IsNull);
        operation.Request.AddFlag(CommandFlags.ReturnPrevious, andGet);
        options?.ApplyTo(ref operation.Request);
        return operation;
    }

    public Operation<SetResult> Set(in SetItem item, BatchOptions? batch)
    {
        SetOptions? options = batch?.Durability is { } level && item.Options?.Durability is null
            ? (item.Options ?? new SetOptions()) with { Durability = level }
            : item.Options;
        return Set(item.Key, item.Value, options, andGet: false);
    }

    public Operation<TResult> Read<TResult>(string key, ReadOptions? options, bool isExists)
        where TResult : struct, IOperationResult<TResult>
    {
        Operation<TResult> operation = Begin<TResult>(
            isExists ? CommandKind.Exists : CommandKind.Get, key, options?.Durability);
        operation.Request.AddReadRevision(options?.AtRevision);
        operation.Request.AddFlag(CommandFlags.Positioned, options is { WithPosition: true });
        return operation;
    }

    public Operation<TResult> Read<TResult>(string key, BatchOptions? batch, bool isExists)
        where TResult : struct, IOperationResult<TResult> =>
        Begin<TResult>(isExists ? CommandKind.Exists : CommandKind.Get, key, batch?.Durability);

    public Operation<DeleteResult> Delete(string key, DeleteOptions? options, bool andGet = false)
    {
        Operation<DeleteResult> operation = Begin<DeleteResult>(CommandKind.Delete, key, options?.Durability);
        operation.Request.AddFlag(CommandFlags.ReturnPrevious, andGet);
        options?.ApplyTo(ref operation.Request);
        return operation;
    }

    public Operation<DeleteResult> Delete(in DeleteItem item, BatchOptions? batch)
    {
        DeleteOptions? options = batch?.Durability is { } level && item.Options?.Durability is null
            ? (item.Options ?? new DeleteOptions()) with { Durability = level }
            : item.Options;
        return Delete(item.Key, options);
    }

    public Operation<ExtendResult> Extend(string key, TimeSpan ttl, ExtendOptions? options)
    {
        Operation<ExtendResult> operation = Begin<ExtendResult>(CommandKind.Extend, key, options?.Durability);
        operation.Request.AddTtl(ttl);
        operation.Request.AddComparison(options?.OnlyIfValue, options?.OnlyIfRevision);
        options?.Fence?.ApplyTo(ref operation.Request);
        return operation;
    }

    public Operation<TResult> Increment<TResult>(string key, long amount, IncrementOptions? options)
        where TResult : struct, IOperationResult<TResult>
    {
        Operation<TResult> operation = Begin<TResult>(CommandKind.Increment, key, options?.Durability);
        operation.Request.AddNumber(amount);
        options?.Fence?.ApplyTo(ref operation.Request);
        return operation;
    }

    private Operation<TResult> Begin<TResult>(CommandKind kind, string key, Durability? level)
        where TResult : struct, IOperationResult<TResult>
    {
        ArgumentNullException.ThrowIfNull(key);
        Operation<TResult> operation = Operation<TResult>.Rent();
        operation.Request.Begin(kind, level ?? durability, key);
        return operation;
    }
}
