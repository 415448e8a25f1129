using System.Buffers;
using System.Collections.Concurrent;
using System.Collections.Frozen;
using System.Text.Unicode;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// Finds invalid UTF-8 in an encoded message. The generated parsers refuse it without naming the field. Created once
/// per message type; any thread.
/// </summary>
internal sealed class Utf8Fields
{
    private static readonly ConcurrentDictionary<MessageDescriptor, Utf8Fields> s_known = new();

    private readonly FrozenDictionary<int, FieldDescriptor> _texts;
    private readonly FrozenDictionary<int, FieldDescriptor> _messages;

    private Utf8Fields(MessageDescriptor type)
    {
        _texts = type.Fields
            .InFieldNumberOrder()
            .Where(field => field.FieldType == FieldType.String)
            .ToFrozenDictionary(field => field.FieldNumber);
        _messages = type.Fields
            .InFieldNumberOrder()
            .Where(field => field.FieldType == FieldType.Message)
            .ToFrozenDictionary(field => field.FieldNumber);
    }

    /// <summary>
    /// The first invalid field, as <c>key</c> or <c>fence.name</c>; null if there is none before the end or before
    /// malformed bytes.
    /// </summary>
    /// <param name="type">The message's type.</param>
    /// <param name="body">The encoded message.</param>
    /// <param name="isBroken">Whether there are malformed bytes.</param>
    public static string? FirstInvalid(MessageDescriptor type, ReadOnlySequence<byte> body, out bool isBroken)
    {
        isBroken = false;
        Utf8Fields fields = Of(type);
        if (fields._texts.Count == 0 && fields._messages.Count == 0)
        {
            return null;
        }

        if (body.IsSingleSegment)
        {
            return fields.FirstInvalid(body.FirstSpan, ref isBroken);
        }

        byte[] whole = BufferArrays.Rent((int)body.Length);
        try
        {
            body.CopyTo(whole);
            return fields.FirstInvalid(whole.AsSpan(0, (int)body.Length), ref isBroken);
        }
        finally
        {
            BufferArrays.Return(whole);
        }
    }

    private static Utf8Fields Of(MessageDescriptor type) => s_known.GetOrAdd(type, static type => new Utf8Fields(type));

    private string? FirstInvalid(ReadOnlySpan<byte> body, ref bool isBroken)
    {
        int unknownGroups = 0;
        while (!body.IsEmpty)
        {
            if (!TryReadNumber(ref body, out uint tag))
            {
                isBroken = true;
                return null;
            }

            switch (WireFormat.GetTagWireType(tag))
            {
                case WireFormat.WireType.LengthDelimited:
                    if (!TryReadNumber(ref body, out uint length) || length > (uint)body.Length)
                    {
                        isBroken = true;
                        return null;
                    }

                    string? field = unknownGroups == 0
                        ? Check(WireFormat.GetTagFieldNumber(tag), body[..(int)length], ref isBroken)
                        : null;
                    if (field is not null || isBroken)
                    {
                        return field;
                    }

                    body = body[(int)length..];
                    break;
                case WireFormat.WireType.StartGroup:
                    unknownGroups++;
                    break;
                case WireFormat.WireType.EndGroup:
                    unknownGroups--;
                    break;
                case var plain when !Skip(ref body, plain):
                    isBroken = true;
                    return null;
            }
        }

        return null;
    }

    private string? Check(int number, ReadOnlySpan<byte> bytes, ref bool isBroken)
    {
        if (_texts.TryGetValue(number, out FieldDescriptor? text))
        {
            return Utf8.IsValid(bytes) ? null : text.Name;
        }

        return _messages.TryGetValue(number, out FieldDescriptor? message)
            && Of(message.MessageType).FirstInvalid(bytes, ref isBroken) is { } inner
            ? $"{message.Name}.{inner}"
            : null;
    }

    private static bool Skip(ref ReadOnlySpan<byte> body, WireFormat.WireType type)
    {
        int bytes = type switch
        {
            WireFormat.WireType.Varint => 0,
            WireFormat.WireType.Fixed32 => 4,
            WireFormat.WireType.Fixed64 => 8,
            _ => int.MaxValue,
        };
        if (bytes == 0)
        {
            return TryReadNumber(ref body, out _);
        }

        if (bytes > body.Length)
        {
            return false;
        }

        body = body[bytes..];
        return true;
    }

    /// <summary>Reads a tag or a length of one to ten bytes, and keeps the lowest 32 bits as the parser does.</summary>
    private static bool TryReadNumber(ref ReadOnlySpan<byte> body, out uint number)
    {
        ulong whole = 0;
        number = 0;
        for (int i = 0; i < Math.Min(body.Length, 10); i++)
        {
            whole |= (ulong)(body[i] & 0x7F) << (7 * i);
            if (body[i] < 0x80)
            {
                number = (uint)whole;
                body = body[(i + 1)..];
                return true;
            }
        }

        return false;
    }
}
