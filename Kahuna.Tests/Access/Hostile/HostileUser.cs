using System.Net;
using System.Net.Http.Headers;
using System.Net.Sockets;
using System.Text;
using Kahuna.Server.Api.Access;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Cluster;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// A user with rights below <c>mallory/</c> who tries everything else: other users' names in every way in, wrong
/// passwords, what is no request at all. What it gets back is looked at, byte by byte. Owned by one task.
/// </summary>
internal sealed class HostileUser : IDisposable
{
    public const string Name = "mallory";
    public const string Password = "the password of mallory";

    private const int IdleConnectionsMax = 50;
    private const int HeldStreamsMax = 5;

    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(5);

    /// <summary>A stream that a node leaves open is left after this.</summary>
    private static readonly TimeSpan s_patienceWithStreams = TimeSpan.FromSeconds(1);

    private static readonly string[] s_others =
        ["ann/", "ann/plain-2", "bob/", "bob/plain-4", "bob/lock", "ann", "a", ""];

    private readonly IReadOnlyList<NodeProcess> _nodes;
    private readonly HostileTally _tally;
    private readonly SecretMarker _marker;
    private readonly Random _random;
    private readonly HttpClient _http;
    private readonly List<Socket> _idle = [];
    private readonly List<HttpResponseMessage> _held = [];
    private readonly Func<CancellationToken, Task>[] _attacks;

    public HostileUser(IReadOnlyList<NodeProcess> nodes, SecretMarker marker, int seed, HostileTally tally)
    {
        (_nodes, _marker, _tally, _random) = (nodes, marker, tally, new Random(seed));
        _http = new HttpClient(HostileConnections.Handler(marker, tally)) { Timeout = s_patience };
        _attacks =
        [
            NamesAsync, NamesAsync, NamesAsync, FramesAsync, FramesAsync, OwnRangesAsync, PasswordsAsync, HeadersAsync,
            AdministrationAsync, MalformedCallsAsync, MalformedFramesAsync, HugeAsync, IdleAsync, WatchesAsync,
            IdempotencyAsync, ScriptsAsync,
        ];
    }

    /// <summary>Attacks until the token ends it.</summary>
    public async Task RunAsync(CancellationToken end)
    {
        for (int i = 0; !end.IsCancellationRequested; i++)
        {
            // Each of them at first, then at random.
            Func<CancellationToken, Task> attack = _attacks[i < _attacks.Length ? i : _random.Next(_attacks.Length)];
            try
            {
                await attack(end);
                _tally.Add("attacks");
            }
            catch (Exception refused) when (
                refused is HttpRequestException or IOException or OperationCanceledException or SocketException)
            {
                if (_marker.IsIn(Encoding.UTF8.GetBytes(refused.ToString())))
                {
                    _tally.Reveal("an exception");
                }

                _tally.Add("attacks that ended with the connection or in time");
            }
        }
    }

    public void Dispose()
    {
        _idle.ForEach(static socket => socket.Dispose());
        _held.ForEach(static held => held.Dispose());
        _http.Dispose();
    }

    /// <summary>Everything that JSON can ask, of other users' names.</summary>
    private async Task NamesAsync(CancellationToken ct)
    {
        string name = Pick(s_others[..5]);
        (string method, string path, string? body) = Pick(HostileRequests.OnNames(name));
        await RefusedAsync(method, path, body, ct);
    }

    /// <summary>Ranges that begin in its own names, or around them.</summary>
    private async Task OwnRangesAsync(CancellationToken ct)
    {
        string prefix = Pick<string>(["", "m", "mallor", "mallory", "mallor%79", "b", "ann%2F", "%00"]);
        string path = Pick<string>(
        [
            $"/v1/scan?prefix={prefix}&durability=DURABILITY_PERSISTENT",
            $"/v1/count?prefix={prefix}&durability=DURABILITY_PERSISTENT",
            $"/v1/locks?prefix={prefix}&durability=DURABILITY_PERSISTENT",
            $"/v1/sequences?prefix={prefix}",
        ]);
        await RefusedAsync("GET", path, null, ct);
    }

