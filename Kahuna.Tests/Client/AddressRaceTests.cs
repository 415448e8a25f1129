using System.Net;
using System.Net.Sockets;
using Kahuna.Client.Connection;

namespace Kahuna.Tests.Client;

/// <summary>Connecting to a name of which some addresses lead nowhere.</summary>
public sealed class AddressRaceTests
{
    private static readonly IPAddress s_v6 = IPAddress.Parse("2001:db8::1");
    private static readonly IPAddress s_v4 = IPAddress.Parse("192.0.2.1");
    private static readonly IPAddress s_other = IPAddress.Parse("192.0.2.2");

    private readonly ManualTime _time = new();
    private readonly Dictionary<IPAddress, TaskCompletionSource<Stream>> _attempts = [];

    [Fact]
    public async Task An_address_that_leads_nowhere_costs_a_moment()
    {
        Task<Stream> connecting = Connect(s_v6, s_v4);
        Assert.Equal([s_v6], _attempts.Keys);
        _time.Advance(AddressRace.Delay - TimeSpan.FromMilliseconds(5));
        Assert.Equal([s_v6], _attempts.Keys);
        await Wait.UntilAsync(_time, () => Tried == 2);
        MemoryStream won = new();
        _attempts[s_v4].SetResult(won);
        Assert.Same(won, await connecting.WaitAsync(Wait.Longest));
        await Wait.UntilAsync(() => _attempts[s_v6].Task.IsCanceled);
    }

    [Fact]
    public async Task The_next_address_is_tried_at_once_when_one_fails()
    {
        Task<Stream> connecting = Connect(s_v6, s_v4);
        _attempts[s_v6].SetException(new SocketException((int)SocketError.ConnectionRefused));
        await Wait.UntilAsync(() => Tried == 2);
        _attempts[s_v4].SetResult(new MemoryStream());
        await connecting.WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_connection_that_comes_too_late_is_closed()
    {
        Task<Stream> connecting = Connect(s_v6, s_v4);
        await Wait.UntilAsync(_time, () => Tried == 2);
        MemoryStream late = new();
        _attempts[s_v4].SetResult(new MemoryStream());
        _attempts[s_v6].TrySetResult(late);
        Stream won = await connecting.WaitAsync(Wait.Longest);
        await Wait.UntilAsync(() => ReferenceEquals(won, late) || _attempts[s_v6].Task.IsCanceled || !late.CanRead);
    }

    [Fact]
    public async Task When_all_fail_the_first_says_why()
    {
        Task<Stream> connecting = Connect(s_v6, s_v4);
        _attempts[s_v6].SetException(new SocketException((int)SocketError.NetworkUnreachable));
        await Wait.UntilAsync(() => Tried == 2);
        _attempts[s_v4].SetException(new SocketException((int)SocketError.ConnectionRefused));
        SocketException failure = await Assert.ThrowsAsync<SocketException>(() => connecting.WaitAsync(Wait.Longest));
        Assert.Equal(SocketError.NetworkUnreachable, failure.SocketErrorCode);
    }

    [Fact]
    public async Task A_name_without_an_address_fails() =>
        Assert.Equal(
            SocketError.HostNotFound,
            (await Assert.ThrowsAsync<SocketException>(() => Connect().WaitAsync(Wait.Longest))).SocketErrorCode);

    [Fact]
    public void Families_take_turns()
    {
        Assert.Equal([s_v4, s_v6, s_other], AddressRace.Alternate([s_v4, s_other, s_v6]));
        Assert.Equal([s_v6, s_v4, s_other], AddressRace.Alternate([s_v6, s_v4, s_other]));
    }

    [Fact]
    public async Task The_system_connects()
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        DnsEndPoint target = new("localhost", ((IPEndPoint)listener.LocalEndpoint).Port);
        await using Stream stream = await Wait.ForAsync(
            AddressRace.ForNetwork(TimeProvider.System).ConnectAsync(target, CancellationToken.None));
        Assert.True(stream.CanWrite);
    }

    private int Tried
    {
        get
        {
            lock (_attempts)
            {
                return _attempts.Count;
            }
        }
    }

    private Task<Stream> Connect(params IPAddress[] addresses)
    {
        AddressRace race = new((_, _) => Task.FromResult(addresses), Begin, _time);
        return race.ConnectAsync(new DnsEndPoint("node", 1), CancellationToken.None).AsTask();
    }

    private Task<Stream> Begin(IPEndPoint address, CancellationToken ct)
    {
        TaskCompletionSource<Stream> attempt = new(TaskCreationOptions.RunContinuationsAsynchronously);
        ct.Register(() => attempt.TrySetCanceled(ct));
        lock (_attempts)
        {
            _attempts.Add(address.Address, attempt);
        }

        return attempt.Task;
    }
}
