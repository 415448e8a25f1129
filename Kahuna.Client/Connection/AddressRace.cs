using System.Net;
using System.Net.Sockets;

namespace Kahuna.Client.Connection;

/// <summary>
/// Connects to the first address of a name that answers (RFC 8305). Addresses are tried in turn, alternating between
/// the families. The next attempt starts when the one before has failed or after <see cref="Delay"/>; the first
/// connection wins. An unreachable address therefore costs a moment instead of the whole connect timeout. Immutable,
/// any thread.
/// </summary>
/// <param name="resolve">The addresses of a name, the preferred one first.</param>
/// <param name="connect">Connects to one address.</param>
/// <param name="time">The clock for the delay between two attempts.</param>
internal sealed class AddressRace(
    Func<string, CancellationToken, Task<IPAddress[]>> resolve,
    Func<IPEndPoint, CancellationToken, Task<Stream>> connect,
    TimeProvider time)
{
    /// <summary>RFC 8305, section 5: the recommended delay between two attempts.</summary>
    public static readonly TimeSpan Delay = TimeSpan.FromMilliseconds(250);

    /// <summary>Uses the system's resolver and sockets.</summary>
    public static AddressRace ForNetwork(TimeProvider time) =>
        new(static (host, ct) => Dns.GetHostAddressesAsync(host, ct), ConnectAsync, time);

    /// <summary>Connects to any address of a name.</summary>
    /// <exception cref="SocketException">
    /// The name has no address, or none answers; then it is the failure of the first one.
    /// </exception>
    /// <exception cref="OperationCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<Stream> ConnectAsync(DnsEndPoint target, CancellationToken ct)
    {
        Queue<IPAddress> left = new(Alternate(await resolve(target.Host, ct).ConfigureAwait(false)));
        if (left.Count == 0)
        {
            throw new SocketException((int)SocketError.HostNotFound);
        }

        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(ct);
        List<Task<Stream>> running = [];
        Task<Stream>? first = null;
        try
        {
            while (true)
            {
                if (left.TryDequeue(out IPAddress? address))
                {
                    Task<Stream> begun = connect(new IPEndPoint(address, target.Port), end.Token);
                    first ??= begun;
                    running.Add(begun);
                }

                Task next = await NextAsync(running, left.Count > 0, end.Token).ConfigureAwait(false);
                ct.ThrowIfCancellationRequested();
                if (next is not Task<Stream> ended)
                {
                    continue;
                }

                running.Remove(ended);
                if (ended.IsCompletedSuccessfully || (running.Count == 0 && left.Count == 0))
                {
                    return await (ended.IsCompletedSuccessfully ? ended : first!).ConfigureAwait(false);
                }
            }
        }
        finally
        {
            await end.CancelAsync().ConfigureAwait(false);
            foreach (Task<Stream> loser in running)
            {
                _ = DropAsync(loser);
            }
        }
    }

    /// <summary>The addresses with the families alternating, starting with the family of the first.</summary>
    internal static IEnumerable<IPAddress> Alternate(IPAddress[] addresses)
    {
        AddressFamily? preferred = addresses.Length > 0 ? addresses[0].AddressFamily : null;
        IPAddress[] some = [.. addresses.Where(address => address.AddressFamily == preferred)];
        IPAddress[] others = [.. addresses.Where(address => address.AddressFamily != preferred)];
        for (int i = 0; i < Math.Max(some.Length, others.Length); i++)
        {
            foreach (IPAddress[] family in new[] { some, others })
            {
                if (i < family.Length)
                {
                    yield return family[i];
                }
            }
        }
    }

    private async Task<Task> NextAsync(List<Task<Stream>> running, bool mayBegin, CancellationToken ct)
    {
        if (!mayBegin)
        {
            return await Task.WhenAny(running).ConfigureAwait(false);
        }

        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(ct);
        Task moment = Task.Delay(Delay, time, end.Token);
        Task next = await Task.WhenAny([.. running, moment]).ConfigureAwait(false);
        await end.CancelAsync().ConfigureAwait(false);
        return next;
    }

    private static async Task<Stream> ConnectAsync(IPEndPoint address, CancellationToken ct)
    {
        Socket socket = new(address.AddressFamily, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(address, ct).ConfigureAwait(false);
            return new NetworkStream(socket, ownsSocket: true);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }

    private static async Task DropAsync(Task<Stream> loser)
    {
        try
        {
            await (await loser.ConfigureAwait(false)).DisposeAsync().ConfigureAwait(false);
        }
        catch (Exception failure) when (failure is SocketException or IOException or OperationCanceledException)
        {
            // The attempt has lost in any case.
        }
    }
}
