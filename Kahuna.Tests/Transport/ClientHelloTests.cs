using Kahuna.Server.Transport;

namespace Kahuna.Tests.Transport;

/// <summary>Telling nodes from clients by their first bytes.</summary>
public sealed class ClientHelloTests
{
    [Theory]
    [InlineData("kahuna-peer/1", true)]
    [InlineData("h2,kahuna-peer/1", true)]
    [InlineData("h2,http/1.1", false)]
    [InlineData("kahuna-peer/10", false)]
    [InlineData("", false)]
    public async Task A_real_greeting_is_classified_and_every_part_of_it_is_incomplete(string protocols, bool peer)
    {
        byte[] greeting = await Greetings.RealAsync(protocols);
        ClientHelloKind expected = peer ? ClientHelloKind.Peer : ClientHelloKind.Other;

        Assert.Equal(expected, ClientHello.Classify(greeting));
        for (int length = 0; length < greeting.Length; length++)
        {
            ClientHelloKind kind = ClientHello.Classify(greeting.AsSpan(0, length));
            Assert.True(kind == ClientHelloKind.Incomplete || kind == expected, $"{length} bytes: {kind}");
        }
    }

    [Fact]
    public void Other_protocols_are_for_others()
    {
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify("GET / HTTP/1.1\r\n"u8));
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify("P"u8));
        Assert.Equal(ClientHelloKind.Incomplete, ClientHello.Classify([]));
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify([22, 3, 1, 0, 4, 2, 0, 0, 0]));
    }

    [Fact]
    public async Task Damaged_greetings_do_no_harm()
    {
        byte[] greeting = await Greetings.RealAsync("kahuna-peer/1");
        Random random = new(11);
        for (int i = 0; i < 20_000; i++)
        {
            byte[] damaged = [.. greeting];
            for (int flips = random.Next(1, 8); flips > 0; flips--)
            {
                damaged[random.Next(damaged.Length)] = (byte)random.Next(256);
            }

            Assert.True(Enum.IsDefined(ClientHello.Classify(damaged.AsSpan(0, random.Next(damaged.Length + 1)))));
        }
    }

    [Fact]
    public void A_record_that_is_shorter_than_its_message_is_for_others()
    {
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify([0x16, 3, 1, 0, 0, 1, 0, 0, 0]));
        for (int record = 0; record < 64; record++)
        {
            for (int length = 0; length < 80; length++)
            {
                byte[] bytes = [0x16, 3, 1, 0, (byte)record, 1, .. new byte[80]];
                Assert.True(Enum.IsDefined(ClientHello.Classify(bytes.AsSpan(0, length))));
            }
        }
    }

    [Fact]
    public async Task Every_input_has_an_answer()
    {
        byte[][] greetings =
        [
            await Greetings.RealAsync("kahuna-peer/1"),
            await Greetings.RealAsync("h2,http/1.1"),
            await Greetings.RealAsync(""),
        ];
        FuzzInputs inputs = new(seed: 19, greetings);
        int peers = 0;
        for (int i = 0; i < FuzzInputs.Count(300_000); i++)
        {
            ReadOnlySpan<byte> input = inputs.Next();
            ClientHelloKind kind = ClientHello.Classify(input);
            Assert.True(Enum.IsDefined(kind));
            if (kind == ClientHelloKind.Peer)
            {
                peers++;
                Assert.True(input.IndexOf("kahuna-peer/1"u8) > 0);
            }
        }

        // The inputs reach the end of the parser, too.
        Assert.True(peers > 100, $"{peers} inputs were taken for a node's");
    }
}
