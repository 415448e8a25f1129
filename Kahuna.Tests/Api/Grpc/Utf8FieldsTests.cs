using System.Buffers;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// The check of texts finds in the bytes what the generated parsers find there, also where the bytes are no encoder's.
/// </summary>
public sealed class Utf8FieldsTests
{
    private const int Inputs = 100_000;

    [Theory]
    [InlineData("the plain encoding", new byte[] { 0x42, 3, 0x0A, 1, 0xFF })]
    [InlineData("an overlong tag of the field", new byte[] { 0xC2, 0x80, 0x80, 0x80, 0x10, 3, 0x0A, 1, 0xFF })]
    [InlineData("an overlong length of the field", new byte[] { 0x42, 0x83, 0x80, 0x80, 0x80, 0x10, 0x0A, 1, 0xFF })]
    [InlineData("an overlong tag in it", new byte[] { 0x42, 7, 0x8A, 0x80, 0x80, 0x80, 0x10, 1, 0xFF })]
    [InlineData("an overlong length in it", new byte[] { 0x42, 8, 0x0A, 0x81, 0x80, 0x80, 0x80, 0x80, 0x10, 0xFF })]
    [InlineData("ten bytes", new byte[] { 0x42, 12, 0x8A, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7F, 1, 0xFF })]
    public void Text_in_a_nested_message_is_found_however_it_is_encoded(string how, byte[] bytes)
    {
        Assert.Throws<InvalidProtocolBufferException>(() => SetKeyValueRequest.Parser.ParseFrom(bytes));
        Assert.True(
            Utf8Fields.FirstInvalid(SetKeyValueRequest.Descriptor, new ReadOnlySequence<byte>(bytes), out _)
                == "fence.resource",
            how);
    }

