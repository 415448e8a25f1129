using System.Net.Sockets;

namespace Kahuna.Wire.Sockets;

/// <summary>
/// Sends what the kernel did not accept at once, for all sockets of a process, when their receivers read again. One
/// thread, which runs while there is something to send. Any thread.
/// </summary>
internal sealed class StalledSockets
{
    /// <summary>Longest wait of a socket that was just added, while no other socket can send.</summary>
    private const int SelectMicroseconds = 5_000;

    private readonly Lock _lock = new();
    private readonly List<(BlockingSocket Socket, TaskCompletionSource Done)> _stalled = [];
    private bool _isRunning;

    /// <summary>That of the process.</summary>
    public static StalledSockets Shared { get; } = new();

    /// <summary>
    /// Completes when everything is sent that the socket holds; fails when it was closed. No other thread sends
    /// meanwhile.
    /// </summary>
    /// <exception cref="IOException">The socket was closed, or the system has no thread left.</exception>
    public Task PushAsync(BlockingSocket socket)
    {
        TaskCompletionSource done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        lock (_lock)
        {
            _stalled.Add((socket, done));
            if (_isRunning)
            {
                return done.Task;
            }

            _isRunning = true;
        }

        try
        {
            new Thread(Run) { IsBackground = true, Name = "stalled sockets" }.UnsafeStart();
        }
        catch (Exception error) when (error is OutOfMemoryException or ThreadStartException)
        {
            FailAll(new IOException($"The system has no thread left: {error.Message}", error));
        }

        return done.Task;
    }

    private void Run()
    {
        while (true)
        {
            List<(BlockingSocket Socket, TaskCompletionSource Done)> now;
            lock (_lock)
            {
                if (_stalled.Count == 0)
                {
                    _isRunning = false;
                    return;
                }

                now = [.. _stalled];
            }

            HashSet<Socket> ready = Ready(now);
            foreach ((BlockingSocket socket, TaskCompletionSource done) in now)
            {
                if (ready.Contains(socket.Inner))
                {
                    Push(socket, done);
                }
            }
        }
    }

    private static HashSet<Socket> Ready(List<(BlockingSocket Socket, TaskCompletionSource Done)> stalled)
    {
        List<Socket> sockets = [.. stalled.Select(static one => one.Socket.Inner)];
        try
        {
            Socket.Select(null, sockets, null, SelectMicroseconds);
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // One of them is closed; each says so when it is tried.
            Thread.Sleep(1);
        }

        return [.. sockets];
    }

    private void Push(BlockingSocket socket, TaskCompletionSource done)
    {
        try
        {
            if (!socket.TryPush())
            {
                return;
            }

            Remove(done);
            done.TrySetResult();
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            Remove(done);
            done.TrySetException(error);
        }
    }

    private void Remove(TaskCompletionSource done)
    {
        lock (_lock)
        {
            _stalled.RemoveAll(one => one.Done == done);
        }
    }

    private void FailAll(Exception error)
    {
        List<(BlockingSocket Socket, TaskCompletionSource Done)> all;
        lock (_lock)
        {
            all = [.. _stalled];
            _stalled.Clear();
            _isRunning = false;
        }

        all.ForEach(one => one.Done.TrySetException(error));
    }
}
