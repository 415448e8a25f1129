namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// Memory for answers that their callers have not read yet. When it is full, the callers that have read for longest
/// are cut off, so that callers that do not read keep neither memory nor others from their answers. Any thread.
/// </summary>
/// <param name="bytesMax">The memory, in bytes. A single answer may be larger.</param>
/// <param name="patience">How long a caller may take to read an answer.</param>
internal sealed class AnswerRoom(long bytesMax, TimeSpan patience)
{
    /// <summary>
    /// The room of the process: 16 MiB, as much as 16 of its largest answers. A caller has 30 s, as for calls.
    /// </summary>
    public static readonly AnswerRoom Shared = new(16 << 20, TimeSpan.FromSeconds(30));

    private readonly Lock _lock = new();
    private readonly LinkedList<Place> _places = [];
    private long _used;

    /// <summary>Bytes of the answers that are being sent.</summary>
    public long Used
    {
        get
        {
            lock (_lock)
            {
                return _used;
            }
        }
    }

    /// <summary>Begins an answer; cuts off older ones if they leave no room.</summary>
    /// <param name="bytes">Size of the answer.</param>
    /// <param name="aborted">Ends when the caller disconnects.</param>
    /// <returns>The place of the answer, which the caller gives back.</returns>
    public Place Enter(int bytes, CancellationToken aborted)
    {
        Place place = new(this, bytes, CancellationTokenSource.CreateLinkedTokenSource(aborted));
        place.Ends.CancelAfter(patience);
        lock (_lock)
        {
            while (_used + bytes > bytesMax && _places.First is { } oldest)
            {
                Remove(oldest.Value);

                // What waits for the token runs on another thread, not within the lock.
                _ = oldest.Value.Ends.CancelAsync();
            }

            place.Node = _places.AddLast(place);
            _used += bytes;
        }

        return place;
    }

    private void Remove(Place place)
    {
        if (place.Node is { } node)
        {
            _places.Remove(node);
            _used -= place.Bytes;
            place.Node = null;
        }
    }

    /// <summary>An answer that is being sent. Owned by who sends it.</summary>
    internal sealed class Place(AnswerRoom room, int bytes, CancellationTokenSource ends) : IDisposable
    {
        /// <summary>Size of the answer.</summary>
        public int Bytes => bytes;

        /// <summary>Ends when the caller has disconnected or is cut off.</summary>
        public CancellationToken Token => ends.Token;

        internal CancellationTokenSource Ends => ends;

        /// <summary>Where it is among the others; null: it has left. Guarded by the lock of the room.</summary>
        internal LinkedListNode<Place>? Node { get; set; }

        /// <summary>The answer was sent, or given up.</summary>
        public void Dispose()
        {
            lock (room._lock)
            {
                room.Remove(this);
            }

            ends.Dispose();
        }
    }
}
