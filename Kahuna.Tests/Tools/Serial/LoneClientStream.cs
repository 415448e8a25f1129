using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Server.Transport;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Kahuna.Tests.Transport.Direct;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Sockets;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Tools.Serial;

/// <summary>
/// The shipped client with one direct link over loopback, with TLS, from calls to results: what one stream can do at
/// most. At its other end the node's thread of the link answers every request at once.
/// </summary>
internal sealed class LoneClientStream : IAsyncDisposable
{
    private const int ValueBytes = 128;

    private readonly byte[] _value = new byte[ValueBytes];
    private readonly DirectLinks _links = RawLink.Links(1);
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly KahunaClient _client;
    private readonly string[] _keys;
    private readonly bool _locks;

    /// <param name="callers">Tasks that each wait for one write at a time.</param>
    /// <param name="isInline">They go on on the link's own thread, as those of kahuna-bench; otherwise on the
    /// pool.</param>
    /// <param name="locks">They acquire and release locks instead, each of which counts as a write.</param>
    public LoneClientStream(int callers, bool isInline, bool locks)
    {
        _locks = locks;
        _keys = [.. Enumerable.Range(0, callers).Select(static i => FormattableString.Invariant($"bench:{i}"))];
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen();
        KahunaClientOptions options = new() { AllowSynchronousContinuations = isInline };
        options.Endpoints.Add(InstantNode.Endpoint);
        _client = new KahunaClient(
            options, new ConnectionPorts(new LinkChannel(this), TimeProvider.System, Context: null, Seed: 1),
            NullLoggerFactory.Instance);
    }

    /// <summary>Time of one write, in ns, over as many of them.</summary>
    public async Task<double> RunAsync(int operations)
    {
        int each = Math.Max(1, operations / _keys.Length);
        long began = Stopwatch.GetTimestamp();
        await Task.WhenAll(_keys.Select(key => Task.Run(() => CallAsync(key, each))));
        return Stopwatch.GetElapsedTime(began).TotalNanoseconds / (each * (double)_keys.Length);
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        await _client.DisposeAsync();
        _links.Stop();
        _listener.Dispose();
    }

    private static void Answer(DirectConnection link)
    {
        using FrameReader frames = new();
        ByteBuffer answers = ByteBuffer.Rent();
        while (link.Read(frames.Space().Span) is var count and > 0)
        {
            frames.Advance(count);
            answers.Length = 0;
            while (frames.TryTake(out ReadOnlySpan<byte> payload))
            {
                InstantNode.Answer(payload, answers, new Outcome(OutcomeStatus.Applied, 1, -1));
            }

            link.Write(answers.Written);
            link.FlushAsync().GetAwaiter().GetResult();
        }

        answers.Return();
    }

    private async Task CallAsync(string key, int times)
    {
        for (int i = 0; _locks && i < times / 2; i++)
        {
            LockHandle? held = await _client.Locks.TryAcquireAsync(key, LastNet.Minute);
            await held!.DisposeAsync();
        }

        for (int i = 0; !_locks && i < times; i++)
        {
            await _client.KeyValues.SetAsync(key, (ReadOnlyMemory<byte>)_value);
        }
    }

    private async Task<IFrameStream> OpenAsync(CancellationToken ct)
    {
        string ticket = _links.Offer(Answer) ?? throw new MeasureException("there is one stream only");
        Task<Socket> accepted = _listener.AcceptAsync(ct).AsTask();
        Task<DirectLink?> opened = DirectLink.TryOpenAsync(
            new UriBuilder(Uri.UriSchemeHttps, "127.0.0.1", ((IPEndPoint)_listener.LocalEndPoint!).Port).Uri,
            TestCertificate.Trust, ticket, new KeepAlive(LastNet.Minute, LastNet.Minute), LastNet.Minute, ct);
        _links.Accept(await accepted, null);
        return new LinkStream(await opened ?? throw new MeasureException("the link cannot be opened"));
    }

    /// <summary>The client's way to its stream. Owned by the client.</summary>
    private sealed class LinkChannel(LoneClientStream owner) : IFrameChannel
    {
        public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, string? authorization, CancellationToken ct) =>
            await owner.OpenAsync(ct);

        public ValueTask DisposeAsync() => ValueTask.CompletedTask;
    }

    /// <summary>A stream on a link alone. Owned by the client.</summary>
    private sealed class LinkStream(DirectLink link) : IFrameStream
    {
        public ValueTask WriteAsync(ReadOnlyMemory<byte> messages) => link.WriteAsync(messages);

        public ValueTask<int> ReadAsync(Memory<byte> buffer) => link.ReadAsync(buffer);

        public ValueTask<string?> EndReasonAsync() => new((string?)null);

        public void Abort() => link.Close();

        public ValueTask DisposeAsync()
        {
            link.Dispose();
            return ValueTask.CompletedTask;
        }
    }
}
