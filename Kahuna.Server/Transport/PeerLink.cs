using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// What is known of one peer: its present connection, if any. Connections come and go in their own threads; the gate makes the receiver see one at a
/// time, in order: up, frames, down. Any thread.
/// </summary>
internal sealed class PeerLink(PeerAddress address, IPeerReceiver receiver, IPeerDirectory directory, IFatalErrors fatal, ILogger logger)
{
    /// <summary>Held while a frame is delivered, so that the next connection's frames cannot overtake it.</summary>
    private readonly Lock _delivery = new();

    private volatile PeerConnection? _current;
    private bool _ended;

    public NodeId Id => address.Id;

    public Uri Address => address.Address;

    public PeerConnection? Current => _current;

    /// <summary>Makes a proven connection the peer's, in place of an older one, and runs it to its end in the calling thread.</summary>
    public void Run(PeerConnection connection)
    {
        // The older one may be blocked or long dead; the peer would not have connected anew if it still used it.
        _current?.Close("the peer has connected anew");
        lock (_delivery)
        {
            if (_ended)
            {
                connection.Close("this node stops");
            }
            else
            {
                Drop(_current);
                if (directory.Linked(Id, connection.DirectoryId))
                {
                    _current = connection;
                    logger.Up(Id, connection.Remote);
                    Tell(up: true);
                }
                else
                {
                    connection.Close("the peer has come back with another data directory");
                }
            }
        }

        try
        {
            connection.Run(payload => Deliver(connection, payload));
        }
        finally
        {
            lock (_delivery)
            {
                Drop(_current == connection ? connection : null);
            }
        }
    }

    /// <summary>Closes the connection and accepts no further one.</summary>
    public void End()
    {
        _current?.Close("this node stops");
        lock (_delivery)
        {
            _ended = true;
        }

        // One may have come in between.
        _current?.Close("this node stops");
    }

    private bool Deliver(PeerConnection connection, ReadOnlySpan<byte> payload)
    {
        lock (_delivery)
        {
            if (_current != connection)
            {
                return false;
            }

            try
            {
                receiver.Receive(Id, payload);
                return true;
            }
            catch (Exception error)
            {
                // The receiver is the node itself: what it has done with the frame is not known.
                fatal.Raise($"taking in a frame of node {Id}", error);
                connection.Close("the receiver failed");
                return false;
            }
        }
    }

    private void Drop(PeerConnection? connection)
    {
        if (connection is not null)
        {
            _current = null;
            connection.Close("the peer closed it");
            logger.Down(Id, connection.Reason);
            Tell(up: false);
        }
    }

    private void Tell(bool up)
    {
        try
        {
            receiver.LinkChanged(Id, up);
        }
        catch (Exception error)
        {
            fatal.Raise($"taking in a change of the link to node {Id}", error);
        }
    }
}
