using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Api;

/// <summary>
/// The keys of all partitions in order, for foreign clients: a page for a call, or a stream of them. A page is read
/// anew from every partition and merged, so nothing is kept between two calls: the page token says where to go on. Any
/// thread.
/// </summary>
/// <param name="execute">Executes a command: encoded, time until the deadline, cancelled when nobody waits.</param>
/// <param name="partitions">Number of partitions.</param>
internal sealed class ScanPages(
    Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute, int partitions)
{
    /// <summary>Keys of a page whose request does not say how many.</summary>
    private const int LimitDefault = 1_000;

    /// <summary>Keys of a message of a stream, and of the pages that it reads.</summary>
    private const int KeysPerMessage = 1_000;

    /// <summary>A page, and a message of a stream, ends when it has this many bytes.</summary>
    private const int BytesPerPage = 64 * 1024;

    /// <summary>What the calls take up together.</summary>
    public ScanBudget Budget { get; } = new();

    /// <summary>One page.</summary>
    public async Task<ScanKeyValuesResponse> ReadAsync(ScanKeyValuesRequest request, ServerCallContext context)
    {
        KeyRange range = RangeOf(
            request.Prefix, request.HasFrom ? request.From : null, request.HasTo ? request.To : null);
        int limit = request.Limit == 0 ? LimitDefault : (int)Math.Min(request.Limit, int.MaxValue);
        using ScanCall call = Budget.Begin(context, isStream: false);
        ScanParts parts = new(execute, call, partitions, DurabilityField.Read(request.Durability));
        parts.Begin(range, FlagsOf(request.Descending, request.KeysOnly), request.PageToken);
        await call.GuardAsync(() => parts.FillAsync(limit)).ConfigureAwait(false);
        ScanKeyValuesResponse page = new();
        int bytes = 0;
        bool hasNext = true;
        while (hasNext && page.Entries.Count < limit && bytes < BytesPerPage)
        {
            hasNext = parts.TryTake(page.Entries, ref bytes);
        }

        page.NextPageToken = parts.Token(hasNext);
        return page;
    }

    /// <summary>Sends the keys in messages of a page's size, as fast as the caller reads them.</summary>
    public async Task StreamAsync(
        StreamKeyValuesRequest request,
        IServerStreamWriter<StreamKeyValuesResponse> responses,
        ServerCallContext context)
    {
        KeyRange range = RangeOf(
            request.Prefix, request.HasFrom ? request.From : null, request.HasTo ? request.To : null);
        if (request.Consistent && request.PageToken.Length > 0)
        {
            throw OutcomeErrors.Build(
                StatusCode.InvalidArgument,
                "page_token is set; a consistent stream shows one moment and begins without one.",
                OutcomeErrors.DidNotHappen);
        }

        using ScanCall call = Budget.Begin(context, isStream: true);
        ScanParts parts = new(execute, call, partitions, DurabilityField.Read(request.Durability));
        parts.Begin(range, FlagsOf(request.Descending, request.KeysOnly), request.PageToken);
        await RunAsync(call, parts, range, (request.Consistent, request.KeysOnly), context, async () =>
        {
            ulong left = request.Limit == 0 ? ulong.MaxValue : request.Limit;
            bool hasNext = true;
            while (left > 0 && hasNext)
            {
                StreamKeyValuesResponse message = new();
                int bytes = 0;
                while (left > 0 && hasNext && message.Entries.Count < KeysPerMessage && bytes < BytesPerPage)
                {
                    while (parts.NeedsPage)
                    {
                        await parts.FillAsync((int)Math.Min(left, KeysPerMessage)).ConfigureAwait(false);
                    }

                    hasNext = parts.TryTake(message.Entries, ref bytes);
                    left -= hasNext ? 1UL : 0;
                }

                if (message.Entries.Count > 0)
                {
                    message.NextPageToken = request.Consistent ? "" : parts.Token(hasNext);
                    await responses.WriteAsync(message, context.CancellationToken).ConfigureAwait(false);
                }
            }
        }).ConfigureAwait(false);
    }

    /// <summary>How many keys there are.</summary>
    public async Task<CountKeyValuesResponse> CountAsync(CountKeyValuesRequest request, ServerCallContext context)
    {
        KeyRange range = RangeOf(
            request.Prefix, request.HasFrom ? request.From : null, request.HasTo ? request.To : null);
        using ScanCall call = Budget.Begin(context, isStream: false);
        ScanParts parts = new(execute, call, partitions, DurabilityField.Read(request.Durability));
        parts.Begin(range, RangeFlags.CountOnly, "");
        await RunAsync(call, parts, range, (request.Consistent, true), context, parts.CountAsync).ConfigureAwait(false);
        return new CountKeyValuesResponse { Count = parts.Count };
    }

    /// <summary>Does the call's work, at one moment if that is asked for.</summary>
    private async Task RunAsync(
        ScanCall call,
        ScanParts parts,
        KeyRange range,
        (bool IsConsistent, bool KeysOnly) form,
        ServerCallContext context,
        Func<Task> work)
    {
        if (!form.IsConsistent)
        {
            await call.GuardAsync(work).ConfigureAwait(false);
            return;
        }

        Budget.BeginMoment();
        try
        {
            await call.GuardAsync(async () =>
            {
                await parts.OpenMomentAsync(range, form.KeysOnly, context.CancellationToken).ConfigureAwait(false);
                await work().ConfigureAwait(false);
            }).ConfigureAwait(false);
        }
        finally
        {
            parts.EndMoment();
            Budget.EndMoment();
        }
    }

    private static RangeFlags FlagsOf(bool descending, bool keysOnly) =>
        (descending ? RangeFlags.Descending : 0) | (keysOnly ? RangeFlags.KeysOnly : 0);

    private static KeyRange RangeOf(string prefix, string? from, string? to) => KeyRange.Of(
        CommandText.Encode("prefix", prefix),
        from is null ? null : CommandText.Encode("from", from),
        to is null ? null : CommandText.Encode("to", to));
}
