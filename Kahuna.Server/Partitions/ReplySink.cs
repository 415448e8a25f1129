using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Server.Partitions;

/// <summary>
/// Port: where a loop's replies go: one client stream, or one unary call. The loop collects the replies of one turn in
/// a buffer that it owns (<see cref="Open"/>) and hands it over whole at the end of the turn (<see cref="Deliver"/>).
/// </summary>
internal abstract class ReplySink(int loops)
{
    /// <summary>The buffer that loop i fills during its turn; touched by that loop only.</summary>
    internal ByteBuffer?[] Open { get; } = new ByteBuffer?[loops];

    /// <summary>Number of replies in <see cref="Open"/>, per loop.</summary>
    internal int[] OpenCount { get; } = new int[loops];

    private int _heldBack;

    /// <summary>Answers that loops hold back until there is something to say.</summary>
    public int HeldBack => Volatile.Read(ref _heldBack);

    /// <summary>Nobody gets what is delivered.</summary>
    public abstract bool IsClosed { get; }

    /// <summary>So many more answers are held back. Any thread.</summary>
    public void HoldBack(int answers) => Interlocked.Add(ref _heldBack, answers);

    /// <summary>Takes over a Replies frame, begun but not ended, with <paramref name="count"/> replies. Never blocks; from the loop's thread. The sink returns the buffer.</summary>
    public abstract void Deliver(ByteBuffer frame, int count);
}