    [Fact]
    public void Bytes_that_cannot_be_followed_are_told_from_good_ones()
    {
        byte[][] broken =
            [[0x0A, 2, (byte)'a'], [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, (byte)'a'], [0xFF], [0x0D, 1], [0x0F]];
        Assert.All(broken, static bytes =>
        {
            Assert.Throws<InvalidProtocolBufferException>(() => SetKeyValueRequest.Parser.ParseFrom(bytes));
            Assert.Null(Utf8Fields.FirstInvalid(
                SetKeyValueRequest.Descriptor, new ReadOnlySequence<byte>(bytes), out bool isBroken));
            Assert.True(isBroken);
        });
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void Whatever_the_parser_refuses_for_its_text_is_found(int seed)
    {
        Random random = new(seed);
        IMessage[] requests = [.. Requests()];
        int parsed = 0;
        int refused = 0;
        for (int i = 0; i < Inputs; i++)
        {
            IMessage request = requests[random.Next(requests.Length)];
            byte[] bytes = Mutate(request, random);
            InvalidProtocolBufferException? refusal = Refusal(request.Descriptor, bytes);
            string? field = Utf8Fields.FirstInvalid(
                request.Descriptor, new ReadOnlySequence<byte>(bytes), out bool isBroken);
            if (refusal is null)
            {
                parsed++;
                Assert.True(
                    field is null, $"{request.Descriptor.Name} is refused for {field}: {Convert.ToHexString(bytes)}");
            }
            else if (refusal.Message.Contains("UTF-8", StringComparison.Ordinal))
            {
                refused++;
                Assert.True(
                    field is not null || isBroken, $"{request.Descriptor.Name} passes: {Convert.ToHexString(bytes)}");
            }
        }

        Assert.True(
            parsed > Inputs / 10 && refused > Inputs / 50, $"{parsed} parsed, {refused} refused for their text");
    }

    [Fact]
    public void Good_text_passes_however_its_field_is_encoded()
    {
        Random random = new(3);
        IMessage[] requests = [.. Requests()];
        for (int i = 0; i < Inputs / 10; i++)
        {
            IMessage request = requests[random.Next(requests.Length)];
            byte[] bytes = Encode(request, random);
            Assert.Equal(request, request.Descriptor.Parser.ParseFrom(bytes));
            Assert.Null(
                Utf8Fields.FirstInvalid(request.Descriptor, new ReadOnlySequence<byte>(bytes), out bool isBroken));
            Assert.False(isBroken);
        }
    }

    private static IEnumerable<IMessage> Requests()
    {
        Fence fence = new() { Resource = "jobs/lock", Token = 7 };
        yield return new GetKeyValueRequest { Key = "jobs/a", Durability = Server.Api.Protos.Durability.Persistent };
        yield return new SetKeyValueRequest
        {
            Key = "jobs/\u00E4",
            Durability = Server.Api.Protos.Durability.Ephemeral,
            Value = new Value { Data = ByteString.CopyFromUtf8("value") },
            Fence = fence,
        };
        yield return new DeleteKeyValueRequest
        {
            Key = "jobs/a",
            Durability = Server.Api.Protos.Durability.Persistent,
            Fence = fence,
        };
        yield return new IncrementKeyValueRequest
        {
            Key = "jobs/\u20AC",
            Durability = Server.Api.Protos.Durability.Persistent,
            Fence = fence,
        };
        yield return new CreateSequenceRequest { Name = "numbers" };
    }

    /// <summary>The encoding with some bytes changed: most of them still parse.</summary>
    private static byte[] Mutate(IMessage request, Random random)
    {
        byte[] bytes = Encode(request, random);
        for (int changes = random.Next(3); changes >= 0; changes--)
        {
            int at = random.Next(bytes.Length);
            switch (random.Next(4))
            {
                case 0:
                    bytes[at] = (byte)random.Next(256);
                    break;
                case 1:
                    bytes[at] |= 0x80;
                    break;
                case 2:
                    bytes[at] = 0xFF;
                    break;
                default:
                    bytes = random.Next(2) == 0
                        ? [.. bytes[..at], (byte)random.Next(256), .. bytes[at..]]
                        : [.. bytes, .. bytes[..at]];
                    break;
            }
        }

        return bytes;
    }

    /// <summary>
    /// The fields of a message in their order, with tags and lengths that may be longer than they need to be, and with
    /// bits that the parser drops.
    /// </summary>
    private static byte[] Encode(IMessage message, Random random)
    {
        List<byte> bytes = [];
        foreach (FieldDescriptor field in message.Descriptor.Fields.InFieldNumberOrder())
        {
            byte[]? text = field.Accessor.GetValue(message) switch
            {
                string value => System.Text.Encoding.UTF8.GetBytes(value),
                ByteString value => value.ToByteArray(),
                IMessage value => Encode(value, random),
                _ => null,
            };
            if (text is { Length: > 0 })
            {
                Number(bytes, (uint)(field.FieldNumber << 3) | 2, random);
                Number(bytes, (uint)text.Length, random);
                bytes.AddRange(text);
            }
            else if (text is null && field.Accessor.GetValue(message) is { } plain and (long or Enum))
            {
                ulong number = (ulong)Convert.ToInt64(plain, System.Globalization.CultureInfo.InvariantCulture);
                if (number != 0)
                {
                    Number(bytes, (uint)(field.FieldNumber << 3), random);
                    bytes.Add((byte)number);
                }
            }
        }

        return [.. bytes];
    }

    private static void Number(List<byte> bytes, uint number, Random random)
    {
        ulong whole = number | (random.Next(4) == 0 ? (ulong)random.NextInt64() << 32 : 0);
        int least = random.Next(4) == 0 ? random.Next(1, 11) : 1;
        for (int i = 0; i < least || whole > 0; i++, whole >>= 7)
        {
            bytes.Add((byte)((whole & 0x7F) | (i + 1 < least || whole > 0x7F ? 0x80u : 0)));
        }
    }

    private static InvalidProtocolBufferException? Refusal(MessageDescriptor type, byte[] bytes)
    {
        try
        {
            type.Parser.ParseFrom(bytes);
            return null;
        }
        catch (InvalidProtocolBufferException e)
        {
            return e;
        }
    }
}