    private Task ScriptsAsync(CancellationToken ct) => RefusedAsync(
        "POST", "/v1/script", HostileRequests.Script(Pick<string>(
        [
            "let x = get 'ann/plain-2' return x",
            "let k = 'an' + 'n/plain-2' let x = get k return x",
            "let x = get by bucket 'bob' return x",
            "let x = scan by prefix 'ann/' return x",
            "set 'mallory/a' 'v' let x = get 'bob/plain-4' return x",
            "set 'mallory/a' 'v' set 'ann/plain-2' 'stolen'",
        ])),
        ct);

    /// <summary>The key of another user's outcome, on its own names: its own outcome, or none.</summary>
    private async Task IdempotencyAsync(CancellationToken ct)
    {
        using HttpRequestMessage request = Request(
            "POST", "/v1/increment/mallory/count", "{\"durability\":\"DURABILITY_PERSISTENT\",\"amount\":\"1\"}");
        request.Headers.TryAddWithoutValidation("x-kahuna-idempotency-key", $"order-{_random.Next(10)}");
        await SendAsync(request, ct);
    }

    private async Task PasswordsAsync(CancellationToken ct)
    {
        string user = Pick<string>(["ann", "bob", "root", "nobody", Name]);
        using HttpRequestMessage request = Request("GET", "/v1/kv/ann/plain-2?durability=DURABILITY_PERSISTENT", null);
        request.Headers.Authorization = AuthenticationHeaderValue.Parse(
            AccessNode.Basic(user, $"guess {_random.Next()}"));
        await RefusedAsync(request, ct);
    }

    private async Task HeadersAsync(CancellationToken ct)
    {
        string good = AccessNode.Basic(Name, Password);
        string[] values = Pick<string[]>(
        [
            [], [good, good], [good, AccessNode.Basic("root", "x")], [good + ", " + good], ["Basic"], ["Basic !!!!"],
            ["Basic " + new string('A', 6_000)], ["Bearer kahuna_x"], ["Bearer a.b.c"], ["Digest x"],
            [AccessNode.Basic("ann\0", "x")],
            [AccessNode.Basic("", "")], ["Negotiate YII="],
        ]);
        using HttpRequestMessage request = Request("GET", "/v1/kv/ann/plain-2?durability=DURABILITY_PERSISTENT", null);
        request.Headers.Remove("authorization");
        foreach (string value in values)
        {
            request.Headers.TryAddWithoutValidation("authorization", value);
        }

        if (_random.Next(3) == 0)
        {
            request.Headers.TryAddWithoutValidation("x-kahuna-node", Convert.ToHexString(RandomBytes(32)));
            request.Headers.TryAddWithoutValidation("x-forwarded-for", "127.0.0.1");
        }

        await RefusedAsync(request, ct);
    }

    private async Task AdministrationAsync(CancellationToken ct)
    {
        string[] closed =
        [
            .. AccessPolicies.Names.Where(static name =>
                AccessPolicies.Find(name) is AccessPolicy.Admin or AccessPolicy.Node),
        ];
        string path = Pick(closed);
        byte[] body = Message(Pick<byte[]>([[], "\n\u0004root"u8.ToArray()]));
        await CallAsync(path, body, ct, mustBeRefused: true);
    }

    /// <summary>Bytes that are no message of the method, or one by chance.</summary>
    private async Task MalformedCallsAsync(CancellationToken ct)
    {
        string[] methods =
        [
            .. AccessPolicies.Names.Where(static name => name.StartsWith("/kahuna.v1.", StringComparison.Ordinal)),
        ];
        byte[] body = _random.Next(4) == 0
            ? RandomBytes(_random.Next(64))
            : Message(RandomBytes(_random.Next(200)));
        await CallAsync(Pick(methods), body, ct, mustBeRefused: false);
    }

