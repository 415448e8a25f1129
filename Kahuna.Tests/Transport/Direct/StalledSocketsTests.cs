using System.Net.Sockets;
using System.Security.Cryptography;
using Kahuna.Wire.Sockets;

namespace Kahuna.Tests.Transport.Direct;

/// <summary>What the kernel does not take at once is sent later, in order, or fails with its socket.</summary>
public sealed class StalledSocketsTests
{
    [Fact]
    public async Task All_is_sent_when_the_receivers_read_and_not_before()
    {
        StalledSockets stalled = new();
        (BlockingSocket Socket, Socket Reader, byte[] Bytes, Task Sent)[] all =
        [
            .. Enumerable.Range(1, 8).Select(i =>
            {
                (Socket reader, Socket writer) = RawLink.Pair();
                BlockingSocket socket = new(writer) { PushBytes = int.MaxValue };
                byte[] bytes = RandomNumberGenerator.GetBytes(i << 21);
                Task sent = Task.CompletedTask;

                // As much as the kernel takes, and then all that is left.
                for (int at = 0; at < bytes.Length && sent.IsCompleted; at += 1 << 20)
                {
                    socket.Write(bytes, at, 1 << 20);
                    sent = socket.TryPush() ? Task.CompletedTask : stalled.PushAsync(socket);
                }

                return (socket, reader, bytes, sent);
            }),
        ];
        Assert.Contains(all, static one => !one.Sent.IsCompleted);
        foreach ((BlockingSocket socket, Socket reader, byte[] bytes, Task sent) in all.Reverse())
        {
            byte[] read = new byte[bytes.Length];
            int count = 0;
            for (; !sent.IsCompleted || reader.Available > 0;)
            {
                if (reader.Available > 0)
                {
                    count += reader.Receive(read.AsSpan(count));
                }
                else
                {
                    await Task.Delay(1);
                }
            }

            await sent;
            Assert.True(bytes.AsSpan(0, count).SequenceEqual(read.AsSpan(0, count)));
            Assert.True(count >= 1 << 20);
            socket.Dispose();
            reader.Dispose();
        }
    }

    [Fact]
    public async Task A_socket_that_is_closed_fails_alone()
    {
        StalledSockets stalled = new();
        (Socket reader, Socket writer) = RawLink.Pair();
        (Socket otherReader, Socket otherWriter) = RawLink.Pair();
        BlockingSocket socket = new(writer) { PushBytes = int.MaxValue };
        BlockingSocket other = new(otherWriter) { PushBytes = int.MaxValue };
        byte[] bytes = new byte[1 << 24];
        socket.Write(bytes);
        other.Write(bytes);
        Assert.False(socket.TryPush());
        Assert.False(other.TryPush());
        Task sent = stalled.PushAsync(socket);
        Task otherSent = stalled.PushAsync(other);
        socket.Close();
        await Assert.ThrowsAsync<IOException>(() => sent.WaitAsync(LastNet.Minute));
        Assert.False(otherSent.IsCompleted);
        byte[] read = new byte[1 << 20];
        for (int count = 0; count < bytes.Length;)
        {
            count += otherReader.Receive(read);
        }

        await otherSent.WaitAsync(LastNet.Minute);
        socket.Dispose();
        other.Dispose();
        reader.Dispose();
        otherReader.Dispose();
    }
}
