using System.Buffers.Binary;
using System.Text;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Sequences;

/// <summary>A sequence as it is. Immutable.</summary>
/// <param name="Name">Its name.</param>
/// <param name="Initial">The first value.</param>
/// <param name="Increment">From one value to the next.</param>
/// <param name="Min">The least value.</param>
/// <param name="Max">The greatest value.</param>
/// <param name="Cycle">It begins again past its last value.</param>
/// <param name="Latest">The value that was taken last; null when none was.</param>
public sealed record SequenceDescription(string Name, long Initial, long Increment, long Min, long Max, bool Cycle, long? Latest)
{
    /// <summary>Bytes that are told of a sequence: its form, its latest value, and whether there is one.</summary>
    internal const int Bytes = SequenceForm.Bytes + sizeof(long) + 1;

    internal static SequenceDescription Read(string name, ReadOnlySpan<byte> told)
    {
        if (told.Length < Bytes || !SequenceForm.TryRead(told, out SequenceForm form))
        {
            throw new KahunaException(KahunaErrorCode.Protocol, OperationOutcome.DidNotHappen, "The server described a sequence in a way that this client does not know.");
        }

        long? latest = told[Bytes - 1] != 0 ? BinaryPrimitives.ReadInt64LittleEndian(told[SequenceForm.Bytes..]) : null;
        return new SequenceDescription(name, form.Initial, form.Increment, form.Min, form.Max, form.Cycles, latest);
    }

    /// <summary>Reads a page of a list: <c>u16 length of the name, name, what is told</c> for each sequence.</summary>
    internal static List<SequenceDescription> ReadPage(ReadOnlySpan<byte> page)
    {
        List<SequenceDescription> sequences = [];
        while (page.Length > sizeof(ushort))
        {
            int length = BinaryPrimitives.ReadUInt16LittleEndian(page);
            page = page[sizeof(ushort)..];
            if (page.Length < length + Bytes)
            {
                break;
            }

            sequences.Add(Read(Encoding.UTF8.GetString(page[..length]), page.Slice(length, Bytes)));
            page = page[(length + Bytes)..];
        }

        return sequences;
    }
}