    /// <summary>Commands of every kind on other users' names, with sessions and tokens of anybody.</summary>
    private Task FramesAsync(CancellationToken ct)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Requests);
        int count = _random.Next(1, 50);
        for (int i = 0; i < count; i++)
        {
            Command command = new()
            {
                Kind = (CommandKind)_random.Next(0x92),
                Durability = _random.Next(8) == 0 ? Durability.Ephemeral : Durability.Persistent,
                Flags = _random.Next(3) == 0 ? CommandFlags.Session : CommandFlags.None,
                Key = Encoding.UTF8.GetBytes(Pick(s_others)),
                Value = RandomBytes(_random.Next(32)),
                SessionId = (ulong)_random.Next(1, 100),
                Sequence = (ulong)_random.Next(1, 5),
            };
            Frame.AppendRequest(frame, (uint)i + 1, 1_000, in command);
        }

        return ExchangeAsync(frame, count, ct);
    }

    private Task MalformedFramesAsync(CancellationToken ct)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, (FrameKind)_random.Next(12));
        byte[] noise = RandomBytes(_random.Next(2_000));
        noise.CopyTo(frame.Take(noise.Length));
        return ExchangeAsync(frame, _random.Next(100), ct);
    }

    /// <summary>A value as long as it may be, on few of its own names; and one that is longer.</summary>
    private async Task HugeAsync(CancellationToken ct)
    {
        int bytes = Pick<int>([600_000, 1_000_000, 5_000_000]);
        string value = Convert.ToBase64String(new byte[bytes]);
        using HttpRequestMessage request = Request(
            "PUT", $"/v1/kv/mallory/big{_random.Next(3)}",
            "{\"durability\":\"DURABILITY_PERSISTENT\",\"value\":{\"data\":\"" + value + "\"}}");
        await SendAsync(request, ct);
    }

    /// <summary>A connection that says nothing, or begins to.</summary>
    private async Task IdleAsync(CancellationToken ct)
    {
        if (_idle.Count >= IdleConnectionsMax)
        {
            _idle[0].Dispose();
            _idle.RemoveAt(0);
        }

        Socket socket = await HostileConnections.ConnectAsync(new Uri(Pick(_nodes).Url).Port, ct);
        _idle.Add(socket);
        await socket.SendAsync(RandomBytes(_random.Next(1, 20)), ct);
    }

    /// <summary>Watches of other users' names; and of its own, which are left open and never read.</summary>
    private async Task WatchesAsync(CancellationToken ct)
    {
        bool isOwn = _random.Next(3) == 0;
        Server.Api.Protos.WatchKeyValuesRequest watch = new()
        {
            Durability = Server.Api.Protos.Durability.Persistent,
            WithState = _random.Next(2) == 0,
            Prefix = isOwn ? "mallory/" : Pick(s_others),
        };
        byte[] body = Message(Google.Protobuf.MessageExtensions.ToByteArray(watch));
        if (!isOwn)
        {
            await CallAsync("/kahuna.v1.KeyValues/WatchKeyValues", body, ct, mustBeRefused: true);
            return;
        }

        if (_held.Count >= HeldStreamsMax)
        {
            _held[0].Dispose();
            _held.RemoveAt(0);
        }

        using HttpRequestMessage request = Call("/kahuna.v1.KeyValues/WatchKeyValues", body);
        _held.Add(await _http.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, ct));
    }

    private async Task RefusedAsync(string method, string path, string? body, CancellationToken ct)
    {
        using HttpRequestMessage request = Request(method, path, body);
        await RefusedAsync(request, ct);
    }

    private async Task RefusedAsync(HttpRequestMessage request, CancellationToken ct)
    {
        HttpStatusCode status = await SendAsync(request, ct);
        if ((int)status is >= 200 and < 300)
        {
            _tally.Wrong($"the hostile user got {(int)status} for {request.Method} {request.RequestUri!.PathAndQuery}");
        }

        _tally.Add("refused requests");
    }

    private async Task<HttpStatusCode> SendAsync(HttpRequestMessage request, CancellationToken ct)
    {
        using HttpResponseMessage answer = await _http.SendAsync(request, ct);
        string text = await answer.Content.ReadAsStringAsync(ct);
        Look(answer, text);
        _tally.Add("requests of JSON");
        return answer.StatusCode;
    }

    private async Task CallAsync(string path, byte[] body, CancellationToken ct, bool mustBeRefused)
    {
        using HttpRequestMessage request = Call(path, body);
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(ct);
        limit.CancelAfter(s_patienceWithStreams);
        using HttpResponseMessage answer = await _http.SendAsync(
            request, HttpCompletionOption.ResponseHeadersRead, limit.Token);
        string? status = await RawHttp.StatusAsync(answer).WaitAsync(limit.Token);
        Look(answer, "");
        _tally.Add("calls of gRPC");
        if (mustBeRefused && (status == "0" || (status is null && answer.IsSuccessStatusCode)))
        {
            _tally.Wrong($"the hostile user got OK for {path}");
        }
    }

    /// <summary>Sends frames on a stream of its own, and reads for a moment.</summary>
    private async Task ExchangeAsync(ByteBuffer frame, int count, CancellationToken ct)
    {
        Frame.End(frame, count);
        ByteBuffer hello = ByteBuffer.Rent();
        Frame.Begin(hello, FrameKind.Hello, Limits.WireVersion);
        Frame.End(hello, 0);
        byte[] body = [.. hello.Written, .. frame.Written];
        hello.Return();
        frame.Return();
        using HttpRequestMessage request = Call("/kahuna.v1.Cluster/Exchange", body);
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(ct);
        limit.CancelAfter(s_patienceWithStreams);
        using HttpResponseMessage answer = await _http.SendAsync(
            request, HttpCompletionOption.ResponseHeadersRead, limit.Token);
        _tally.Add("streams of frames");
        await using Stream replies = await answer.Content.ReadAsStreamAsync(limit.Token);
        byte[] read = new byte[16 * 1024];
        try
        {
            while (await replies.ReadAsync(read, limit.Token) > 0)
            {
            }
        }
        catch (OperationCanceledException) when (!ct.IsCancellationRequested)
        {
            // The node has nothing more to say.
        }

        Look(answer, "");
    }

    /// <summary>Headers are compressed on the wire, so they are looked at here too.</summary>
    private void Look(HttpResponseMessage answer, string text)
    {
        if (_marker.IsIn(Encoding.UTF8.GetBytes($"{answer.Headers}{answer.TrailingHeaders}{text}")))
        {
            _tally.Reveal("an answer");
        }
    }

    private HttpRequestMessage Request(string method, string path, string? body)
    {
        HttpRequestMessage request = new(new HttpMethod(method), new Uri(Pick(_nodes).Url + path))
        {
            Content = body is null ? null : new StringContent(body, Encoding.UTF8, "application/json"),
        };
        request.Headers.TryAddWithoutValidation("authorization", AccessNode.Basic(Name, Password));
        return request;
    }

    private HttpRequestMessage Call(string path, byte[] body)
    {
        HttpRequestMessage request = RawHttp.Request(new Uri(Pick(_nodes).Url), path, body);
        request.Headers.TryAddWithoutValidation("authorization", AccessNode.Basic(Name, Password));
        return request;
    }

    private static byte[] Message(byte[] content) =>
    [
        0, (byte)(content.Length >> 24), (byte)(content.Length >> 16), (byte)(content.Length >> 8),
        (byte)content.Length, .. content,
    ];

    private byte[] RandomBytes(int count)
    {
        byte[] bytes = new byte[count];
        _random.NextBytes(bytes);
        return bytes;
    }

    private T Pick<T>(IReadOnlyList<T> choices) => choices[_random.Next(choices.Count)];
}
