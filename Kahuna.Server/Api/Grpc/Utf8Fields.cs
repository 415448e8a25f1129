using System.Buffers;
using System.Collections.Concurrent;
using System.Collections.Frozen;
using System.Text.Unicode;
using Google.Protobuf;
using Google.Protobuf.Reflection;

namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// Finds text in an encoded message that is no valid UTF-8. The generated parsers put U+FFFD in its place, so that two different keys would become one.
/// Made once per message type; any thread.
/// </summary>
internal sealed class Utf8Fields
{
    private static readonly ConcurrentDictionary<MessageDescriptor, Utf8Fields> s_known = new();

    private readonly FrozenDictionary<int, FieldDescriptor> _texts;
    private readonly FrozenDictionary<int, FieldDescriptor> _messages;

    private Utf8Fields(MessageDescriptor type)
    {
        _texts = type.Fields.InFieldNumberOrder().Where(field => field.FieldType == FieldType.String).ToFrozenDictionary(field => field.FieldNumber);
        _messages = type.Fields.InFieldNumberOrder().Where(field => field.FieldType == FieldType.Message).ToFrozenDictionary(field => field.FieldNumber);
    }

    /// <summary>The first field with such text, as <c>key</c> or <c>fence.name</c>; null when there is none.</summary>
    /// <param name="type">The message's type.</param>
    /// <param name="body">The encoded message, which the type's parser has accepted.</param>
    public static string? FirstInvalid(MessageDescriptor type, ReadOnlySequence<byte> body)
    {
        Utf8Fields fields = Of(type);
        if (fields._texts.Count == 0 && fields._messages.Count == 0)
        {
            return null;
        }

        if (body.IsSingleSegment)
        {
            return fields.FirstInvalid(body.FirstSpan);
        }

        byte[] whole = ArrayPool<byte>.Shared.Rent((int)body.Length);
        try
        {
            body.CopyTo(whole);
            return fields.FirstInvalid(whole.AsSpan(0, (int)body.Length));
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(whole);
        }
    }

    private static Utf8Fields Of(MessageDescriptor type) => s_known.GetOrAdd(type, static type => new Utf8Fields(type));

    private string? FirstInvalid(ReadOnlySpan<byte> body)
    {
        int unknownGroups = 0;
        while (TryReadNumber(ref body, out ulong tag))
        {
            int number = (int)(tag >> 3);
            switch (WireFormat.GetTagWireType((uint)tag))
            {
                case WireFormat.WireType.LengthDelimited:
                    if (!TryReadNumber(ref body, out ulong length) || length > (ulong)body.Length)
                    {
                        return null;
                    }

                    if (unknownGroups == 0 && Check(number, body[..(int)length]) is { } field)
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
                    return null;
            }
        }

        return null;
    }

    private string? Check(int number, ReadOnlySpan<byte> bytes)
    {
        if (_texts.TryGetValue(number, out FieldDescriptor? text))
        {
            return Utf8.IsValid(bytes) ? null : text.Name;
        }

        return _messages.TryGetValue(number, out FieldDescriptor? message) && Of(message.MessageType).FirstInvalid(bytes) is { } inner
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

    private static bool TryReadNumber(ref ReadOnlySpan<byte> body, out ulong number)
    {
        number = 0;
        for (int i = 0; i < Math.Min(body.Length, 10); i++)
        {
            number |= (ulong)(body[i] & 0x7F) << (7 * i);
            if (body[i] < 0x80)
            {
                body = body[(i + 1)..];
                return true;
            }
        }

        return false;
    }
}
