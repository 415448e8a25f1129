using System.Buffers.Binary;
using System.Globalization;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Api;

/// <summary>
/// Deletes ranges of keys for any gRPC client, one partition after the other. Nothing is kept between two calls: the
/// page token says where to go on. Stateless, any thread.
/// </summary>
internal sealed class RangeDeletes(UnaryExecutor calls, int partitions)
{
    /// <summary>Keys that a call deletes whose request does not say how many.</summary>
    private const int LimitDefault = 1_000;

    /// <summary>
    /// Steps of one call: a range that has many deleted keys ends the call before it has found its limit.
    /// </summary>
    private const int StepsMax = 64;

    /// <summary>Deletes keys, up to a limit. What fails behind the first step is left for the next call.</summary>
    public async Task<DeleteKeyValueRangeResponse> RunAsync(
        DeleteKeyValueRangeRequest request, ServerCallContext context)
    {
        CallNumbers.Refuse(context);
        int left = LimitOf(request);
        KeyRange range = KeyRange.Of(
            CommandText.Encode("prefix", request.Prefix),
            request.HasFrom ? CommandText.Encode("from", request.From) : null,
            request.HasTo ? CommandText.Encode("to", request.To) : null);
        ulong query = XxHash64.Hash(
            range.End,
            XxHash64.Hash(range.Start, ((ulong)request.Durability << 1) | (request.WithoutHistory ? 1UL : 0)));
        DeletePosition at = DeletePosition.Read(PageToken.Read(request.PageToken, query));
        DeleteKeyValueRangeResponse response = new();
        for (int steps = 0; at.Partition < partitions && left > 0 && steps < StepsMax; steps++)
        {
            byte[] answer;
            try
            {
                answer = await StepAsync(at.Rest(range), at.Partition, request, left, context).ConfigureAwait(false);
            }
            catch (RpcException) when (response.Deleted > 0)
            {
                break;
            }

            if (!Outcome.TryRead(answer, out Outcome outcome) || !RangePage.TryRead(outcome.Value, out RangePage page))
            {
                throw new InvalidOperationException("A step of a delete cannot be read.");
            }

            response.Deleted += page.Count;
            left -= page.Count;
            at = page.HasMore ? at with { Last = page.Last.ToArray() } : new DeletePosition(at.Partition + 1, []);
        }

        response.NextPageToken = at.Partition < partitions ? PageToken.Write(at.ToBytes(), query) : "";
        return response;
    }

    private static int LimitOf(DeleteKeyValueRangeRequest request)
    {
        if (request.Prefix.Length == 0 && !request.HasFrom && !request.HasTo && !request.AllKeys)
        {
            throw Invalid("prefix is empty and would delete every key; set all_keys if that is meant.");
        }

        if (request.Limit > Limits.RangeKeysMax)
        {
            throw Invalid(string.Create(
                CultureInfo.InvariantCulture,
                $"limit is {request.Limit:N0}; it must be 1 to {Limits.RangeKeysMax:N0}."));
        }

        return request.Limit == 0 ? LimitDefault : (int)request.Limit;
    }

    private Task<byte[]> StepAsync(
        KeyRange range, int partition, DeleteKeyValueRangeRequest request, int limit, ServerCallContext context)
    {
        Command command = new()
        {
            Kind = CommandKind.KeyRangeDelete,
            Durability = DurabilityField.Read(request.Durability),
            Flags = CommandFlags.Number
                | CommandFlags.AtRevision
                | (range.End is null ? CommandFlags.None : CommandFlags.IfValue)
                | (request.WithoutHistory ? CommandFlags.WithoutHistory : CommandFlags.None),
            Key = range.Start,
            ComparedValue = range.End,
            Number = partition,
            AtRevision = RangeRequest.Options(limit, RangeFlags.None),
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return calls.ExecuteAsync(buffer, context.TimeLeft(), context.CancellationToken);
    }

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);

    /// <summary>How far a delete has come: a partition, and a key of it behind which it goes on. Immutable.</summary>
    private readonly record struct DeletePosition(int Partition, byte[] Last)
    {
        public static DeletePosition Read(byte[] bytes) => bytes.Length < sizeof(ushort)
            ? new DeletePosition(0, [])
            : new DeletePosition(BinaryPrimitives.ReadUInt16LittleEndian(bytes), bytes[sizeof(ushort)..]);

        public byte[] ToBytes()
        {
            byte[] bytes = new byte[sizeof(ushort) + Last.Length];
            BinaryPrimitives.WriteUInt16LittleEndian(bytes, (ushort)Partition);
            Last.CopyTo(bytes.AsSpan(sizeof(ushort)));
            return bytes;
        }

        /// <summary>The range from here on. The key itself is gone, so it may be part of it.</summary>
        public KeyRange Rest(KeyRange range) => Last.Length == 0 ? range : range with { Start = Last };
    }
}
