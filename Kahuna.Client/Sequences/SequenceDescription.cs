using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>The definition and the latest value of a sequence. Immutable.</summary>
/// <param name="Name">Name of the sequence.</param>
/// <param name="Initial">The first value.</param>
/// <param name="Increment">The step from one value to the next.</param>
/// <param name="Min">The least value.</param>
/// <param name="Max">The greatest value.</param>
/// <param name="Cycle">True when the sequence restarts after its last value.</param>
/// <param name="Latest">The value taken last; null when none was.</param>
public sealed record SequenceDescription(
    string Name, long Initial, long Increment, long Min, long Max, bool Cycle, long? Latest)
{
    internal static SequenceDescription Read(string name, ReadOnlySpan<byte> told) =>
        SequenceSnapshot.TryRead(told, out SequenceSnapshot read)
            ? Of(name, in read)
            : throw OperationErrors.UnknownDescription("a sequence");

    internal static List<SequenceDescription> ReadPage(ReadOnlySpan<byte> page)
    {
        List<SequenceDescription> sequences = [];
        while (SequenceSnapshot.TryNext(ref page, out ReadOnlySpan<byte> name, out SequenceSnapshot read))
        {
            sequences.Add(Of(Encoding.UTF8.GetString(name), in read));
        }

        return sequences;
    }

    private static SequenceDescription Of(string name, in SequenceSnapshot read) =>
        new(name, read.Body.Initial, read.Body.Increment, read.Body.Min, read.Body.Max, read.Body.Cycles, read.Latest);
}
